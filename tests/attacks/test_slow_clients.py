"""Clients that send or read nothing hold up nobody: bodies and heads that never come, idle sockets, unread replies."""

import asyncio
import resource
import socket
import time
from collections.abc import Iterator

import httpx
import pytest
from kit.cluster import Service
from kit.databases import DatabaseServer
from kit.workshop import Workshop

from pipelines.store import Store
from serve.settings import Settings

pytestmark = pytest.mark.slow

HOST = b"Host: 127.0.0.1\r\n"
LATE = b"Content-Type: application/json\r\nContent-Length: 5000\r\n\r\n{"
SENT = {
    "GET with a body that never comes": b"GET /health HTTP/1.1\r\n" + HOST + LATE,
    "question that never comes": b"POST /query HTTP/1.1\r\n" + HOST + LATE,
    "unknown route, body that never comes": b"PUT /nowhere HTTP/1.1\r\n" + HOST + LATE,
    "head without an end": b"GET /health HTTP/1.1\r\n" + HOST + b"X-A: ",
    "nothing": b"",
    "idle after a reply": b"GET /health HTTP/1.1\r\n" + HOST + b"\r\n",
    "unread pages": b"GET /llms-full.txt HTTP/1.1\r\n" + HOST + b"\r\n",
    "unread file": b"GET /web/vendor/highlight.js HTTP/1.1\r\n" + HOST + b"\r\n",
}
# So many requests for all pages are work, not waiting: more than two cores do within ANSWER_S.
WORK = ("unread pages", 5_000)
CASES = [
    pytest.param(kind, number, marks=[pytest.mark.exhaustive] if number > 200 else [])
    for kind in SENT
    for number in (200, 1_000, 5_000)
    if (kind, number) != WORK
]
ANSWER_S = 15.0  # far below the 30 s for which such requests kept everybody waiting


@pytest.fixture(scope="module")
def url(service: Service, server: DatabaseServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with server.database() as database, Store(database) as store:
        Workshop(store).reindex(
            {f"{n}.html": {"part": f"Word{n} sets the limit of batches. " * 400} for n in range(30)}
        )
        settings = Settings(database_url=database, home=tmp_path_factory.mktemp("home"), cpus=0.1)
        with service.deployed(settings):
            service.wait_until_ready()
            yield service.url


async def open_deaf(port: int, sent: bytes) -> socket.socket:
    """Send `sent` from a socket that nobody reads."""
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2_048)
    made.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(made, ("127.0.0.1", port))
    await loop.sock_sendall(made, sent)
    return made


async def statuses_beside(url: str, sent: bytes, number: int) -> list[int]:
    """Return the statuses of questions that are asked while `number` such clients are there."""
    clients = list[socket.socket]()
    try:
        for _ in range(number):
            clients.append(await open_deaf(httpx.URL(url).port or 0, sent))
        async with httpx.AsyncClient(base_url=url, timeout=ANSWER_S) as http:
            return await asyncio.gather(*(status_of(http, f"limit of batches {n}") for n in range(5)))
    finally:
        for client in clients:
            client.close()


async def status_of(http: httpx.AsyncClient, question: str) -> int:
    """Return the status of a question that is asked again when a reply says so: thousands at once fill every slot."""
    until = time.monotonic() + ANSWER_S
    while True:
        reply = await http.post("/search", json={"question": question})
        again_s = float(reply.headers.get("Retry-After", ANSWER_S))
        if reply.status_code != 503 or time.monotonic() + again_s > until:
            return reply.status_code
        await asyncio.sleep(again_s)


@pytest.mark.parametrize(("kind", "number"), CASES)
def test_clients_that_send_or_read_nothing_hold_up_no_question(url: str, kind: str, number: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < number + 500:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, number + 500), hard))
    assert asyncio.run(statuses_beside(url, SENT[kind], number)) == [200] * 5
