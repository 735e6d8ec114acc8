"""Answers a question in the terminal, with its sources.

Asks the service that runs from the same RAYDEX_HOME, and says so; without one it answers in this process, from the same
database. Exit codes: 0 answered, 1 failed, 2 bad input.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from typing import Annotated, Any

import httpx
from cyclopts import Parameter
from rich.markup import escape

from jobs.cli import DONE, BadInput, check_range, finish, main, say
from jobs.environment import home, locale_language, open_store, read_configuration, service_key
from jobs.flags import OR_DEFAULT, Json, command
from jobs.markdown import ShownMarkdown
from jobs.terminal import make_console
from pipelines.answering.engine import QueryEngine
from pipelines.answering.events import Delta
from pipelines.answering.factory import make_engine, make_retriever
from pipelines.answering.question import Question
from pipelines.answering.retrieval.search import Retrieval
from pipelines.answering.settings import EXTRACTIVE, AnswerSettings, change
from pipelines.answering.synthesis.modes import RESEARCH
from pipelines.answering.writing.also_found import describe_found, name_section
from pipelines.answering.writing.stages.text import CodePiece, Piece, Statement, TextReader
from pipelines.files.services import find_services
from pipelines.llm.session import LOADING, OPENING, READING, SEARCHING, Status
from pipelines.page.stored import readable_text
from pipelines.records import Answer
from pipelines.service_client import AskFailed, ServiceClient
from pipelines.store import NoSuchCollection
from pipelines.text.counts import counted
from pipelines.text.detection import find_language
from pipelines.text.languages import ENGLISH, choose_language, say_beside
from pipelines.text.remarks import make_remarks

MOST_HITS = 100
# A person in a terminal can wait: without the service the first question builds BM25.
PATIENCE_S = 60.0
PROBE_TIMEOUT_S = 1.0
WORTH_SAYING_S = 2.0  # a shorter wait needs no message

LOOKS = {SEARCHING: "searching for", OPENING: "reading"}

Tell = Callable[[str, Mapping[str, Any]], None]
"""Called with the name and the data of each event of the stream: `hits`, `status`, `delta`."""


NO_URL = "the service's URL is {url!r}: write it as http://127.0.0.1:8000"


class ServiceFailed(RuntimeError):
    """The service failed or could not be reached; the message includes its reply."""


def run(
    *words: Annotated[str, Parameter("question", help="the question, with or without quotes")],
    collection: Annotated[str | None, Parameter(help=f"collection to ask {OR_DEFAULT}")] = None,
    k: Annotated[int | None, Parameter("-k", help="number of hits to use for the answer (default: 5)")] = None,
    url: Annotated[
        str | None, Parameter(help="service to ask (default: the last one started in RAYDEX_HOME, if any)")
    ] = None,
    key: Annotated[str | None, Parameter(help="API key of the service (default: RAYDEX_KEY)")] = None,
    follow: Annotated[
        bool, Parameter(help="print the hits, the model's progress and each sentence, with timestamps in seconds")
    ] = False,
    research: Annotated[
        bool, Parameter(help="let the language model search again and read pages before it answers (slower)")
    ] = False,
    as_json: Json = False,
) -> int:
    asked = " ".join(words)
    if not asked.strip():
        raise BadInput('the question is empty: raydex ask "your question"')
    check_range("-k", k, 1, MOST_HITS)
    language = locale_language()
    question = {"question": asked, "collection": collection, "k": k}
    question |= {"language": language} if language else {}
    question |= {"mode": RESEARCH} if research else {}
    tell = Follower() if follow else say_status
    if url := url or running_service():
        say(f"asking the service at {url}")
        reply = ask_service(url, question, key or service_key(), tell)
    else:
        say(f"no service is running for {home()}: this process answers instead, which takes longer")
        reply = ask_here(question, tell)
    if isinstance(tell, Follower):
        tell.end()
    if as_json:
        finish(reply, True, "")
    else:
        show(reply, choose_language(find_language(asked), language))
    return DONE


def running_service() -> str | None:
    """Return the URL of the RAYDEX_HOME's most recently started service that can be reached, if there is one."""
    for service in find_services(home()):
        with contextlib.suppress(httpx.HTTPError):
            httpx.get(f"{service.url}/health", timeout=PROBE_TIMEOUT_S, trust_env=False)
            return service.url
    return None


