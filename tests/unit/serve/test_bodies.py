"""The proxy waits for bodies itself: a request without its body delays nobody, and ends with 408."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from kit.api import serving
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from serve.guard.origin import network_of
from serve.proxy.address import PRIVATE
from serve.proxy.bodies import WholeBodies

LATE = b"Content-Length: 5000\r\n\r\nx"


class Places:
    """An application with a few places. Like in a replica, a request holds one from its head to its end."""

    def __init__(self, number: int = 4) -> None:
        self._places, self.seen = asyncio.Semaphore(number), list[str]()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        async with self._places:
            body = await Request(scope, receive).body()
            self.seen.append(f"{scope['method']} {body.decode()}")
            await JSONResponse({"bytes": len(body)})(scope, receive, send)


@asynccontextmanager
async def listening(**limits: Any) -> AsyncIterator[tuple[Any, Places]]:
    """Yield a function that sends a request on a new connection, and the places it reaches."""
    places, writers = Places(), list[asyncio.StreamWriter]()

    async def send(head: str, body: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writers.append(writer)
        writer.write(f"{head} HTTP/1.1\r\nHost: x\r\n".encode() + body)
        return reader, writer

    async with serving(WholeBodies(places, **limits)) as port:
        yield send, places
        for writer in writers:
            writer.close()


async def statuses(sent: list[Any]) -> list[int]:
    return [int((await asyncio.wait_for(reader.readline(), 30)).split()[1]) for reader, _ in sent]


@pytest.mark.parametrize("head", ["POST /query", "PUT /health"])
async def test_requests_with_missing_bodies_delay_nobody(head):
    async with listening(timeout_s=20, late_s=0.2) as (send, places):
        late = [await send(head, LATE) for _ in range(140)]
        assert await statuses([await send("POST /query", b"Content-Length: 2\r\n\r\nhi")]) == [200]
        assert places.seen == ["POST hi"]
        assert await statuses(late[:100]) == [408] * 100  # the oldest ones; the last few still wait


async def test_many_small_concurrent_bodies_are_all_read():
    async with listening(late_s=60) as (send, _):  # a busy machine takes seconds for so many connections
        asking = [await send("POST /query", b"Content-Length: 2\r\n\r\n") for _ in range(200)]
        for _, writer in asking:
            writer.write(b"hi")
        assert await statuses(asking) == [200] * 200


async def test_only_a_few_large_unfinished_bodies_are_allowed_at_once():
    async with listening(most_of_address=3) as (send, _):
        large = b"Content-Length: 900000\r\n\r\n" + b"x" * 70_000
        late = [await send("POST /query", large) for _ in range(8)]
        assert await statuses(late[:5]) == [408] * 5


async def test_request_without_a_body_waits_for_none():
    async with listening(timeout_s=20) as (send, places):
        assert await statuses([await send("GET /health", LATE) for _ in range(40)]) == [200] * 40
        assert places.seen == ["GET "] * 40


async def test_too_slow_or_too_large_body_is_refused_by_name():
    found = []
    async with listening(timeout_s=0.2, most_bytes=100) as (send, places):
        chunks = b"Transfer-Encoding: chunked\r\n\r\n7f\r\n" + b"x" * 127
        for body in (b"Content-Length: 50\r\n\r\nx", LATE, chunks):
            reader, _ = await send("POST /query", body)
            reply = (await asyncio.wait_for(reader.read(), 30)).decode()  # until the connection is closed
            found.append((int(reply.split()[1]), json.loads(reply.rpartition("\r\n\r\n")[2])["error"]))
        assert places.seen == []
    slow, large, chunked = found
    assert slow == (408, "the request's body did not arrive in time: send it at once")
    assert large == chunked == (413, "the request is larger than 100 bytes: send a smaller one")


async def test_slow_address_does_not_end_the_wait_of_another():
    """The oldest body of an address with too many is dropped first."""
    limits = WholeBodies(Places(), timeout_s=20, most_of_address=2, late_s=0.0)
    ended, asking = list[str](), list[asyncio.Task[None]]()

    async def never() -> Any:
        await asyncio.sleep(60)

    async def ask(name: str, address: str) -> None:
        async def reply(message: Any) -> None:
            if message["type"] == "http.response.start":
                ended.append(f"{name} {message['status']}")

        scope = {"type": "http", "method": "POST", "path": "/", "headers": [], "client": (address, 1)}
        await limits(scope, never, reply)

    for name, address in (("first", "203.0.113.1"), *((f"late {n}", "203.0.113.2") for n in range(4))):
        asking.append(asyncio.create_task(ask(name, address)))
        await asyncio.sleep(0)
    while len(ended) < 2:
        await asyncio.sleep(0.01)
    for task in asking:
        task.cancel()
    assert ended == ["late 0 408", "late 1 408"]


@pytest.mark.parametrize(
    ("peer", "forwarded", "address"),
    [
        ("8.8.8.8", "", "8.8.8.8"),
        ("8.8.8.8", "198.51.100.1", "8.8.8.8"),
        ("10.0.0.1", "198.51.100.1, 198.51.100.2", "198.51.100.2"),
        ("127.0.0.1", "", "127.0.0.1"),
        ("2001:db8:1:2::3", "", "2001:db8:1:2::/64"),
    ],
)
def test_forwarded_address_is_trusted_only_from_a_local_proxy(peer, forwarded, address):
    headers = [(b"x-forwarded-for", forwarded.encode())] if forwarded else []
    assert network_of({"type": "http", "client": (peer, 1), "headers": headers}, PRIVATE) == address
