"""Answers a question in the terminal, with its sources.

Asks the service that runs from the same RAYDEX_HOME, and names it; without one it answers in this process, from the
same database. Exit codes: 0 answered, 1 failed, 2 bad input.
"""

import argparse
import contextlib
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import httpx
from rich.console import Console
from rich.markdown import Markdown
from rich.markup import escape

from jobs.cli import DONE, BadInput, add_collection, add_json, check_range, command, finish, main, say
from jobs.environment import home, open_store, read_configuration, service_key
from pipelines.answering.factory import make_engine, make_retriever
from pipelines.answering.settings import EXTRACTIVE
from pipelines.records import Answer
from pipelines.services import find_services

MOST_HITS = 100
# A person in a terminal waits: without the service the first question builds BM25.
PATIENCE_S = 60.0
PROBE_TIMEOUT_S, ANSWER_TIMEOUT_S = 1.0, 120.0


class ServiceFailed(RuntimeError):
    """The service failed or could not be reached; the message holds what it replied."""


def arguments() -> argparse.ArgumentParser:
    parser = command("ask", __doc__)
    parser.add_argument("question", help="the question, in quotes")
    add_collection(parser, "collection to ask (default: that of `raydex default`, else the only one)")
    parser.add_argument("-k", type=int, help="number of hits to answer from (default 5)")
    parser.add_argument("--url", help="service to ask (default: the one of RAYDEX_HOME that was started last, if any)")
    parser.add_argument("--key", help="API key of the service (default: RAYDEX_KEY)")
    add_json(parser)
    return parser


def work(args: argparse.Namespace) -> int:
    if not args.question.strip():
        raise BadInput("the question is empty")
    check_range("-k", args.k, 1, MOST_HITS)
    if url := args.url or running_service():
        say(f"asking the service at {url}")
        reply = ask_service(url, args.question, args.collection, args.k, args.key or service_key())
    else:
        say(f"no service of {home()} is running: answering in this process, which takes longer")
        reply = ask_here(args.question, args.collection, args.k)
    if args.json:
        finish(reply, True, "")
    else:
        show(reply)
    return DONE


def running_service() -> str | None:
    """Return the URL of the service of RAYDEX_HOME that was started last and can be reached, if there is one."""
    for service in find_services(home()):
        with contextlib.suppress(httpx.HTTPError):
            httpx.get(f"{service.url}/health", timeout=PROBE_TIMEOUT_S)
            return service.url
    return None


def ask_service(
    url: str, question: str, collection: str | None, k: int | None, key: str | None = None
) -> Mapping[str, Any]:
    """Return the reply of the service at `url`. Raises BadInput and ServiceFailed with its message."""
    url = url.rstrip("/")
    request = {"question": question, "collection": collection, "k": k}
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    try:
        response = httpx.post(f"{url}/query", json=request, headers=headers, timeout=ANSWER_TIMEOUT_S)
        body = response.json()
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        raise ServiceFailed(f"no answer from {url}: {error}; is `raydex serve` running there?") from error
    if response.is_success:
        return dict(body)
    message = body.get("error", response.text) if isinstance(body, dict) else response.text
    if response.status_code in (404, 422):
        raise BadInput(message)
    if response.status_code == 401:
        message += "; give it with `--key` or RAYDEX_KEY"
    raise ServiceFailed(f"{url} answered {response.status_code}: {message}")


def ask_here(question: str, collection: str | None, k: int | None) -> Mapping[str, Any]:
    """Return the reply of an engine in this process, configured by the variables that the service reads."""
    configuration = read_configuration().model_copy(update={"patience_s": PATIENCE_S})
    with open_store() as store, contextlib.closing(make_retriever(configuration, store)) as retriever:
        return as_reply(make_engine(configuration, retriever).query(question, collection=collection, k=k))


def as_reply(answer: Answer) -> dict[str, Any]:
    """Return an answer with the keys of the service's reply."""
    reply = asdict(answer)
    for reply_hit, hit in zip(reply["hits"], answer.hits, strict=True):
        reply_hit["source"] = hit.source
    reply["answer"] = reply.pop("text")
    return reply


def show(reply: Mapping[str, Any]) -> None:
    """Print the answer and its sources for a person."""
    console = Console(highlight=False, soft_wrap=True)
    console.print(f"[bold]{escape(reply['question'])}[/bold]\n")
    if console.is_terminal:
        console.print(Markdown(reply["answer"], hyperlinks=False), soft_wrap=False)
    else:
        console.print(reply["answer"], markup=False)
    console.print()
    for citation in reply["citations"]:
        console.print(f"[{citation['n']}] {citation['title']}{remark(citation, reply)}", markup=False, style="cyan")
        console.print(f"    {citation['source']}", markup=False)
    claims = reply.get("claims") or {}
    if claims.get("total") and reply.get("known", True):
        console.print(
            f"\nconfidence {reply['confidence']}: {claims['supported']} of {claims['total']} claims supported"
        )
    notes = [f"agent {reply['agent']}", f"{reply['timings']['total'] * 1000:.0f} ms"]
    notes += ["cut off" if part == "truncated" else f"without {part}" for part in reply["degraded"]]
    console.print(f"\n{', '.join(notes)}", style="dim")


def remark(citation: Mapping[str, Any], reply: Mapping[str, Any]) -> str:
    """Return what is said beside a source: that it hardly supports its claims, that the model did not name it."""
    weak = reply.get("known", True) and not citation.get("supported", True)
    found = citation.get("by") == "attributed" and reply["agent"] != EXTRACTIVE
    remarks = [text for text, holds in (("weak support", weak), ("found by Raydex", found)) if holds]
    return f" ({', '.join(remarks)})" if remarks else ""


if __name__ == "__main__":
    main(arguments(), work)