def ask_service(url: str, question: Mapping[str, Any], key: str | None, tell: Tell) -> Mapping[str, Any]:
    """Return the reply of the service at `url`. Raises NoSuchCollection, BadInput and ServiceFailed."""
    # A public service lets readers ask without a key, but not choose `k`.
    given = {name: value for name, value in question.items() if value is not None}
    here = url.rstrip("/") in [service.url for service in find_services(home())]
    try:
        address = httpx.URL(url)
        client = ServiceClient(url, key or "", here)
    except (httpx.InvalidURL, ValueError) as error:
        raise BadInput(f"{NO_URL.format(url=url)} ({error})") from error
    if address.scheme not in ("http", "https") or not address.host:
        raise BadInput(NO_URL.format(url=url))
    return asyncio.run(_ask(client, given, tell))


async def _ask(client: ServiceClient, question: Mapping[str, Any], tell: Tell) -> Mapping[str, Any]:
    """Pass all events to `tell` except the last one, the reply, which is returned."""
    async with contextlib.aclosing(client):
        try:
            async for name, body in client.stream(question):
                if name != "answer":
                    tell(name, body)
            return body
        except AskFailed as error:
            if error.status == httpx.codes.NOT_FOUND:
                await check_collection(client, question.get("collection"))
            raise refusal(client.url, error) from error


async def check_collection(client: ServiceClient, collection: str | None) -> None:
    """Raise NoSuchCollection if the service has no such collection for this key; it can't always know."""
    with contextlib.suppress(AskFailed, ValueError, TypeError, KeyError):
        names = [str(row["name"]) for row in await client.collections()]
        if collection is not None and collection not in names:
            raise NoSuchCollection(collection, names)


def refusal(url: str, error: AskFailed) -> Exception:
    """Return the error of a service that did not answer, in a form for the terminal."""
    if error.status in (404, 422):
        return BadInput(error.said)
    if error.status == httpx.codes.UNAUTHORIZED:
        return BadInput(f"{url} answered {error.status}: {error.said}; give it with `--key` or RAYDEX_KEY")
    if error.status:
        return ServiceFailed(f"{url} answered {error.status}: {error.said}")
    if error.__cause__:
        return ServiceFailed(f"no answer from {url}: {error.__cause__}; is `raydex serve` running there?")
    return ServiceFailed(str(error))


def ask_here(question: Mapping[str, Any], tell: Tell) -> Mapping[str, Any]:
    """Return the reply of an engine in this process, configured by the same variables as the service."""
    configuration = patient_configuration()
    with open_store() as store, contextlib.closing(make_retriever(configuration, store)) as retriever:
        if question["collection"] is not None:
            store.find_collection(question["collection"])
        return asyncio.run(_stream(make_engine(configuration, retriever, store=store), Question(**question), tell))


def patient_configuration() -> AnswerSettings:
    """Return the answer settings for a person who waits for the index."""
    return change(read_configuration(), {"retrieval.patience_s": PATIENCE_S})


async def _stream(engine: QueryEngine, question: Question, tell: Tell) -> Mapping[str, Any]:
    """Pass the events to `tell` in the service's format, and return the answer as its reply."""
    async for event in engine.stream(question):  # `asyncio.run` closes it if `tell` fails
        match event:
            case Retrieval():
                tell("hits", {"hits": [name_section(hit) for hit in event.hits]})
            case Status():
                tell("status", asdict(event))
            case Delta():
                tell("delta", asdict(event))
            case Answer():
                return as_reply(event)
    raise AssertionError("a stream ends with its answer")


def as_reply(answer: Answer) -> dict[str, Any]:
    """Return an answer with the keys of the service's reply."""
    reply = asdict(answer)
    for reply_hit, hit in zip(reply["hits"], answer.hits, strict=True):
        del reply_hit["plain"]
        reply_hit |= {"source": hit.source, "text": readable_text(hit.text), "context": readable_text(hit.context)}
    reply["answer"], reply["written_by"] = reply.pop("text"), answer.written_by
    return reply | {"also_found": describe_found(answer)}


