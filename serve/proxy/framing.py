"""Reads the requests of a connection one after the other, ignoring upgrade requests.

A request that another server in front of us could parse differently ends its connection, so that nobody can smuggle a
second request in the first. httptools rejects most of these itself; the rest are rejected here.
"""

import http
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

# A few dozen of the shortest requests: at most this much is parsed before the first of them is answered.
PIECE_BYTES = 1_024
# Browsers send about 20, proxies add 10. Each part of the service scans them all.
MOST_HEADER_LINES = 100
# Overhead of one body in addition to its content: chunk sizes, extensions, trailers. Chunks of 120 bytes have less.
MOST_CHUNKING_BYTES, CONTENT_PER_CHUNKING_BYTE = 64_000, 16
VERSIONS = ("1.0", "1.1")
SINGLE = (b"host", b"content-length", b"transfer-encoding")


class OneByOne(HttpToolsProtocol):
    """A connection whose requests are parsed one at a time as they are answered.

    Upgrades are ignored: the body of such a request is read like any body (RFC 9110, 7.8). A malformed request is
    refused, and ends the connection.
    """

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._held = bytearray()
        self._lines = self._chunking = 0
        self._in_head = False
        self._wrong: int | None = None
        self._running: RequestResponseCycle | None = None

    def connection_lost(self, exc: Exception | None) -> None:
        self._held.clear()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._held += data
        self._parse_held()

    def _parse_held(self) -> None:
        """Parse the received data, until a request waits for the reply to another one."""
        while self._held and not self.pipeline and not self.transport.is_closing():
            piece = bytes(self._held[:PIECE_BYTES])
            del self._held[:PIECE_BYTES]
            self._parse(piece)
            if self._wrong is not None:
                self.refuse(self._wrong)
        if self._held:
            self.flow.pause_reading()

    def _parse(self, piece: bytes) -> None:
        self._unset_keepalive_if_required()
        if self._is_in_body():
            self._chunking += len(piece)
        try:
            self.parser.feed_data(piece)
        except httptools.HttpParserUpgrade as stopped:
            self._parse_without_upgrade(piece[stopped.args[0] :])
        except httptools.HttpParserError:
            self._wrong = self._wrong or 400
        if self._is_in_body() and self._chunking > MOST_CHUNKING_BYTES:
            self._wrong = self._wrong or 400

    def _parse_without_upgrade(self, rest: bytes) -> None:
        """Parse a head again without its upgrade, because httptools skips the body after a head with one."""
        if self.scope["method"] == "CONNECT":  # we are not a tunnel
            self._wrong = self._wrong or 501
            return
        method, version = self.scope["method"].encode(), self.scope["http_version"].encode()
        kept = [b"%s: %s\r\n" % line for line in self.headers if line[0] != b"upgrade"]
        self.parser = _make_parser(self)
        self._parse(b"%s %s HTTP/%s\r\n%s\r\n" % (method, self.url, version, b"".join(kept)) + rest)

    # ------------------------------------------------------------------------------------ callbacks of the parser

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._lines = self._chunking = 0
        self._in_head = True

    def on_header(self, name: bytes, value: bytes) -> None:
        self._lines += 1
        if self._lines > MOST_HEADER_LINES:
            self._wrong = self._wrong or 431
        elif self._in_head:  # trailers after a body are not headers: a proxy in front of us has not checked them
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_head = False
        if self._wrong is None and self.parser.should_upgrade():
            self.scope["method"] = self.parser.get_method().decode("ascii")
            self.scope["http_version"] = self.parser.get_http_version()
            return
        self._wrong = self._wrong or _fault_of(self.headers, self.parser.get_http_version())
        if self._wrong is None:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._chunking -= len(body) + len(body) // CONTENT_PER_CHUNKING_BYTE
        if self._wrong is None:
            super().on_body(body)

    def on_message_complete(self) -> None:
        if self._wrong is None and not self.parser.should_upgrade():
            super().on_message_complete()

    # ------------------------------------------------------------------------------------ replies

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._held and not self.transport.is_closing():
            self.loop.call_soon(self._parse_held)

    def refuse(self, status: int) -> None:
        """Stop reading, and close: with `status`, or after the replies to earlier complete requests."""
        if self.pipeline and self.pipeline[0][0].more_body:
            self.pipeline.popleft()
        waiting = self.pipeline[0][0] if self.pipeline else self._running
        if waiting is None or waiting.response_complete or waiting.more_body:
            self.end_with(status)
        else:
            waiting.keep_alive = False
            self._held.clear()
            self.flow.pause_reading()

    def end_with(self, status: int) -> None:
        """Close the connection, with `status` unless a reply has begun."""
        self._held.clear()
        self.pipeline.clear()
        running = self._running
        replying = running is not None and running.response_started and not running.response_complete
        if not replying and not self.transport.is_closing():
            self.transport.write(_short_reply(status))
        if running is not None:
            running.disconnected = True
            running.message_event.set()
        self.transport.close()

    def _is_in_body(self) -> bool:
        return not self._in_head and self.cycle is not None and self.cycle.more_body


def _make_parser(protocol: HttpToolsProtocol) -> Any:
    parser = httptools.HttpRequestParser(protocol)
    parser.set_dangerous_leniencies(lenient_data_after_close=True)  # like uvicorn, which does not answer such data
    return parser


def _fault_of(headers: list[tuple[bytes, bytes]], version: str) -> int | None:
    """Return the status for a head that other servers could parse differently, None if there is no fault."""
    if version not in VERSIONS:
        return 505
    names = [name for name, _ in headers]
    if any(names.count(name) > 1 for name in SINGLE):
        return 400
    encoding = dict(headers).get(b"transfer-encoding")
    if encoding is None:
        return None
    if version == "1.0":
        return 400
    return None if encoding.strip().lower() == b"chunked" else 501


def _short_reply(status: int) -> bytes:
    reason = http.HTTPStatus(status).phrase.encode()
    head = b"content-type: text/plain\r\ncontent-length: %d\r\nconnection: close\r\n\r\n" % len(reason)
    return STATUS_LINE[status] + head + reason
