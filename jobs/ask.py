"""Answers a question in the terminal, with its sources.

Asks the running service if there is one; otherwise answers in this process from the same database.
Exit codes: 0 answered, 1 failed, 2 bad input.
"""

import argparse
import contextlib
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import httpx
from rich.console import Console
from rich.markup import escape

from jobs.cli import DONE, BadInput, add_collection, add_json, check_range, command, finish, main, say
from jobs.environment import open_store, read_configuration
from pipelines.answering.factory import make_engine, make_retriever
from pipelines.records import Answer

DEFAULT_URL = "http://127.0.0.1:8000"
MOST_HITS = 100
# A person in a terminal waits: without the service the first question builds BM25.
PATIENCE_S = 60.0
PROBE_TIMEOUT_S, ANSWER_TIMEOUT_S = 1.0, 120.0


class ServiceFailed(RuntimeError):
    """The service failed or could not be reached; the message holds what it replied."""


def arguments() -> argparse.ArgumentParser:
    parser = command("ask", __doc__)
    parser.add_argument("question", help="the question, in quotes")
    add_collection(parser, "collection to ask (default: the only one)")
    parser.add_argument("-k", type=int, help="number of hits to answer from (default 5)")
    parser.add_argument("--url", help=f"service to ask (default: {DEFAULT_URL} if it runs, else none)")
    add_json(parser)
    return parser


def work(args: argparse.Namespace) -> int:
    if not args.question.strip():
        raise BadInput("the question is empty")
    check_range("-k", args.k, 1, MOST_HITS)
    if args.url or is_running(DEFAULT_URL):
        reply = ask_service(args.url or DEFAULT_URL, args.question, args.collection, args.k)
    else:
        say("no service is running: answering in this process, which takes longer")
        reply = ask_here(args.question, args.collection, args.k)
    if args.json:
        finish(reply, True, "")
    else:
        show(reply)
    return DONE


def is_running(url: str) -> bool:
    """Return whether a Raydex service answers at `url`."""
    with contextlib.suppress(httpx.HTTPError, ValueError):
        described = httpx.get(f"{url}/openapi.json", timeout=PROBE_TIMEOUT_S).json()
        return bool(described.get("info", {}).get("title") == "Raydex")
    return False


def ask_service(url: str, question: str, collection: str | None, k: int | None) -> Mapping[str, Any]:
    """Return the reply of the service at `url`. Raises BadInput and ServiceFailed with its message."""
    url = url.rstrip("/")
    request = {"question": question, "collection": collection, "k": k}
    try:
        response = httpx.post(f"{url}/query", json=request, timeout=ANSWER_TIMEOUT_S)
        body = response.json()
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        raise ServiceFailed(f"no answer from {url}: {error}; is `raydex serve` running there?") from error
    if response.is_success:
        return dict(body)
    message = body.get("error", response.text) if isinstance(body, dict) else response.text
    if response.status_code in (404, 422):
        raise BadInput(message)
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
    console.print(reply["answer"], markup=False)
    console.print()
    for citation in reply["citations"]:
        console.print(f"[{citation['n']}] {citation['title']}", markup=False, style="cyan")
        console.print(f"    {citation['source']}", markup=False)
    notes = [f"agent {reply['agent']}", f"{reply['timings']['total'] * 1000:.0f} ms"]
    notes += [f"without {leg}" for leg in reply["degraded"]]
    console.print(f"\n{', '.join(notes)}", style="dim")


if __name__ == "__main__":
    main(arguments(), work)
