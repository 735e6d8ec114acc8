"""Runs a scripted HTTP server on loopback that answers paths with JSON, like servers of language models.

    with ScriptedServer({"/api/tags": {"models": []}, "/v1/models": Raw(401, "no")}) as server:
        server.url

A value is a JSON body, a Raw reply, HANG (sends nothing until the end), or a function of the request's JSON body that
returns one of these. Any other path gets 404. `asked` records the requests as (path, Authorization header).
"""

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kit.web import Answer, Handler, Server

HANG = object()


@dataclass(frozen=True)
class Raw:
    """A reply other than a JSON object with status 200."""

    status: int
    text: str = ""
    kind: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)


class ScriptedServer(Server):
    """Serves at `url` while in the block."""

    def __init__(self, paths: Mapping[str, Any]) -> None:
        super().__init__()
        self.paths = paths
        self.asked: list[tuple[str, str]] = []
        self.over = threading.Event()

    def __exit__(self, *_: object) -> None:
        self.over.set()
        super().__exit__()

    def answer(self, handler: Handler) -> Answer | None:
        self.asked.append((handler.path, handler.headers.get("Authorization", "")))
        reply = self.paths.get(handler.path, Raw(404, "404 page not found", "text/plain"))
        if callable(reply):
            reply = reply(json.loads(handler.body or b"{}"))
        if reply is HANG:
            self.over.wait()
            return None
        raw = reply if isinstance(reply, Raw) else Raw(200, json.dumps(reply))
        return Answer(raw.text, raw.status, {"Content-Type": raw.kind, "Connection": "close", **raw.headers})
