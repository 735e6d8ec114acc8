"""ASGI middleware that adds security headers to every reply, unless the reply sets them itself."""

import re
from collections.abc import Callable, Sequence
from functools import partial
from urllib.parse import urlsplit

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from serve.failure import path_of
from serve.guard.access import is_open

POLICY = "Content-Security-Policy"
# These prevent guessing content types, leaking the URL in Referer, loading a reply into another site's page, and access
# to our windows. A reply that other sites may load (a script) overrides them.
DEFAULTS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
# JSON is not a page: if shown as one, it may load and run nothing.
NOTHING = "default-src 'none'; base-uri 'none'; form-action 'none'"
NO_FRAMES, SELF = "'none'", "'self'"
FRAME_ANCESTORS = re.compile(r";?\s{0,9}frame-ancestors [^;]*+")


def with_headers(send: Send, change: Callable[[MutableHeaders], None]) -> Send:
    """Return a `send` that changes the headers of the reply before they are sent."""

    async def send_changed(message: Message) -> None:
        if message["type"] == "http.response.start":
            change(MutableHeaders(scope=message))
        await send(message)

    return send_changed


class SecurityHeaders:
    """Completes the headers of every reply; `frame_ancestors` are the origins whose pages may frame it, or `self`.

    A trailing slash in the path of a POST is ignored. A GET with one is redirected, with a relative URL, to the path
    without it, because the links on a page are relative to its path.
    """

    def __init__(self, app: ASGIApp, frame_ancestors: Sequence[str] = ()) -> None:
        self._app = app
        self._ancestors = " ".join(SELF if name == "self" else name for name in frame_ancestors) or NO_FRAMES
        # For browsers without frame-ancestors; this header accepts no list of origins.
        old = {NO_FRAMES: "DENY", SELF: "SAMEORIGIN"}.get(self._ancestors)
        self._defaults = {**DEFAULTS, **({"X-Frame-Options": old} if old else {})}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            # Behind TLS or a path prefix, an absolute redirect to the path without its last slash would be wrong.
            if scope["method"] == "POST":
                scope = {**scope, "path": scope["path"].removesuffix("/") or scope["path"]}
            send = with_headers(send, partial(self._complete, path_of(scope)))
        await self._app(scope, receive, send)

    def _complete(self, path: str, headers: MutableHeaders) -> None:
        for name, value in self._defaults.items():
            headers.setdefault(name, value)
        leads_to, page = urlsplit(headers.get("Location", "")), path.rstrip("/")
        if page != path and page and leads_to.path.endswith(page):
            sibling = f"{'../' * (len(path) - len(page))}{page.rpartition('/')[2]}"
            headers["Location"] = leads_to._replace(scheme="", netloc="", path=sibling).geturl()
        policy = FRAME_ANCESTORS.sub("", headers.get(POLICY, NOTHING)).strip("; ") or NOTHING
        headers[POLICY] = f"{policy}; frame-ancestors {self._ancestors}"
        if not is_open(path):  # an answer, a token, a list that depends on the key
            headers.setdefault("Cache-Control", "no-store")
