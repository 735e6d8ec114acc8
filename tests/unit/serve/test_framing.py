"""The end of a request on its connection: one answer each, or the connection closes, for any packet split."""

import asyncio
import re
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from unittest.mock import Mock

import pytest
from kit.api import serving
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from serve.proxy.bodies import WholeBodies
from serve.proxy.connections import BYTES_OF_TURN, BoundedConnection, turns_of
from serve.proxy.framing import MOST_HEADER_LINES, PIECE_BYTES
from serve.proxy.turns import AddressTurns, Asker
from serve.proxy.waiting import Waiting

HIDDEN = b"GET /hidden HTTP/1.1\r\nHost: x\r\n\r\n"
BODY = b'{"question": "%s"}' % HIDDEN
LENGTH = b"Content-Length: %d\r\n" % len(BODY)
CHUNKED = b"Transfer-Encoding: chunked\r\n"
CHUNKS = b"5\r\n" + BODY[:5] + b'\r\n%x;note="a b"\r\n' % (len(BODY) - 5) + BODY[5:] + b"\r\n0\r\n\r\n"
UPGRADES = [
    (b"Upgrade, HTTP2-Settings", b"h2c"),
    (b"upgrade", b"websocket"),
    (b"keep-alive, UPGRADE", b"h2c, websocket"),
    (b"Upgrade", b"TLS/1.0"),
    (b"Upgrade", b""),
    (b"Upgrade,", b"x"),
    (b"keep-alive", b"h2c"),
    (b"upgrade,upgrade", b"HTTP/2.0"),
]
ANSWER = re.compile(rb"HTTP/1\.1 (\d{3}) ")


class Echo:
    """Answers with the received body, and records each request's path and headers."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, bytes]] = []
        self.headers: list[dict[bytes, bytes]] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = await Request(scope, receive).body()
        self.seen.append((scope["path"], body))
        self.headers.append(dict(scope["headers"]))
        head = [(b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 200, "headers": head})
        await send({"type": "http.response.body", "body": body})


@asynccontextmanager
async def listening(
    app: Any = None, turns: AddressTurns | None = None, whole: bool = True
) -> AsyncIterator[tuple[int, Any]]:
    class Connection(BoundedConnection):
        pass

    Connection.idle, Connection.stalled = (Waiting(BoundedConnection.end, 1_000, 1_000) for _ in range(2))
    Connection.turns = turns
    app = app or Echo()
    async with serving(WholeBodies(app) if whole else app, http=Connection, access_log=False) as port:
        yield port, app


async def ask(port: int, *pieces: bytes) -> bytes:
    """Send the pieces in separate packets, and return everything received until the connection closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for piece in pieces:
        writer.write(piece)
        for _ in range(4):  # until the server has read it
            await asyncio.sleep(0)
    try:
        return await asyncio.wait_for(reader.read(), 30)
    finally:
        writer.close()


def post(*lines: bytes, path: bytes = b"/query", version: bytes = b"1.1") -> bytes:
    return b"POST %s HTTP/%s\r\nHost: x\r\n%s\r\n" % (path, version, b"".join(lines))


LAST = b"GET /last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


@pytest.mark.parametrize(("connection", "upgrade"), UPGRADES)
@pytest.mark.parametrize("framing", ["length", "chunks"])
async def test_upgrade_is_ignored_and_its_body_read_at_every_split(connection, upgrade, framing):
    asked = b"Connection: %s\r\nUpgrade: %s\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n" % (connection, upgrade)
    sent = post(asked, LENGTH) + BODY if framing == "length" else post(asked, CHUNKED) + CHUNKS
    async with listening() as (port, app):
        for at in range(0, len(sent) + 1):
            app.seen.clear()
            found = await ask(port, sent[:at], sent[at:] + LAST)
            assert app.seen == [("/query", BODY), ("/last", b"")], at
            assert ANSWER.findall(found) == [b"200", b"200"]


