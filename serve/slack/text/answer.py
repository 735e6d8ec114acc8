"""An answer while it comes and when it is whole, as messages of Slack."""

from collections.abc import Mapping, Sequence
from typing import Any

from serve.slack.text.mrkdwn import Fragment, escape, link, to_fragments
from serve.slack.text.packing import Block, SlackMessage, context, pack_messages, pack_sections, section

MOST_SOURCES = 10  # more help nobody; the page has them all
CLOSEST = 3  # sections that are named while a model reads them
WORTH_SAYING_S = 2.0  # a shorter wait needs no message
RATE_UP, RATE_DOWN = "raydex_rate_up", "raydex_rate_down"
HELP = (
    "Ask me a question about the documentation: mention me with it in a channel, or write to me directly. "
    "Ask on in the same thread: I know what was said there."
)
# What an answer may go without, where a reader understands it.
LOST = {"truncated": "cut off by the length limit", "conversation": "without what was said before"}
CONFIDENCE = {
    "high": "supported by the sources",
    "some": "mostly supported by the sources",
    "low": "hardly supported by the sources: check them",
}


class AnswerView:
    """Takes the events of a stream and gives the messages that show what has come so far.

    `collection` is the one that is asked, "" for the service's default.
    """

    def __init__(self, collection: str = "") -> None:
        self._where = f"*{escape(collection)}*" if collection else "the documentation"
        self._hits: Sequence[Mapping[str, Any]] = ()
        self._status, self._text, self._failure = "", "", ""
        self._shown: list[SlackMessage] | None = None
        self.answer: Mapping[str, Any] | None = None

    def take(self, name: str, data: Mapping[str, Any]) -> None:
        """Take one event of /query/stream."""
        self._shown = None
        match name:
            case "hits":
                self._hits = data["hits"]
            case "status":
                self._status = _describe(data)
            case "delta":
                self._text = ("" if data.get("reset") else self._text) + str(data["text"])
            case "answer":
                self.answer = data

    def fail(self, why: str) -> None:
        """Say, after what has come, why no more comes."""
        self._failure, self._shown = why, None

    def wait(self, why: str) -> None:
        """Begin again: say what is waited for."""
        self._hits, self._text, self._status, self._shown = (), "", why, None

    def messages(self) -> list[SlackMessage]:
        """Return what to show now."""
        if self._shown is None:
            self._shown = self._messages()
        return self._shown

    def _messages(self) -> list[SlackMessage]:
        if self.answer is not None:
            return _whole(self.answer)
        fragments = to_fragments(self._text, _links(self._hits)) if self._text.strip() else []
        if self._failure:
            said = [Fragment(f":warning: {escape(self._failure)}")]
            return pack_messages([*fragments, *said])
        if fragments:
            return _with(pack_messages(fragments), [context("_Writing …_")])
        return _with(pack_messages([Fragment(self._progress())]), self._found())

    def _progress(self) -> str:
        if self._status:
            return f"_{self._status}_"
        if self._hits:
            return f"_Reading in {self._where} …_"
        return f"_Looking in {self._where} …_"

    def _found(self) -> list[Block]:
        """Return the closest sections, which a reader may open while a model still reads them."""
        hits = {str(hit["source"]): hit for hit in reversed(self._hits[:CLOSEST])}
        names = [link(source, _title(hit)) for source, hit in reversed(hits.items())]
        return [context("Found:", *names)] if names else []


def help_message() -> list[SlackMessage]:
    """Return what is said to a mention without a question."""
    return pack_messages([Fragment(HELP)])


def _whole(answer: Mapping[str, Any]) -> list[SlackMessage]:
    """Return the messages of a whole answer: the last one has its sources, how sure it is, and the buttons."""
    fragments = to_fragments(answer["answer"], _links(answer["citations"])) or [Fragment("_There is no answer._")]
    notes = _notes(answer)
    tail = [*_sources(answer), *([context(" · ".join(notes))] if notes else []), _buttons(answer["id"])]
    return _with(pack_messages(fragments), tail)


def _with(messages: list[SlackMessage], blocks: list[Block]) -> list[SlackMessage]:
    *before, last = messages
    return [*before, SlackMessage(last.text, [*last.blocks, *blocks])]


def _links(sources: Sequence[Mapping[str, Any]]) -> dict[int, str]:
    """Return the URL of each number: of citations by their own, of hits by their place."""
    return {int(source.get("n", place)): str(source["source"]) for place, source in enumerate(sources, 1)}


def _sources(answer: Mapping[str, Any]) -> list[Block]:
    citations = answer["citations"]
    if not citations:
        return []
    known = answer.get("known", True)
    lines = [Fragment("*Sources*" if known else "*The closest sections*")]
    lines += [Fragment(_source(citation, known), gap="\n") for citation in citations[:MOST_SOURCES]]
    if len(citations) > MOST_SOURCES:
        lines.append(Fragment(f"_and {len(citations) - MOST_SOURCES} more_", gap="\n"))
    return [section(text) for text in pack_sections(lines)]


def _source(citation: Mapping[str, Any], known: bool) -> str:
    weak = known and not citation.get("supported", True)
    return f"[{citation['n']}] {link(citation['source'], _title(citation))}{' _(weak support)_' if weak else ''}"


def _title(source: Mapping[str, Any]) -> str:
    return " › ".join(source.get("headings") or ()) or source.get("title") or source["source"]


def _notes(answer: Mapping[str, Any]) -> list[str]:
    """Return what is said quietly about an answer: who wrote it, how sure it is, what it went without."""
    notes = []
    if answer.get("written_by") == "person":
        notes.append("Answer written by a person")
    elif answer.get("known", True) and answer.get("confidence") in CONFIDENCE and answer["citations"]:
        notes.append(f"Confidence {answer['confidence']}: {CONFIDENCE[answer['confidence']]}")
    lost = set(answer.get("degraded", ()))
    parts = [LOST[part] for part in LOST if part in lost]
    if lost - LOST.keys():
        parts.append("some steps failed")
    return [escape(note) for note in (*notes, *parts)]


def _buttons(id: str) -> Block:
    def button(action: str, label: str, says: str) -> Block:
        text = {"type": "plain_text", "text": label, "emoji": True}
        return {"type": "button", "action_id": action, "value": id, "text": text, "accessibility_label": says}

    up = button(RATE_UP, ":thumbsup: Helpful", "This answer is helpful")
    down = button(RATE_DOWN, ":thumbsdown: Not helpful", "This answer is not helpful: say why")
    return {"type": "actions", "block_id": "raydex_rating", "elements": [up, down]}


def _describe(status: Mapping[str, Any]) -> str:
    """Return in words what is under way; "" if that is not worth saying."""
    if status["stage"] == "loading":
        return "Loading the index …"
    if status["stage"] == "thinking":
        return "Thinking …"
    seconds = status.get("seconds")
    if seconds is not None and seconds < WORTH_SAYING_S:
        return ""
    passages = f"{status['passages']} passage{'' if status['passages'] == 1 else 's'}"
    return f"Reading {passages}{'' if seconds is None else f', about {seconds:.0f} s'} …"
