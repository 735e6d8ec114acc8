"""Limits slow clients: late or long request heads, idle connections, replies that are not read.

uvicorn waits without limit for the end of a head and for a slow reader, and accepts heads of any length. An unread
reply occupies a slot of a replica; a connection uses one of the process's file descriptors.
"""

import asyncio
import resource
from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar

import uvicorn.config
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from serve.guard.origin import Network, is_in, network_of
from serve.proxy.address import PRIVATE
from serve.proxy.framing import OneByOne
from serve.proxy.turns import AddressTurns, Asker
from serve.proxy.waiting import Waiting

# A head arrives within milliseconds. A browser whose speculative connection is closed opens another.
HEAD_TIMEOUT_S = 10.0
# Enough for a URL of 8,000 characters, tokens and cookies; the piece in which it begins is not counted.
MOST_HEAD_BYTES = 64_000
# Limits for idle connections: per address, enough for a proxy in front of us; in total, half of the process's limit.
IDLE_OF_ADDRESS, MOST_IDLE = 1_024, 4_096
# A client that reads less than 1 kB per second counts as gone. Stalled readers, whose data waits for longer than a
# network needs to transfer it, are limited: each occupies a slot of a replica, of which there are 128 by default.
STALL_S, LEAST_BYTES, SLOW_S = 15.0, 15_000, 1.0
STALLED_OF_ADDRESS, MOST_STALLED = 8, 32
# Per address, at most as many requests wait for their turn as pass within this time.
MOST_WAIT_S = 5.0
# This many bytes of a body count as another request: reading and refusing 800 kB takes as long as fifty small requests.
BYTES_OF_TURN = 16_000


class BoundedConnection(OneByOne):
    """A connection that is closed unless its client sends heads and reads replies in time.

    A late head is answered with 408, one that is too long with 431. If there are too many, the oldest idle connection
    is closed (see Waiting), and so is the one whose client has not read for the longest time.
    """

    head_timeout_s, stall_s, slow_s = HEAD_TIMEOUT_S, STALL_S, SLOW_S
    trusted: ClassVar[Sequence[Network]] = PRIVATE
    idle: ClassVar[Waiting["BoundedConnection"]]
    stalled: ClassVar[Waiting["BoundedConnection"]]
    turns: ClassVar[AddressTurns | None] = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=0)  # so that every unread byte is noticed
        self._head_bytes = self._body_bytes = self._unsent = 0
        self._late: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None
        self._slow: asyncio.TimerHandle | None = None
        self._wait_for_head()
        address = network_of({"client": self.client, "headers": []})
        self.idle.add(self, address)
        self._asker = Asker()
        if self.turns is not None and not is_in(address, self.trusted):  # a proxy opens connections for many clients
            self.turns.charge(address)

    def connection_lost(self, exc: Exception | None) -> None:
        self.idle.remove(self)
        self.stalled.remove(self)
        self._stop_waiting()
        _cancel(self._unread)
        _cancel(self._slow)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.cycle is None or self.cycle.response_complete:  # stray bytes before a head also start the timeout
            self._wait_for_head()
        super().data_received(data)

    def _parse(self, piece: bytes) -> None:
        begun = self._head_bytes
        super()._parse(piece)
        if begun and self._head_bytes:
            self._head_bytes += len(piece)
            if self._head_bytes > MOST_HEAD_BYTES:
                self.refuse(431)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._wait_for_head()
        self._head_bytes, self._body_bytes = 1, 0

    def on_headers_complete(self) -> None:
        self._stop_waiting()
        self.idle.remove(self)
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        super().on_body(body)
        self._body_bytes += len(body)
        if self.turns is not None and self._body_bytes >= BYTES_OF_TURN:
            address = network_of(dict(self.scope), self.trusted)
            self.turns.charge(address, self._body_bytes / BYTES_OF_TURN)
            self._body_bytes = 0

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        begin = partial(self._begin, cycle, app)
        if self.turns is None:
            begin()
        else:
            address = network_of(dict(cycle.scope), self.trusted)
            self.turns.take(address, self._asker, begin, partial(self.end_with, 429))

    def _begin(self, cycle: RequestResponseCycle, app: Any) -> None:
        if not self.transport.is_closing():
            super()._start_asgi_task(cycle, app)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.timeout_keep_alive_task is not None:  # unless the next request has already arrived
            self.idle.add(self, network_of({"client": self.client, "headers": []}))

    def timeout_keep_alive_handler(self) -> None:
        self.end()

    def pause_writing(self) -> None:
        super().pause_writing()
        address = network_of(dict(self.scope), self.trusted) if self.scope else ""
        self._slow = self.loop.call_later(self.slow_s, self.stalled.add, self, address)
        self._watch_reader()

    def resume_writing(self) -> None:
        super().resume_writing()
        self.stalled.remove(self)
        _cancel(self._unread)
        _cancel(self._slow)

    def end(self) -> None:
        """Close the connection, dropping data that its client did not read."""
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            self.transport.close()

    def _wait_for_head(self) -> None:
        if self._late is None:
            self._late = self.loop.call_later(self.head_timeout_s, self._end_late_head)

    def _stop_waiting(self) -> None:
        _cancel(self._late)
        self._late, self._head_bytes = None, 0

    def refuse(self, status: int) -> None:
        self._stop_waiting()
        super().refuse(status)

    def _end_late_head(self) -> None:
        """End the connection, with 408 if a head has begun."""
        if self._head_bytes:
            self.refuse(408)
        else:
            self._stop_waiting()
            self.end()

    def _watch_reader(self) -> None:
        self._unsent = self.transport.get_write_buffer_size()
        self._unread = self.loop.call_later(self.stall_s, self._check_reader)

    def _check_reader(self) -> None:
        if self._unsent - self.transport.get_write_buffer_size() < LEAST_BYTES:
            self.transport.abort()
        else:
            self._watch_reader()


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()


def bound_connections(
    trusted: Sequence[Network], idle_of_address: int = IDLE_OF_ADDRESS, undelayed_rate: int = 0
) -> None:
    """Make every server that uvicorn starts in this process close stalled connections.

    An address may send `undelayed_rate` requests per minute, where large bodies count as several; further requests
    wait. 0: no limit.
    """
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    BoundedConnection.trusted = trusted
    BoundedConnection.stalled = Waiting(BoundedConnection.end, STALLED_OF_ADDRESS, MOST_STALLED)
    BoundedConnection.turns = turns_of(undelayed_rate)
    BoundedConnection.idle = Waiting(BoundedConnection.end, idle_of_address, min(MOST_IDLE, descriptors // 2))
    uvicorn.config.HTTP_PROTOCOLS["auto"] = f"{__name__}:{BoundedConnection.__name__}"


def turns_of(rate: int) -> AddressTurns | None:
    """Return the turns of addresses with `rate` requests per minute; None for 0, no limit."""
    a_second = rate / 60
    return AddressTurns(a_second, max(1.0, a_second), int(a_second * MOST_WAIT_S) + 1) if rate else None
