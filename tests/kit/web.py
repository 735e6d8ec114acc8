"""A web site in a thread: routes are values or functions, every request is recorded."""

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

HTML = "text/html; charset=utf-8"


@dataclass
class Answer:
    """The answer of a route; `headers` replace the default ones."""

    body: bytes | str = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


Route = Answer | str | Callable[["Handler"], Answer | str | None]


@dataclass
class Request:
    path: str
    headers: dict[str, str]
    at: float


@contextmanager
def closed_port(port: int = 0) -> Iterator[int]:
    """Hold a loopback port, a free one for 0, where nobody listens and nobody else can for as long."""
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", port))
        yield int(taken.getsockname()[1])


class Site:
    """Serves `routes` on a free loopback port; `requests` are those so far."""

    def __init__(self, routes: dict[str, Route]):
        self.routes, self.requests = routes, []
        self.most_at_once = self._at_once = 0
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Handler,), {"site": self}))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def paths(self) -> list[str]:
        """Return the paths of requested pages, without robots.txt, sitemaps and llms.txt."""
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

    def __enter__(self) -> "Site":
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class Handler(BaseHTTPRequestHandler):
    site: Site
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        request = Request(self.path, {k.lower(): v for k, v in self.headers.items()}, time.monotonic())
        with self.site.count(request):
            route = self.site.routes.get(self.path, Answer("not here", 404))
            answer = route(self) if callable(route) else route
        if answer is not None:
            self._send(answer if isinstance(answer, Answer) else Answer(answer))

    def _send(self, answer: Answer) -> None:
        body = answer.body.encode() if isinstance(answer.body, str) else answer.body
        headers = {"Content-Type": HTML, "Content-Length": str(len(body))} | answer.headers
        try:
            self.send_response(answer.status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def log_message(self, *_: object) -> None:
        pass


def page(*links: str, text: str = "Some words.") -> str:
    """Return an HTML page that links to `links`."""
    anchors = "".join(f'<a href="{link}">{link}</a>' for link in links)
    return f"<html><head><title>T</title></head><body><main><h1>T</h1><p>{text}</p>{anchors}</main></body></html>"


def redirect(to: str, status: int = 302) -> Answer:
    return Answer("", status, {"Location": to})


def slow(seconds: float, *links: str) -> Callable[[Handler], str]:
    """Return a route whose page comes after a while."""

    def wait(_: Handler) -> str:
        time.sleep(seconds)
        return page(*links)

    return wait


def pouring(head: bytes, piece: bytes, pause_s: float = 0.0) -> Callable[[Handler], None]:
    """Return a route whose answer never ends."""

    def pour(handler: Handler) -> None:
        handler.close_connection = True
        try:
            handler.wfile.write(b"HTTP/1.1 200 OK\r\n" + head)
            while True:
                handler.wfile.write(piece)
                time.sleep(pause_s)
        except OSError:
            return

    return pour
