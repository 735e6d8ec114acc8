"""A scripted HTTP server on loopback that answers paths with JSON, as the servers of language models do.

    with ScriptedServer({"/api/tags": {"models": []}, "/v1/models": Raw(401, "no")}) as server:
        server.url

A value is a JSON body, a Raw reply, HANG (nothing is sent until the end), or a function of the request's JSON body that
gives one of these. Any other path gets 404. `asked` holds the requests as (path, Authorization header).
"""

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

HANG = object()


@dataclass(frozen=True)
class Raw:
    """A reply that is no JSON object with status 200."""

    status: int
    text: str = ""
    kind: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)


class ScriptedServer:
    """Serves on `url` from entering to leaving."""

    def __init__(self, paths: Mapping[str, Any]) -> None:
        self.paths = paths
        self.asked: list[tuple[str, str]] = []
        self.over = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (_Handler,), {"script": self}))
        self._server.daemon_threads = True
        self.host = f"127.0.0.1:{self._server.server_port}"
        self.url = f"http://{self.host}"

    def __enter__(self) -> "ScriptedServer":
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    script: ScriptedServer

    def do_GET(self) -> None:
        self._answer({})

    def do_POST(self) -> None:
        self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def _answer(self, body: dict[str, Any]) -> None:
        self.script.asked.append((self.path, self.headers.get("Authorization", "")))
        reply = self.script.paths.get(self.path, Raw(404, "404 page not found", "text/plain"))
        if isinstance(reply, Callable):  # type: ignore[arg-type]
            reply = reply(body)
        if reply is HANG:
            self.script.over.wait()
            return
        raw = reply if isinstance(reply, Raw) else Raw(200, json.dumps(reply))
        self.send_response(raw.status)
        for name, value in {"Content-Type": raw.kind, **raw.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(raw.text.encode())

    def log_message(self, *_: object) -> None:
        pass
