"""`python -m jobs.ask "question"`: a cited answer in the terminal.

Asks the running service where there is one, else answers in this process from the same database.
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

from jobs.cli import BadInput, finish, main, say
from jobs.environment import open_store, read_configuration
from pipelines.answering.factory import make_engine, make_retriever
from pipelines.records import Answer

DEFAULT_URL = "http://127.0.0.1:8000"
# In a terminal one waits: a first question without the service builds BM25.
PATIENCE_S = 60.0


class ServiceFailed(RuntimeError):
    """The service answered with an error; the message is its own."""


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m jobs.ask", description=__doc__.split("\n\n")[0])
    parser.add_argument("question")
    parser.add_argument("--collection", help="ask this collection (default: the only one)")
    parser.add_argument("-k", type=int, help="hits to answer from (default 5)")
    parser.add_argument("--url", help=f"the service to ask (default: {DEFAULT_URL} if it runs, else none)")
    parser.add_argument("--json", action="store_true", help="print one JSON object, last line")
    return parser


def work(args: argparse.Namespace) -> int:
    if not args.question.strip():
        raise BadInput("the question is empty")
    if args.k is not None and not 1 <= args.k <= 100:
        raise BadInput(f"-k is {args.k}; it must be 1 to 100")
    reply = ask_service(args) if args.url or running(DEFAULT_URL) else ask_here(args)
    if args.json:
        finish(reply, True, "")
    else:
        show(reply)
    return 0


def running(url: str) -> bool:
    """Whether a Raydex service answers at `url`."""
    with contextlib.suppress(httpx.HTTPError, ValueError):
        return bool(httpx.get(f"{url}/openapi.json", timeout=1).json().get("info", {}).get("title") == "Raydex")
    return False


def ask_service(args: argparse.Namespace) -> Mapping[str, Any]:
    """The service's answer. Raises BadInput and ServiceFailed with what it says."""
    url = (args.url or DEFAULT_URL).rstrip("/")
    asked = {"question": args.question, "collection": args.collection, "k": args.k}
    try:
        reply = httpx.post(f"{url}/query", json=asked, timeout=120)
        body = reply.json()
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        raise ServiceFailed(f"no answer from {url}: {error}; is «python -m serve» running there?") from error
    if reply.is_success:
        return dict(body)
    message = body.get("error", reply.text) if isinstance(body, dict) else reply.text
    if reply.status_code in (404, 422):
        raise BadInput(message)
    raise ServiceFailed(f"{url} answered {reply.status_code}: {message}")


def ask_here(args: argparse.Namespace) -> Mapping[str, Any]:
    """The answer without a service: the same classes in this process, configured by the same variables."""
    say("no service is running: answering in this process, which takes longer")
    configuration = read_configuration().model_copy(update={"patience_s": PATIENCE_S})
    with open_store() as store, contextlib.closing(make_retriever(configuration, store)) as retriever:
        engine = make_engine(configuration, retriever)
        return as_reply(engine.query(args.question, collection=args.collection, k=args.k))


def as_reply(answer: Answer) -> dict[str, Any]:
    """An answer with the keys of the service's reply."""
    reply = asdict(answer)
    for reply_hit, hit in zip(reply["hits"], answer.hits, strict=True):
        reply_hit["source"] = hit.source
    reply["answer"] = reply.pop("text")
    return reply


def show(reply: Mapping[str, Any]) -> None:
    """Answer and sources for a person."""
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