async def test_bytes_of_an_upgrade_can_arrive_one_by_one():
    sent = post(b"Connection: Upgrade\r\nUpgrade: h2c\r\n", LENGTH) + BODY + LAST
    async with listening() as (port, app):
        await ask(port, *(sent[n : n + 1] for n in range(len(sent))))
        assert app.seen == [("/query", BODY), ("/last", b"")]


async def test_websocket_request_is_answered_as_a_plain_request():
    sent = (
        b"GET /a HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )
    async with listening() as (port, app):
        assert ANSWER.findall(await ask(port, sent + HIDDEN + LAST)) == [b"200"] * 3
        assert [path for path, _ in app.seen] == ["/a", "/hidden", "/last"]


WRONG = {
    "length and chunks": post(LENGTH, CHUNKED) + CHUNKS,
    "chunks and length": post(CHUNKED, b"Content-Length: 4\r\n") + CHUNKS,
    "two lengths": post(b"Content-Length: 4\r\nContent-Length: 4\r\n") + BODY,
    "list of lengths": post(b"Content-Length: 4, 4\r\n") + BODY,
    "signed length": post(b"Content-Length: +4\r\n") + BODY,
    "space before the colon": post(b"Content-Length : 4\r\n") + BODY,
    "other encoding": post(b"Transfer-Encoding: gzip\r\n") + CHUNKS,
    "encodings": post(b"Transfer-Encoding: gzip, chunked\r\n") + CHUNKS,
    "two encodings": post(b"Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n") + CHUNKS,
    "chunks of HTTP/1.0": post(CHUNKED, version=b"1.0") + CHUNKS,
    "folded line": post(b"X-A: b\r\n c\r\n", LENGTH) + BODY,
    "folded encoding": post(b"Transfer-Encoding:\r\n chunked\r\n") + CHUNKS,
    "bare line feeds": b"POST /query HTTP/1.1\nHost: x\n" + LENGTH + b"\n" + BODY,
    "bare line feed": post(b"X-A: b\n", LENGTH) + BODY,
    "bare carriage return": post(b"X-A: b\r", LENGTH) + BODY,
    "two hosts": post(b"Host: y\r\n", LENGTH) + BODY,
    "HTTP/0.9": b"GET /hidden\r\n\r\n",
    "HTTP/2": b"GET /hidden HTTP/2.0\r\n\r\n",
    "HTTP/2 at once": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "tunnel": b"CONNECT hidden:80 HTTP/1.1\r\nHost: hidden\r\n\r\n",
    "upgrade with length and chunks": post(b"Connection: upgrade\r\nUpgrade: h2c\r\n", LENGTH, CHUNKED) + CHUNKS,
    "upgrade of HTTP/1.0 chunks": post(b"Connection: upgrade\r\nUpgrade: a\r\n", CHUNKED, version=b"1.0") + CHUNKS,
    "many header lines": post(*[b"a:\r\n"] * (MOST_HEADER_LINES + 1), LENGTH) + BODY,
}
WRONG_BODIES = {
    "line feed after a size": b"5\n" + BODY[:5] + b"\r\n0\r\n\r\n",
    "line feed in an extension": b"5;a\n" + BODY[:5] + b"\r\n0\r\n\r\n",
    "space after a size": b"5 \r\n" + BODY[:5] + b"\r\n0\r\n\r\n",
    "no size": b"\r\n" + HIDDEN,
    "signed size": b"-5\r\n" + HIDDEN,
    "size of 17 digits": b"1" + b"0" * 16 + b"5\r\n" + HIDDEN,
    "long chunk": b"3\r\n" + BODY[:5] + b"\r\n0\r\n\r\n",
    "endless extension": b"5;" + b"a" * 100_000,
    "many chunks": b"1\r\nx\r\n" * 20_000,
    "many trailers": CHUNKS[:-2] + b"a:\r\n" * 200 + b"\r\n",
}


@pytest.mark.parametrize("sent", WRONG.values(), ids=list(WRONG))
async def test_ambiguous_request_head_ends_its_connection(sent):
    async with listening() as (port, app):
        for at in {*range(0, len(sent), 7), len(sent)}:
            first = await ask(port, sent[:at], sent[at:] + HIDDEN)
            assert len(ANSWER.findall(first)) == 1 and ANSWER.findall(first)[0][:1] in b"45", (at, first)
        assert app.seen == []
        first = b"GET /first HTTP/1.1\r\nHost: x\r\n\r\n"
        assert ANSWER.findall(await ask(port, first + sent + HIDDEN)) == [b"200"]
        assert app.seen == [("/first", b"")]


@pytest.mark.parametrize("body", WRONG_BODIES.values(), ids=list(WRONG_BODIES))
@pytest.mark.parametrize("asked", [b"", b"Connection: upgrade\r\nUpgrade: h2c\r\n"])
async def test_ambiguous_chunks_end_their_connection(body, asked):
    async with listening() as (port, app):
        found = await ask(port, post(asked, CHUNKED), body + HIDDEN)
        assert ANSWER.findall(found) in ([b"400"], [b"431"]) and app.seen == []
        async with asyncio.timeout(10):
            found = await ask(port, HIDDEN + post(CHUNKED) + body + HIDDEN)
        assert ANSWER.findall(found) in ([b"200"], [b"200", b"400"], [b"200", b"431"])
        assert app.seen == [("/hidden", b"")]


async def test_trailers_are_not_headers():
    lines = b"X-Forwarded-For: 203.0.113.9\r\nAuthorization: Bearer a\r\nConnection: upgrade\r\nUpgrade: h2c\r\n"
    async with listening() as (port, app):
        await ask(port, post(CHUNKED) + CHUNKS[:-2] + lines + b"\r\n" + LAST)
        assert app.seen == [("/query", BODY), ("/last", b"")]
        assert not {b"x-forwarded-for", b"authorization", b"upgrade"} & app.headers[0].keys()


async def test_running_reply_is_not_cut_by_the_next_request():
    go = asyncio.Event()

    async def slow(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"6")]})
        await send({"type": "http.response.body", "body": b"abc", "more_body": True})
        await go.wait()
        await send({"type": "http.response.body", "body": b"def"})

    async with listening(slow) as (port, _):
        asking = asyncio.create_task(ask(port, HIDDEN, b"\r\n\r\nwrong wrong\r\n\r\n"))
        await asyncio.sleep(0.1)
        go.set()
        found = await asking
    assert found.endswith(b"abcdef") and len(ANSWER.findall(found)) == 1