def say_status(name: str, body: Mapping[str, Any]) -> None:
    """Print the progress of a slow model."""
    if name == "status" and (body["seconds"] is None or body["seconds"] >= WORTH_SAYING_S):
        say(describe(body))


def describe(status: Mapping[str, Any]) -> str:
    """Return a status in words."""
    if status["stage"] == LOADING:
        return "loading the index"
    if status["stage"] in LOOKS:
        return f"{LOOKS[status['stage']]} “{status.get('about', '')}”"
    if status["stage"] != READING:
        return f"{status['agent']} is {status['stage']}"
    wait = f", about {status['seconds']:.0f} s" if status["seconds"] is not None else ""
    passages = counted(status["passages"], "passage")
    return f"{status['agent']} is reading {passages} ({counted(status['tokens'], 'token')}){wait}"


class Follower:
    """Prints each event of a stream as it arrives, text by sentence, with the seconds since the question."""

    def __init__(self) -> None:
        self._began, self._writes = time.monotonic(), False
        self._reader, self._read = TextReader(), ""

    def __call__(self, name: str, body: Mapping[str, Any]) -> None:
        if name == "hits":
            for n, hit in enumerate(body["hits"], 1):
                self._print("source", f"[{n}] {show_section(hit)}")
        elif name == "status":
            self._print("status", describe(body))
        elif name == "delta":
            self._follow(body)

    def end(self) -> None:
        """Print the remaining text that has no end of sentence."""
        self._tell(self._reader.close())
        say("")

    def _follow(self, delta: Mapping[str, Any]) -> None:
        if delta.get("reset"):
            self._print("reset", "the text so far is discarded")
            self._reader, self._read = TextReader(), ""
        if not self._writes:
            self._print("status", "the answer begins")
            self._writes = True
        self._tell(self._reader.feed(delta["text"]))

    def _tell(self, pieces: Iterable[Piece]) -> None:
        """Print each complete sentence, and each line of code."""
        for piece in pieces:
            self._read += "" if isinstance(piece, Statement) else piece
            if isinstance(piece, Statement) or (isinstance(piece, CodePiece) and piece.endswith("\n")):
                if self._read.strip():
                    self._print("text", self._read.strip("\n"))
                self._read = ""

    def _print(self, kind: str, text: str) -> None:
        say(f"{time.monotonic() - self._began:6.1f} s  {kind:6}  {text.rstrip()}")


def show(reply: Mapping[str, Any], language: str = ENGLISH) -> None:
    """Print the answer and its sources for a person; the text around them is in `language`."""
    console = make_console()
    console.print(f"[bold]{escape(reply['question'])}[/bold]\n")
    if console.is_terminal:
        console.print(ShownMarkdown(reply["answer"]), soft_wrap=False)
    else:
        console.print(reply["answer"], markup=False)
    console.print()
    for citation in reply["citations"]:
        console.print(
            f"[{citation['n']}] {citation['title']}{remark(citation, reply, language)}", markup=False, style="cyan"
        )
        console.print(f"    {citation['source']}", markup=False)
    if also := reply.get("also_found"):
        found = say_beside("also_found", language)
        console.print(f"\n{found}", *map(show_section, also), sep="\n    ", markup=False)
    if remarks := make_remarks(reply, language):
        console.print("", *remarks, sep="\n", markup=False)
    console.print(f"\nagent {reply['agent']}, {reply['timings']['total'] * 1000:.0f} ms", style="dim")


def show_section(section: Mapping[str, Any]) -> str:
    """Return the headings of a section, or its page's title, with its URL and its snippet."""
    name = f"{' › '.join(section['headings']) or section['title']}  {section['source']}"
    return "\n      ".join(filter(None, [name, section.get("snippet", "")]))


def remark(citation: Mapping[str, Any], reply: Mapping[str, Any], language: str) -> str:
    """Return the note next to a source: it barely supports its claims, or the model did not name it."""
    weak = reply.get("known", True) and not citation.get("supported", True)
    found = citation.get("by") == "attributed" and reply["agent"] != EXTRACTIVE
    names = [name for name, holds in (("weakly", weak), ("found_by", found)) if holds]
    return "".join(f" · {say_beside(name, language)}" for name in names)


app = command("ask", __doc__, run)


if __name__ == "__main__":
    main(app)
