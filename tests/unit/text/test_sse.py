"""Server-sent events are parsed as in the HTML standard, at any split of their bytes."""

import asyncio
import itertools
from collections.abc import AsyncGenerator, Iterable

import pytest

from pipelines.text.sse import MOST_BYTES, Event, TooLong, events, sniff, whole

STREAM = (
    "\ufeff: hello\r\nretry: 3000\r\n\r\nid: 7\n\nevent: ping\n\ndata:\n\n"
    "data: é\ndata: b\n\nevent: x\rdata:c\r\rdata: d"
)
READ = [Event("", "é\nb"), Event("x", "c"), Event("", "d")]


async def come(pieces: Iterable[bytes]) -> AsyncGenerator[bytes, None]:
    for piece in pieces:
        yield piece


def read(pieces: Iterable[bytes]) -> list[Event]:
    async def collect() -> list[Event]:
        return [event async for event in events(come(pieces))]

    return asyncio.run(collect())


def test_events_without_data_are_ignored_at_any_byte_split() -> None:
    whole = STREAM.encode()
    assert read([whole]) == READ
    assert read([bytes([byte]) for byte in whole]) == READ
    for at in range(len(whole)):
        assert read([whole[:at], whole[at:]]) == READ


@pytest.mark.parametrize(("body", "streams"), [
    ("data: {}", True), (": comment", True), ("\n\nid: 1", True), ("\ufeffevent:x", True), ("retry", True),
    ('{"choices": []}', False), ('[{"error": {}}]', False), ("<html>", False), ("Internal error", False), ("", False),
    ("database: down", False),
])  # fmt: skip
def test_first_bytes_distinguish_a_stream_from_a_whole_reply(body: str, streams: bool) -> None:
    async def both() -> tuple[bool, bytes]:
        is_stream, rest = await sniff(come(bytes([byte]) for byte in body.encode()))
        return is_stream, b"".join([piece async for piece in rest])

    assert asyncio.run(both()) == (streams, body.encode())


@pytest.mark.parametrize("piece", [b"data: and so on, ", b"data: a\n", b": comment\n"])
def test_event_without_an_end_is_refused_before_it_fills_memory(piece: bytes) -> None:
    with pytest.raises(TooLong, match="more than 16,777,216 bytes"):
        read(piece * 2_000 for _ in itertools.count())


def test_reply_without_an_end_is_refused() -> None:
    async def read_all() -> None:
        streams, body = await sniff(come(b" " * 60_000 for _ in itertools.count()))
        assert not streams
        await whole(body)

    with pytest.raises(TooLong):
        asyncio.run(read_all())


def test_any_number_of_events_may_come() -> None:
    many = read([b"data: " + b"x" * (MOST_BYTES // 3) + b"\n\n"] * 5 + [b": ping\n\n"] * 3)
    assert len(many) == 5
