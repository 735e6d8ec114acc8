"""ASGI middleware that puts security headers on every reply, where the reply has none of its own."""

import re
from collections.abc import Callable, Sequence
from functools import partial
from urllib.parse import urlsplit

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from serve.failure import path_of
from serve.guard.access import is_open

POLICY = "Content-Security-Policy"
# Nobody guesses a type, learns from a link where it was, loads a reply into a page of another site, or reads our
# windows. A reply that other sites load (a script) says so itself.
DEFAULTS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
# JSON is no page: shown as one, it loads and runs nothing.
NOTHING = "default-src 'none'; base-uri 'none'; form-action 'none'"
NO_FRAMES, SELF = "'none'", "'self'"
FRAME_ANCESTORS = re.compile(r";?\s*frame-ancestors [^;]*")


def with_headers(send: Send, change: Callable[[MutableHeaders], None]) -> Send:
    """Return a `send` that changes the headers of the reply before they are sent."""

    async def send_changed(message: Message) -> None:
        if message["type"] == "http.response.start":
            change(MutableHeaders(scope=message))
        await send(message)

    return send_changed


class SecurityHeaders:
    """Completes the headers of every reply; `frame_ancestors` are the origins whose pages may frame it, or `self`.

    A slash at the end of the path of a POST makes no difference. A GET with one is redirected to the path without it,
    as the links of a page start from its path, by a relative address.
    """

    def __init__(self, app: ASGIApp, frame_ancestors: Sequence[str] = ()) -> None:
        self._app = app
        self._ancestors = " ".join(SELF if name == "self" else name for name in frame_ancestors) or NO_FRAMES
        # For browsers that do not know frame-ancestors; this header takes no list of origins.
        old = {NO_FRAMES: "DENY", SELF: "SAMEORIGIN"}.get(self._ancestors)
        self._defaults = {**DEFAULTS, **({"X-Frame-Options": old} if old else {})}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            # Behind TLS or a path prefix an absolute redirect to the path without its last slash would lead elsewhere.
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
