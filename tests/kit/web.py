"""Runs HTTP servers on loopback in threads: web sites, and the other servers of this kit.

Routes of a site are values or functions. Every request is recorded.
"""

import json
import socket
import socketserver
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

HTML = "text/html; charset=utf-8"


@dataclass
class Answer:
    """A route's answer. `headers` replace the default ones; a list of values sends a header several times."""

    body: bytes | str = b""
    status: int = 200
    headers: Mapping[str, str | list[str]] = field(default_factory=dict)


def json_answer(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
    return Answer(json.dumps(value), status, {"Content-Type": "application/json", **(headers or {})})


Route = Answer | str | Callable[["Handler"], Answer | str | None]


@dataclass
class Request:
    """A request to a site: path, headers in lower case, and time."""

    path: str
    headers: dict[str, str]
    at: float


@contextmanager
def closed_port(port: int = 0) -> Iterator[int]:
    """Reserve a loopback port (a free one for 0) where nobody listens, and keep others from listening there."""
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", port))
        yield int(taken.getsockname()[1])


class Running:
    """Serves while in the block."""

    _server: socketserver.BaseServer

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class Handler(BaseHTTPRequestHandler):
    """Sends its server's answer to a request. None closes the connection without a reply."""

    site: "Server"
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        self.body = self.read_body()
        answer = self.site.answer(self)
        if answer is None:
            self.close_connection = True
        else:
            self.send(answer if isinstance(answer, Answer) else Answer(answer))

    do_HEAD = do_POST = do_PUT = do_DELETE = do_GET

    def handle(self) -> None:
        with suppress(ConnectionError):  # the client left or was killed
            super().handle()

    def read_body(self) -> bytes:
        return self.rfile.read(int(self.headers["Content-Length"] or 0))

    def send(self, answer: Answer) -> None:
        body = answer.body.encode() if isinstance(answer.body, str) else answer.body
        self.send_response(answer.status)
        for name, value in {"Content-Type": HTML, "Content-Length": str(len(body)), **answer.headers}.items():
            for one in [value] if isinstance(value, str) else value:
                self.send_header(name, one)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


class _Threads(ThreadingHTTPServer):
    request_queue_size = 128


class Server(Running):
    """Answers at `url`, on a free port for 0. A `handler` receives the requests and passes them to `answer`."""

    handler: type[Handler] = Handler

    def __init__(self, port: int = 0) -> None:
        self._server = _Threads(("127.0.0.1", port), type("Bound", (self.handler,), {"site": self}))
        self.port = self._server.server_port
        self.host = f"127.0.0.1:{self.port}"
        self.url = f"http://{self.host}"

    def answer(self, handler: Handler) -> Answer | str | None:
        raise NotImplementedError


class Site(Server):
    """Serves `routes`. `requests` has the requests so far."""

    def __init__(self, routes: dict[str, Route]):
        super().__init__()
        self.routes, self.requests = routes, []
        self.most_at_once = self._at_once = 0
        self._lock = threading.Lock()

    def answer(self, handler: Handler) -> Answer | str | None:
        headers = {name.lower(): value for name, value in handler.headers.items()}
        with self.count(Request(handler.path, headers, time.monotonic())):
            route = self.routes.get(handler.path, Answer("not here", 404))
            return route(handler) if callable(route) else route

    def paths(self) -> list[str]:
        """Return the paths of requested pages, except robots.txt, sitemaps and llms.txt."""
        aside = ("robots.txt", "sitemap.xml", "llms.txt")
        return [request.path for request in self.requests if not request.path.endswith(aside)]

    def use_tls(self, certificate: Path) -> None:
        """Serve https from now on."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.url = self.url.replace("http:", "https:")

    @contextmanager
    def count(self, request: Request) -> Iterator[None]:
        with self._lock:
            self.requests.append(request)
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            yield
        finally:
            with self._lock:
                self._at_once -= 1


def page(*links: str, text: str = "Some words.") -> str:
    """Return an HTML page that links to `links`."""
    anchors = "".join(f'<a href="{link}">{link}</a>' for link in links)
    return f"<html><head><title>T</title></head><body><main><h1>T</h1><p>{text}</p>{anchors}</main></body></html>"


def redirect(to: str, status: int = 302) -> Answer:
    return Answer("", status, {"Location": to})


def slow(seconds: float, *links: str) -> Callable[[Handler], str]:
    """Return a route that sends its page after a delay."""

    def wait(_: Handler) -> str:
        time.sleep(seconds)
        return page(*links)

    return wait


def pouring(head: bytes, piece: bytes, pause_s: float = 0.0) -> Callable[[Handler], None]:
    """Return a route whose answer never ends."""

    def pour(handler: Handler) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\n" + head)
        while True:
            handler.wfile.write(piece)
            time.sleep(pause_s)

    return pour
