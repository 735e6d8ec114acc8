"""Floods a running service from other addresses of this machine, and asks it questions at the same time.

    RAYDEX_HOME=… raydex serve --port 8000 --no-llm            # with two collections, one of them with many pages
    python -m kit.floods http://127.0.0.1:8000 docs big        # in `tests`: a line for each flood

Questions come from 127.0.0.1, floods from 127.0.0.2 and others (Linux has them all). The table shows the median time of
questions during each flood, divided by their median just before it, because other work on the machine slows both. The
flood needs a CPU too. So each flood is also sent to a server that only replies, at the rate that the service allows one
address. The last ratio is the median time of questions during that flood. The service has no part in it.
"""

import asyncio
import contextlib
import http.client
import json
import multiprocessing
import socket
import statistics
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

ASKING = "127.0.0.1"
FIELDS = 70_000
QUESTION = "What sets the limit of batches?"
ASKED, SETTLED_S = 25, 2.0  # questions during each flood; seconds that a flood runs before them
MOST_RATIO = 2.0
REPLIES_A_SECOND = 100  # of the server that only replies; undelayed_rate allows one address as many questions
LONG_REPLY = 500_000  # bytes of text from many pages


@dataclass
class Service:
    """The service's address. Questions go to `docs`; `big` has many pages."""

    port: int
    docs: str
    big: str
    flooded: int = 0  # port that floods go to, if it is a different one
    over: threading.Event = field(default_factory=threading.Event)
    statuses: Counter[str] = field(default_factory=Counter)

    def connect(self, address: str) -> socket.socket:
        made = socket.create_connection(("127.0.0.1", self.flooded or self.port), 10, (address, 0))
        made.settimeout(10)
        return made

    def ask(self) -> float:
        """Ask a question and return its duration in seconds."""
        began = time.perf_counter()
        status, reply = self.send(ASKING, "POST", "/query", {"question": QUESTION, "collection": self.docs})
        if status != 200:
            raise SystemExit(f"a question was answered with {status}: {reply[:200]!r}")
        return time.perf_counter() - began

    def send(self, address: str, method: str, path: str, body: object = None, **headers: str) -> tuple[int, bytes]:
        port = self.flooded if self.flooded and address != ASKING else self.port
        one = http.client.HTTPConnection("127.0.0.1", port, timeout=60, source_address=(address, 0))
        try:
            text = body if isinstance(body, bytes | None) else json.dumps(body).encode()
            one.request(method, path, text, {"Content-Type": "application/json", **headers})
            reply = one.getresponse()
            return reply.status, reply.read()
        finally:
            one.close()


Flood = Callable[[Service, int], None]


def unknown_fields(path: str, **before: object) -> Flood:
    body = json.dumps({**before, **{f"a{n}": 0 for n in range(FIELDS)}}).encode()
    signed = {"X-Hub-Signature-256": f"sha256={'0' * 64}"}
    return lambda service, n: _count(service, service.send("127.0.0.9", "POST", path, body, **signed)[0])


def variables(service: Service, n: int) -> None:
    body = {"question": QUESTION, "variables": {f"a{n}": "" for n in range(FIELDS)}}
    _count(service, service.send("127.0.0.9", "POST", "/query", body)[0])


def announced(service: Service, n: int) -> None:
    unknown_fields(f"/v1/collections/{service.docs}/changes")(service, n)


def pipelined(service: Service, n: int) -> None:
    one = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    _send_and_read(service, "127.0.0.9", one * 4_500)


