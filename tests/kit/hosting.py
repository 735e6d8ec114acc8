"""Runs a protected service with one publishable key, and pages of another origin that use it, for widget tests."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from kit.api import FakeEngine, MemoryRecorder, run_server
from kit.guarded import GuardedStore, SilentMetrics
from kit.web import Answer, Site
from starlette.types import Message, Receive, Scope, Send

from pipelines.store import ASK, Key, TokenGrant
from serve.guard.policy import Policy, protect
from serve.routes import create_app

ICON = '<link rel="icon" href="data:,">'
PUBLISHABLE, SECRET = "pk_" + "p" * 43, "rdx_" + "s" * 43


class HostedStore(GuardedStore):
    """Has a publishable key bound to an origin, and a secret key. `left` is the number of requests still allowed."""

    def __init__(self, origin: str) -> None:
        super().__init__()
        self.keys = {PUBLISHABLE: Key("docs-site", (ASK,), origins=(origin,)), SECRET: Key("ci", ("query",))}
        self.left = 1e9  # type: ignore[assignment]

    def take_token(self, key: str, rate_per_minute: float, burst: float) -> TokenGrant:
        self.left -= 1
        return TokenGrant(self.left >= 0, 0.0 if self.left >= 0 else 7.0, max(0.0, self.left))


@dataclass
class Asked:
    """A request that reached the service: method ("websocket" for a socket), path, headers and body.

    The body arrives after the headers. The request is `whole` once the service has read all of it.
    """

    method: str
    path: str
    headers: dict[str, str]
    body: bytes = b""
    whole: bool = False

    @property
    def token(self) -> str:
        return self.headers.get("authorization", "").removeprefix("Bearer ")


@dataclass
class Witness:
    """ASGI middleware in front of everything that records the requests."""

    app: Any
    asked: list[Asked] = field(default_factory=list)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        asked = Asked(scope.get("method", scope["type"]), scope["path"], headers)
        self.asked.append(asked)

        async def witnessed() -> Message:
            message = await receive()
            asked.body += message.get("body", b"")
            asked.whole = not message.get("more_body", False)
            return message

        await self.app(scope, witnessed, send)
        asked.whole = True

    def to(self, path: str) -> list[Asked]:
        """Return the complete requests to a path, without preflights."""
        return [asked for asked in self.asked if asked.whole and asked.path == path and asked.method != "OPTIONS"]


@dataclass
class Hosting:
    """A service at `url` whose widget is on pages of `site`."""

    url: str
    site: Site
    store: HostedStore
    engine: FakeEngine
    recorder: MemoryRecorder
    witness: Witness

    def tag(self, key: str = PUBLISHABLE, **attributes: str) -> str:
        """Return the script tag of the widget."""
        data = {"key": key, "collection": "docs"} | attributes
        written = " ".join(f'data-{name.replace("_", "-")}="{value}"' for name, value in data.items() if value)
        return f'<script async src="{self.url}/widget.js" {written}></script>'

    def put(self, path: str, *, head: str = "", body: str = "", html: str = 'lang="en"', **headers: str) -> str:
        """Put a page on the site and return its URL. `headers` use Python names."""
        page = f"<!doctype html><html {html}><head><title>Guide</title>{ICON}{head}</head><body>{body}</body></html>"
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        self.site.routes[path] = Answer(page, 200, {"Content-Type": "text/html; charset=utf-8"} | sent)
        return self.site.url + path


@contextlib.contextmanager
def run_hosting(engine: Any = None, **policy: Any) -> Iterator[Hosting]:
    """Run a service that requires keys, with `engine` or a scripted one, and a site of another origin."""
    with Site({}) as site:
        store, recorder = HostedStore(site.url), MemoryRecorder()
        fake = FakeEngine(store)
        app = create_app(engine or fake, store, recorder=recorder)  # type: ignore[arg-type]
        witness = Witness(protect(app, store, Policy(host="0.0.0.0", **policy), SilentMetrics()))
        with run_server(witness) as url:  # type: ignore[arg-type]
            yield Hosting(url, site, store, fake, recorder, witness)
