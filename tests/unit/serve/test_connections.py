"""Connections kept open by clients end: late and endless request heads, idle ones, unread replies."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from kit.api import serving
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from serve.proxy.connections import BoundedConnection
from serve.proxy.waiting import Waiting

LONG = b"x" * 8_000_000  # more than the buffers of both sides
PLACES = 4


class Replica:
    """Answers /long with LONG. A request holds one of a few places from its head until its reply is sent."""

    def __init__(self) -> None:
        self.places = asyncio.Semaphore(PLACES)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self.places:
            body = await Request(scope, receive).body()
            await send({"type": "http.response.start", "status": 200, "headers": []})
            if scope["path"] == "/long":
                for at in range(0, len(LONG), 64_000):
                    await send({"type": "http.response.body", "body": LONG[at : at + 64_000], "more_body": True})
            await send({"type": "http.response.body", "body": body})


@asynccontextmanager
async def listening(idle: int = 100, of_address: int = 100, stalled: int = 100, **limits: float) -> AsyncIterator[int]:
    class Connection(BoundedConnection):
        pass

    Connection.idle = Waiting(BoundedConnection.end, of_address, idle)
    Connection.stalled = Waiting(BoundedConnection.end, stalled, stalled)
    Connection.slow_s = 0.1
    for name, value in limits.items():
        setattr(Connection, name, value)
    async with serving(Replica(), http=Connection, access_log=False) as port:
        yield port


async def connect(port: int, sent: bytes = b"") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(sent)
    return reader, writer


async def reply(port: int, path: str = "/") -> bytes:
    reader, writer = await connect(port, f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    found = await asyncio.wait_for(reader.read(), 30)
    writer.close()
    return found


async def deaf(port: int) -> asyncio.StreamWriter:
    """Request LONG and read nothing of it."""
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2_048)
    made.setblocking(False)
    await asyncio.get_running_loop().sock_connect(made, ("127.0.0.1", port))
    _, writer = await asyncio.open_connection(sock=made)
    writer.transport.pause_reading()  # type: ignore[attr-defined]
    writer.write(b"GET /long HTTP/1.1\r\nHost: x\r\n\r\n")
    return writer


@pytest.mark.parametrize(
    ("sent", "ends"),
    [
        (b"", b""),
        (b"\r\n", b""),
        (b"GET / HT", b"HTTP/1.1 408 Request Timeout\r\n"),
        (b"GET / HTTP/1.1\r\nHost: x\r\nX-A: b", b"HTTP/1.1 408 Request Timeout\r\n"),
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HT", b"HTTP/1.1 200 OK\r\n"),
    ],
)
async def test_late_request_head_ends_its_connection(sent: bytes, ends: bytes) -> None:
    async with listening(head_timeout_s=0.2) as port:
        reader, writer = await connect(port, sent)
        found = await asyncio.wait_for(reader.read(), 30)
        writer.close()
    assert found.startswith(ends)


async def test_trickling_request_head_is_late_too() -> None:
    async def trickle(writer: asyncio.StreamWriter) -> None:
        while True:
            writer.write(b"a")
            await asyncio.sleep(0.02)

    async with listening(head_timeout_s=0.3) as port:
        reader, writer = await connect(port, b"GET / HTTP/1.1\r\nX-A: ")
        sending = asyncio.create_task(trickle(writer))
        status = await asyncio.wait_for(reader.readline(), 30)
        sending.cancel()
        writer.close()
    assert b" 408 " in status


async def test_endless_request_head_is_refused() -> None:
    async with listening() as port:
        reader, writer = await connect(port, b"GET / HTTP/1.1\r\nX-A: ")
        sent, status = 0, asyncio.create_task(reader.readline())
        while not status.done() and sent < 50_000_000:
            writer.write(b"a" * 10_000)
            sent += 10_000
            await asyncio.sleep(0)
        writer.close()
    assert b" 431 " in await status and sent < 10_000_000


async def test_many_idle_connections_leave_room_for_others() -> None:
    """The oldest one ends. A client that was just answered is not the oldest."""
    async with listening(of_address=10) as port:
        idle = [await connect(port, b"GET / HT" if n % 2 else b"") for n in range(30)]
        found = await reply(port)
        await asyncio.sleep(0.2)
        ended = [reader.at_eof() for reader, _ in idle]
        for _, writer in idle:
            writer.close()
    assert ended[:20] == [True] * 20 and ended[22:] == [False] * 8 and found.startswith(b"HTTP/1.1 200")


async def test_connection_is_reused_after_a_reply_and_a_slow_body() -> None:
    async with listening(head_timeout_s=0.2) as port:
        reader, writer = await connect(port, b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n")
        await asyncio.sleep(0.4)  # bodies have their own limit
        writer.write(b"hi")
        first = await reader.readuntil(b"\r\n0\r\n\r\n")
        await asyncio.sleep(0.4)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        second = await reader.read()
        writer.close()
    assert (first + second).count(b"HTTP/1.1 200") == 2


@pytest.mark.parametrize("limits", [{"stalled": 2}, {"stall_s": 0.2}])
async def test_unread_replies_delay_nobody(limits: dict[str, float]) -> None:
    async with listening(**limits) as port:  # type: ignore[arg-type]
        readers = [await deaf(port) for _ in range(3 * PLACES)]
        found = await reply(port)
        for writer in readers:
            writer.transport.abort()
    assert found.startswith(b"HTTP/1.1 200")


async def test_slow_reader_gets_the_whole_reply() -> None:
    async with listening(stall_s=1.5, stalled=1) as port:
        reader, writer = await connect(port, b"GET /long HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        size = 0
        while part := await asyncio.wait_for(reader.read(200_000), 30):
            size += len(part)
            await asyncio.sleep(0.05)
        writer.close()
    assert size > len(LONG)