def header_lines(service: Service, n: int) -> None:
    lines = "".join(f"X-{n}: 1\r\n" for n in range(12_000)).encode()
    _send_and_read(service, "127.0.0.9", b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n" + lines + b"\r\n")


def health(service: Service, n: int) -> None:
    with contextlib.closing(service.connect("127.0.0.9")) as sock, sock.makefile("rb") as replies:
        while not service.over.is_set():
            sock.sendall(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            head = _head(replies)
            _count(service, int(head.split()[1]))
            replies.read(int(head.lower().partition(b"content-length:")[2].split(b"\r")[0]))


def contents(service: Service, n: int) -> None:
    _count(service, service.send(f"127.0.0.{n + 10}", "GET", f"/collections/{service.big}/llms.txt")[0])


def slow_readers(service: Service, n: int) -> None:
    sock = socket.socket()
    with contextlib.closing(sock):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2_048)
        sock.bind(("127.0.0.9", 0))
        sock.settimeout(10)
        sock.connect(("127.0.0.1", service.flooded or service.port))
        sock.sendall(f"GET /collections/{service.big}/llms-full.txt HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        while not service.over.wait(0.5):
            if not sock.recv(1_024):
                return


def _count(service: Service, status: int) -> None:
    service.statuses[str(status)] += 1


def _head(replies: "socket.SocketIO | object") -> bytes:
    lines = b""
    while not lines.endswith(b"\r\n\r\n"):
        if not (line := replies.readline()):  # type: ignore[attr-defined]
            raise ConnectionError("closed")
        lines += line
    return lines


def _send_and_read(service: Service, address: str, sent: bytes) -> None:
    """Send everything at once, and read until the connection is closed or has been silent for long."""
    with contextlib.closing(service.connect(address)) as sock:
        sender = threading.Thread(target=_quietly, args=(sock.sendall, sent), daemon=True)
        sender.start()
        while not service.over.is_set() and (piece := sock.recv(65_536)):
            for status in (b"200", b"400", b"429", b"431", b"503"):
                service.statuses[status.decode()] += piece.count(b"HTTP/1.1 " + status)


def _quietly(send: Callable[[bytes], None], sent: bytes) -> None:
    with contextlib.suppress(OSError):
        send(sent)


FLOODS: dict[str, tuple[int, Flood]] = {
    f"{FIELDS:,} unknown fields to /feedback, 4 at once": (4, unknown_fields("/feedback", rating=1)),
    f"{FIELDS:,} unknown fields to /changes, wrong signature, 4 at once": (4, announced),
    f"a question with {FIELDS:,} variables, 4 at once": (4, variables),
    "4,500 pipelined requests from 16 connections": (16, pipelined),
    "12,000 header lines, 16 connections": (16, header_lines),
    "GET /health from 64 connections": (64, health),
    "llms.txt of many pages, ten addresses": (10, contents),
    "eight slow readers of llms-full.txt": (8, slow_readers),
}


@contextlib.contextmanager
def flooding(service: Service, number: int, flood: Flood) -> Iterator[None]:
    """Flood the service repeatedly in `number` threads of another process while in the block."""
    service.statuses.clear()
    fork = multiprocessing.get_context("fork")
    over, counted = fork.Event(), fork.SimpleQueue()
    process = fork.Process(target=_flood, args=(service, number, flood, over, counted), daemon=True)
    process.start()
    time.sleep(SETTLED_S)
    try:
        yield
    finally:
        over.set()
        service.statuses = counted.get()
        process.kill()


def _flood(service: Service, number: int, flood: Flood, over: Any, counted: Any) -> None:
    def work(n: int) -> None:
        while not service.over.is_set():
            try:
                flood(service, n)
            except (OSError, http.client.HTTPException, ValueError) as error:
                service.statuses[type(error).__name__] += 1
                service.over.wait(0.05)

    threads = [threading.Thread(target=work, args=(n,), daemon=True) for n in range(number)]
    for one in threads:
        one.start()
    over.wait()
    service.over.set()
    counted.put(service.statuses.copy())


@contextlib.contextmanager
def replying() -> Iterator[int]:
    """Run a server that replies to everything, in its own process, and yield its port."""
    sock = socket.create_server(("127.0.0.1", 0), backlog=512)
    process = multiprocessing.get_context("fork").Process(target=_reply_to_all, args=(sock,), daemon=True)
    process.start()
    try:
        yield sock.getsockname()[1]
    finally:
        process.kill()
        sock.close()


def _reply_to_all(sock: socket.socket) -> None:
    begun: list[float] = [0.0]

    async def turn() -> None:
        now = time.monotonic()
        begun[0] = max(now, begun[0] + 1 / REPLIES_A_SECOND)
        await asyncio.sleep(begun[0] - now)

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            while head := (await reader.readuntil(b"\r\n\r\n")).lower():
                if length := head.partition(b"content-length:")[2].split(b"\r")[0]:
                    await reader.readexactly(int(length))
                await turn()
                body = b"x" * (LONG_REPLY if b"llms" in head else 2)
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
                await writer.drain()
        writer.close()

    async def serve() -> None:
        async with await asyncio.start_server(talk, sock=sock, limit=1 << 20) as server:
            await server.serve_forever()

    asyncio.run(serve())


def ask_often(service: Service) -> float:
    """Ask questions one after the other and return their median duration in seconds."""
    return statistics.median(service.ask() for _ in range(ASKED))


def main(url: str, docs: str, big: str, *names: str) -> None:
    """Print the table of the floods whose names contain one of `names`."""
    service, slow = Service(urlsplit(url).port or 8000, docs, big), 0
    ask_often(service)
    print(f"{'flood':64}  {'alone':>7}  {'beside':>7}  {'ratio':>5}  {'client':>6}  replies to the flood")
    for name, (number, flood) in FLOODS.items():
        if names and not any(one in name for one in names):
            continue
        alone = ask_often(service)
        with flooding(service, number, flood):
            beside = ask_often(service)
        replies = ", ".join(f"{count} x {status}" for status, count in service.statuses.most_common(4))
        client = ask_beside_the_client(service, number, flood) / ask_often(service)
        slow += beside > MOST_RATIO * alone
        ratios = f"{beside / alone:5.2f}  {client:6.2f}"
        print(f"{name:64}  {alone:6.3f}s  {beside:6.3f}s  {ratios}  {replies}", flush=True)
    sys.exit(f"{slow} floods slow questions down by more than {MOST_RATIO}" if slow else 0)


def ask_beside_the_client(service: Service, number: int, flood: Flood) -> float:
    """Return the median duration of questions while a flood goes to a server that only replies."""
    with replying() as port:
        service.flooded = port
        try:
            with flooding(service, number, flood):
                return ask_often(service)
        finally:
            service.flooded = 0


if __name__ == "__main__":
    main(*sys.argv[1:])
