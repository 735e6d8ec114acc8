"""An answer in progress or complete, in a form that any chat platform can write."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from pipelines.records import RESULTS
from pipelines.service_client import AskFailed
from pipelines.text.languages import ENGLISH, say_beside
from pipelines.text.phrases import read_table
from pipelines.text.remarks import make_remarks

MOST_SOURCES = 10  # more do not help; the page has them all
CLOSEST = 3  # sections listed while a model reads them, or next to the sources
WORTH_SAYING_S = 2.0  # a shorter wait needs no message
HELP: str = read_table("serve.chat.texts")["help"]
# Failures with advice that applies in a chat, and temporary failures. A reader can't fix keys or indexes.
ADVISED, PASSING = frozenset(("cut", "rate", "too_long")), frozenset(("model", "unavailable", "unreachable"))
WAITS = {"loading": "loading_index", "thinking": "thinking", "searching": "searching_for", "opening": "opening"}
NOT_SET_UP = frozenset(("no_key", "bad_key", "no_index"))

M = TypeVar("M")


@dataclass(frozen=True, slots=True)
class NamedSection:
    """A section that a reply links to; `n` is its number in the text, 0 for none."""

    url: str
    title: str
    n: int = 0
    weak: bool = False


@dataclass(frozen=True, slots=True)
class Reply:
    """The content to show for an answer; `text` is Markdown, all other strings are plain text.

    `links` maps the numbers in brackets to URLs. `found` are the sections that a model reads now, or those that were
    found in addition to the sources. `rated` is the id of the answer to rate, "" for none. Text around the answer is in
    `language`.
    """

    text: str = ""
    language: str = ENGLISH
    links: Mapping[int, str] = field(default_factory=dict)
    failure: str = ""
    writing: bool = False
    found: Sequence[NamedSection] = ()
    heading: str = ""  # heading of the sources
    sources: Sequence[NamedSection] = ()
    more: int = 0  # number of sources not listed
    notes: Sequence[str] = ()
    rated: str = ""


class AnswerView(Generic[M]):
    """Receives the events of a stream and returns the messages that show the answer so far.

    `render` writes a reply as messages. `collection` is the collection being asked, "" for the service's default. Text
    around the answer is in `language`.
    """

    def __init__(self, render: Callable[[Reply], list[M]], collection: str = "", language: str = ENGLISH) -> None:
        self._render, self._where = render, f" **{collection}**" if collection else ""
        self._language = language
        self._hits: Sequence[Mapping[str, Any]] = ()
        self._status, self._text, self._failure = "", "", ""
        self._answer: Mapping[str, Any] | None = None
        self._shown: list[M] | None = None

    def take(self, name: str, data: Mapping[str, Any]) -> None:
        """Handle one event of /query/stream."""
        self._shown = None
        match name:
            case "hits":
                self._hits = data["hits"]
            case "status":
                self._status = self._describe(data)
            case "delta":
                self._text = ("" if data.get("reset") else self._text) + str(data["text"])
            case "answer":
                self._answer = data

    def fail(self, why: str) -> None:
        """Show, after the text so far, why no more follows."""
        self._failure, self._shown = why, None

    def wait(self, why: str) -> None:
        """Start over, and show the reason for waiting."""
        self._hits, self._text, self._status, self._shown = (), "", why, None

    def messages(self) -> list[M]:
        """Return the messages to show now."""
        if self._shown is None:
            self._shown = self._render(self.reply())
        return self._shown

    def reply(self) -> Reply:
        """Return the content to show now, independent of the platform."""
        if self._answer is not None:
            return self._whole(self._answer)
        if self._text.strip() or self._failure:
            return Reply(self._text, self._language, _links(self._hits), self._failure, writing=True)
        doing = f"*{self._status}*" if self._status else f"*{say_beside('searching', self._language)}*{self._where}"
        return Reply(doing, self._language, found=_closest(self._hits))

    def _whole(self, answer: Mapping[str, Any]) -> Reply:
        """Return the reply for a complete answer: with its sources, its confidence, and the id to rate."""
        citations, known = answer["citations"], answer.get("known", True)
        named = [] if answer.get("form") == RESULTS else citations  # results name themselves
        return Reply(
            answer["answer"],
            self._language,
            _links(citations),
            heading=say_beside("sources" if known else "closest", self._language),
            sources=[
                NamedSection(one["source"], _title(one), one["n"], known and not one.get("supported", True))
                for one in named[:MOST_SOURCES]
            ],
            more=max(0, len(named) - MOST_SOURCES),
            found=_closest(answer.get("also_found", ())),
            notes=make_remarks(answer, self._language),
            rated=answer["id"],
        )

    def _describe(self, status: Mapping[str, Any]) -> str:
        """Describe the current stage; "" if it is not worth showing."""
        if status["stage"] in WAITS:
            return say_beside(WAITS[status["stage"]], self._language, about=status.get("about", ""))
        seconds = status.get("seconds")
        if seconds is not None and seconds < WORTH_SAYING_S:
            return ""
        hits = self._hits[: status["passages"]] or self._hits
        pages = len({str(hit["source"]).partition("#")[0] for hit in hits})
        name = "reading" if seconds is None else "reading_for"
        return say_beside(name, self._language, n=pages, seconds=round(seconds or 0))


def explain(error: AskFailed, language: str) -> str:
    """Return why the service did not answer, and what to do, for a reader in a chat."""
    if error.kind in ADVISED:
        most = [say_beside("too_long_most", language, most=error.limit)] if error.limit else []
        why = " ".join([*most, say_beside(f"{error.kind}_why", language)])
        return f"{say_beside(error.kind, language)}\n{why}"
    if error.kind in PASSING | NOT_SET_UP:
        return say_beside(error.kind if error.kind in PASSING else "not_set_up", language)
    what, why = ("invalid", error.said) if 400 <= error.status < 500 else ("failed", say_beside("failed_why", language))
    return f"{say_beside(what, language)}\n{why}"


def _closest(hits: Sequence[Mapping[str, Any]]) -> list[NamedSection]:
    """Return the sections of the first hits."""
    sections = {str(hit["source"]): _title(hit) for hit in reversed(hits[:CLOSEST])}
    return [NamedSection(source, title) for source, title in reversed(sections.items())]


def _links(sources: Sequence[Mapping[str, Any]]) -> dict[int, str]:
    """Return the URL of each number: citations have numbers, hits count from 1."""
    return {int(source.get("n", place)): str(source["source"]) for place, source in enumerate(sources, 1)}


def _title(source: Mapping[str, Any]) -> str:
    return " › ".join(source.get("headings") or ()) or source.get("title") or source["source"]
