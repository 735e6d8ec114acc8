"""Gives the reactor of a crawl only addresses that the address guard permits (network.py).

`GuardedResolver` is the only way for the reactor to get an address from a name. It looks a name up once, checks every
address and passes exactly these to the connection. So there is no second lookup that could return something else.
Redirects, robots.txt and sitemaps go through it like pages.
"""

from collections.abc import Sequence
from typing import Any

from twisted.internet.address import IPv4Address, IPv6Address
from twisted.internet.interfaces import IHostnameResolver, IHostResolution
from twisted.internet.threads import deferToThreadPool
from zope.interface import implementer

from pipelines.indexing.crawling.network import Lookup, resolve_permitted, system_lookup


@implementer(IHostResolution)
class _Resolution:
    """A lookup in progress; connections never cancel it, they time out."""

    def __init__(self, name: str):
        self.name = name

    def cancel(self) -> None:
        """Do nothing: a result that nobody waits for is dropped."""


@implementer(IHostnameResolver)
class GuardedResolver:
    """A name resolver for the reactor that returns only permitted addresses; `refusals` has the reasons by host."""

    def __init__(self, reactor: Any, allow_private: bool, lookup: Lookup = system_lookup):
        self._reactor, self._allow_private, self._lookup = reactor, allow_private, lookup
        self.refusals: dict[str, str] = {}

    def resolveHostName(  # Twisted defines the names
        self,
        resolutionReceiver: Any,
        hostName: str,
        portNumber: int = 0,
        addressTypes: Any = None,
        transportSemantics: str = "TCP",
    ) -> _Resolution:
        resolution = _Resolution(hostName)
        resolutionReceiver.resolutionBegan(resolution)
        pool = self._reactor.getThreadPool()
        found = deferToThreadPool(self._reactor, pool, self._addresses, hostName, portNumber)
        found.addErrback(lambda _: ())
        found.addCallback(_deliver, resolutionReceiver, portNumber)
        return resolution

    def _addresses(self, host: str, port: int) -> Sequence[str]:
        if self._allow_private:
            return self._lookup(host, port)
        addresses, reason = resolve_permitted(host, port, self._lookup)
        if reason:
            self.refusals[host] = reason
        return addresses


def _deliver(addresses: Sequence[str], receiver: Any, port: int) -> None:
    for address in addresses:
        kind = IPv6Address if ":" in address else IPv4Address
        receiver.addressResolved(kind("TCP", address, port))
    receiver.resolutionComplete()
