"""Parses server-sent events from the body of an HTTP reply, as the HTML standard defines them.

Knows bytes and events; knows no protocol built on them.
"""

import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from dataclasses import dataclass, field

from pipelines.text.counts import counted

_LINE_END = re.compile(rb"\r\n|\n|\r(?=.)", re.DOTALL)  # a CR at the end may be the start of CRLF
_BOM = b"\xef\xbb\xbf"
_FIELD = re.compile(rb"\s*+(?:data|event|id|retry)?[ \t]*+(?::|$)")
_ENOUGH = 16  # bytes needed to recognize a stream of events: longer than any field name
MOST_BLANK = (
    64 << 10
)  # bytes of spaces and line ends before the first event; servers that keep a client waiting send few
MOST_BYTES = 16 << 20  # of one event, or of a reply that is no stream; long answers have 1 MB, with escapes and scores


class TooLong(ValueError):
    """A server sends an event, or a reply, that does not end."""

    def __init__(self) -> None:
        super().__init__(f"it sent more than {counted(MOST_BYTES, 'byte')}, and neither an event nor the reply ended")


@dataclass(frozen=True, slots=True)
class Event:
    """One event: its name ("" if it has none) and its data, the lines joined."""

    name: str
    data: str


async def events(body: AsyncIterator[bytes]) -> AsyncGenerator[Event, None]:
    """Yield the events that have data. Comments, ids, `retry` and events without data are skipped. Raises TooLong."""
    decoder = _Decoder()
    async for piece in body:
        for event in decoder.feed(piece):
            yield event
    for event in decoder.feed(b"\n\n"):  # some servers close the connection without the last blank line
        yield event


async def sniff(body: AsyncIterator[bytes]) -> tuple[bool, AsyncGenerator[bytes, None]]:
    """Return whether `body` is a stream of events, regardless of its media type, and the complete body."""
    start = b""
    async for piece in body:
        start += piece
        if len(start.removeprefix(_BOM).lstrip()) >= _ENOUGH:
            break
        if len(start) > MOST_BLANK:
            break
    return bool(_FIELD.match(start.removeprefix(_BOM))) and bool(start.strip()), _rejoin(start, body)


async def whole(body: AsyncIterator[bytes]) -> bytes:
    """Return a complete body that is no stream. Raises TooLong."""
    pieces, size = list[bytes](), 0
    async for piece in body:
        pieces.append(piece)
        size += len(piece)
        if size > MOST_BYTES:
            raise TooLong
    return b"".join(pieces)


async def _rejoin(start: bytes, rest: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    yield start
    async for piece in rest:
        yield piece


@dataclass(slots=True)
class _Decoder:
    """Turns bytes, split at any point, into events."""

    _left: list[bytes] = field(default_factory=list)  # the pieces of an unfinished line
    _name: str = ""
    _data: list[str] = field(default_factory=list)
    _begun: bool = False
    _size: int = 0  # bytes since the last event, with the piece in which it ended

    def feed(self, piece: bytes) -> Iterator[Event]:
        """Yield the events that end within `piece`. Raises TooLong."""
        self._size += len(piece)
        if self._size > MOST_BYTES:
            raise TooLong
        before = self._left[-1:]
        self._left.append(piece)
        if b"\n" not in piece and b"\r" not in piece and not (before and before[0].endswith(b"\r")):
            return
        lines = _LINE_END.split(b"".join(self._left))
        self._left = [lines.pop()]
        for line in lines:
            bare = line if self._begun else line.removeprefix(_BOM)
            self._begun = True
            if bare:
                self._add(bare.decode(errors="replace"))
                continue
            event, self._name, self._data = Event(self._name, "\n".join(self._data)), "", []
            self._size = len(self._left[0])
            if event.data.strip():
                yield event

    def _add(self, line: str) -> None:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._name = value
