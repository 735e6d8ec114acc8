"""Forwards requests directly to a replica's own port, bypassing Ray's actor calls.

Through Ray, each request, each part of its reply and its end are actor calls: 9 ms of CPU time for a list of
collections, compared with 2 ms directly. The body must already be complete (bodies.py). Unusual requests still go
through Ray, and so do requests without a known replica, or if none accepts the connection.
"""

import asyncio
from contextlib import suppress

import aiohttp
from multidict import CIMultiDict
from starlette.types import ASGIApp, Receive, Scope, Send
from yarl import URL

from serve.failure import Failure
from serve.guard.bodies import replay
from serve.proxy.refusal import refuse
from serve.proxy.replicas import RunningReplicas

LOOPBACK = "127.0.0.1"
OF_SERVE = "/-/"  # the proxy's own paths: its health is public, its table of applications is not
HEALTH = "/-/healthz"
# Headers of one connection (RFC 9110, 7.6.1); the servers on each side write their own.
OF_CONNECTION = {b"connection", b"keep-alive", b"proxy-connection", b"te", b"trailer", b"transfer-encoding", b"upgrade"}
# Headers of the body: it is forwarded in one piece with its length computed here (one next to chunks would be wrong).
OF_BODY = {b"content-length", b"expect"}
OF_SERVER = {b"date", b"server"}
FORWARDED = {b"x-forwarded-for", b"x-forwarded-proto"}


class DirectToReplica:
    """Forwards requests to replicas; all others go to `app`, which is Ray's proxy.

    A replica that dies during a request raises aiohttp.ClientError or leaves the reply unfinished: see replica_loss.py.
    """

    def __init__(self, app: ASGIApp, replicas: RunningReplicas) -> None:
        self._app, self._replicas = app, replicas
        self._client: aiohttp.ClientSession | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and _path(scope).startswith(OF_SERVE) and _path(scope) != HEALTH:
            await refuse(Failure(404, "there is nothing here"), scope, receive, send)
            return
        if _is_plain(scope):
            body = (await receive())["body"]  # complete and available at once: see bodies.py
            request = _Request(scope, receive, body)
            receive = replay(body, receive)
            for port in self._replicas.ports_for(_path(scope)):
                with self._replicas.counted(port), suppress(aiohttp.ClientConnectorError):
                    await self._pass(port, request, send)
                    return
        await self._app(scope, receive, send)

    async def _pass(self, port: int, request: "_Request", send: Send) -> None:
        """Forward a request to the replica at `port`, until its reply has ended or its client has disconnected."""
        passing = asyncio.create_task(self._relay(port, request, send))
        leaving = asyncio.create_task(request.until_client_leaves())
        try:
            await asyncio.wait((passing, leaving), return_when=asyncio.FIRST_COMPLETED)
            if passing.done():
                passing.result()
        finally:
            passing.cancel()
            leaving.cancel()

    async def _relay(self, port: int, request: "_Request", send: Send) -> None:
        async with self._open_client().request(
            request.method, request.url(port), headers=request.headers, data=request.body or None, allow_redirects=False
        ) as reply:
            headers = [(n, v) for n, v in reply.raw_headers if n.lower() not in OF_CONNECTION | OF_SERVER]
            await send({"type": "http.response.start", "status": reply.status, "headers": headers})
            async for part in reply.content.iter_any():
                await send({"type": "http.response.body", "body": part, "more_body": True})
            await send({"type": "http.response.body", "body": b""})

    async def close(self) -> None:
        """Close the connections to replicas."""
        if self._client is not None:
            await self._client.close()

    def _open_client(self) -> aiohttp.ClientSession:
        """Return this process's HTTP client, which leaves requests and replies unchanged."""
        if self._client is None:
            self._client = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0),
                timeout=aiohttp.ClientTimeout(total=None),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
            )
        return self._client


class _Request:
    """A request with its complete body."""

    def __init__(self, scope: Scope, receive: Receive, body: bytes) -> None:
        self._scope, self._receive, self.body = scope, receive, body
        self.method: str = scope["method"]

    @property
    def headers(self) -> CIMultiDict[str]:
        """The request's headers, with its address and scheme as the last hop."""
        scope, given = self._scope, self._scope["headers"]
        kept = [(n, v) for n, v in given if n not in OF_CONNECTION | OF_BODY | FORWARDED]
        hops = [v.decode("latin-1") for n, v in given if n == b"x-forwarded-for"]
        # A missing address would count as this machine; "unknown" does not.
        hops.append((scope.get("client") or ("unknown",))[0])
        headers = CIMultiDict((n.decode("latin-1"), v.decode("latin-1")) for n, v in kept)
        headers.update({"X-Forwarded-For": ", ".join(hops), "X-Forwarded-Proto": scope.get("scheme", "http")})
        return headers

    def url(self, port: int) -> URL:
        target = _target(self._scope).decode("ascii")
        query = self._scope["query_string"].decode("ascii")
        return URL(f"http://{LOOPBACK}:{port}{target}{'?' if query else ''}{query}", encoded=True)

    async def until_client_leaves(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass


def _path(scope: Scope) -> str:
    """Return the path below the root path that the operator gave the proxy."""
    return str(scope["path"]).removeprefix(scope.get("root_path", ""))


def _target(scope: Scope) -> bytes:
    """Return the path as sent, without the root path: the servers of proxy and replica each prepend it."""
    return bytes(scope.get("raw_path", b"")).removeprefix(scope.get("root_path", "").encode())


def _is_plain(scope: Scope) -> bool:
    """Return whether a request is HTTP for an application, and its head can be rewritten unchanged."""
    if scope["type"] != "http" or _path(scope).startswith(OF_SERVE):
        return False
    target = _target(scope) + scope["query_string"]
    ascii = target.isascii() and all(value.isascii() for _, value in scope["headers"])
    return ascii and target.startswith(b"/") and b"#" not in target