# ------------------------------------------------------------------------------------------- work, counted


async def test_pipelined_requests_are_parsed_as_they_are_answered():
    class Hangs(Echo):
        async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
            self.seen.append((scope["path"], b""))
            await asyncio.sleep(60)

    parsed = 0

    class Counting(BoundedConnection):
        def on_message_begin(self) -> None:
            nonlocal parsed
            parsed += 1
            super().on_message_begin()

    Counting.idle, Counting.stalled = (Waiting(BoundedConnection.end, 1_000, 1_000) for _ in range(2))
    app = Hangs()
    async with serving(app, http=Counting, access_log=False, timeout_graceful_shutdown=1) as port:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(HIDDEN * 4_500)
        while not app.seen:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        writer.transport.abort()
    assert len(app.seen) == 1 and parsed <= PIECE_BYTES // len(HIDDEN) + 1


async def test_pipelined_requests_are_answered_in_order():
    sent = b"".join(post(b"Content-Length: 3\r\n", path=b"/%d" % n) + b"%03d" % n for n in range(500))
    async with listening() as (port, app):
        found = await ask(port, sent + LAST)
    assert len(ANSWER.findall(found)) == 501
    assert app.seen == [*((f"/{n}", b"%03d" % n) for n in range(500)), ("/last", b"")]


async def test_address_starts_no_more_requests_than_its_turns():
    """This holds for any number of simultaneous requests. A connection with its first request goes next."""
    async with listening(turns=AddressTurns(20.0, 5.0, 1_000)) as (port, app):
        began = asyncio.get_running_loop().time()
        flood = [await asyncio.open_connection("127.0.0.1", port) for _ in range(16)]
        for _, writer in flood:
            writer.write(HIDDEN * 300)
        while len(app.seen) < 20:
            await asyncio.sleep(0.01)
        await ask(port, LAST)
        passed, seen = asyncio.get_running_loop().time() - began, list(app.seen)
        for _, writer in flood:
            writer.transport.abort()
    assert seen.index(("/last", b"")) <= 20 + 2
    assert len(seen) <= 5 + 20 * passed + 1


@pytest.mark.parametrize("chunked", [False, True])
async def test_large_bodies_count_as_several_requests(chunked: bool):
    body = b"x" * (10 * BYTES_OF_TURN)
    sized = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body) if chunked else body
    header = b"Transfer-Encoding: chunked\r\n" if chunked else b"Content-Length: %d\r\n" % len(body)
    async with listening(turns=AddressTurns(20.0, 10.0, 1_000)) as (port, app):
        began = asyncio.get_running_loop().time()
        for _ in range(4):
            await ask(port, post(header, b"Connection: close\r\n") + sized)
        passed = asyncio.get_running_loop().time() - began
    assert [len(read) for _, read in app.seen] == [len(body)] * 4
    assert passed > 1.0  # 33 turns before the last one; 10 were available


async def test_small_bodies_of_one_connection_are_not_summed():
    body = b"x" * (BYTES_OF_TURN - 1)
    turns = AddressTurns(20.0, 10.0, 1_000)
    turns.charge = Mock()  # type: ignore[method-assign]
    async with listening(turns=turns) as (port, app):
        request = post(b"Content-Length: %d\r\n" % len(body)) + body
        await ask(port, request + request + post(b"Content-Length: 1\r\n", b"Connection: close\r\n") + b"x")
    assert len(app.seen) == 3 and not turns.charge.called


async def test_first_waiting_request_is_refused_if_too_many_wait():
    async with listening(turns=AddressTurns(0.01, 1.0, 2)) as (port, app):
        asking = [asyncio.create_task(ask(port, post(LENGTH)))]
        for _ in range(4):
            await asyncio.sleep(0.1)
            asking.append(asyncio.create_task(ask(port, HIDDEN)))
        refused = [await task for task in asking[1:3]]
        assert [ANSWER.findall(found) for found in refused] == [[b"429"], [b"429"]] and app.seen == []
        for task in asking:
            task.cancel()


class Line:
    """Records who begins and who is refused."""

    def __init__(self, turns: AddressTurns) -> None:
        self._turns, self.notes = turns, list[str]()

    def take(self, address: str, name: str, asker: Asker) -> None:
        begin, refuse = (lambda word=word: self.notes.append(f"{name} {word}") for word in ("begins", "is refused"))
        self._turns.take(address, asker, begin, refuse)


async def test_another_address_does_not_wait():
    line = Line(AddressTurns(0.01, 1.0, 100))
    for n in range(20):
        line.take("203.0.113.1", f"busy {n}", Asker())
    line.take("203.0.113.2", "other", Asker())
    assert line.notes == ["busy 0 begins", "other begins"]


async def test_question_passes_a_thousand_waiting_requests():
    line, busy = Line(AddressTurns(2.0, 1.0, 100)), Asker()
    for n in range(1_000):
        line.take("203.0.113.1", "waits", Asker() if n % 2 else busy)
    line.notes.clear()
    line.take("203.0.113.1", "question", Asker())
    while not any("begins" in note for note in line.notes):
        await asyncio.sleep(0.005)
    assert line.notes == ["waits is refused", "question begins"]


def test_no_rate_means_no_limit():
    assert turns_of(0) is None and turns_of(60) is not None
