"""The address guard: decides which network addresses a crawl may connect to.

`GuardedResolver` is the only way for the reactor to get an address from a name. It looks a name up once, checks every
address and passes exactly these to the connection. So there is no second lookup that could return something else.
Redirects, robots.txt and sitemaps go through it like pages.
"""

import ipaddress
import socket
from collections.abc import Callable, Sequence
from typing import Any

from twisted.internet.address import IPv4Address, IPv6Address
from twisted.internet.interfaces import IHostnameResolver, IHostResolution
from twisted.internet.threads import deferToThreadPool
from zope.interface import implementer

from pipelines.text.phrases import read_names

Lookup = Callable[[str, int], Sequence[str]]

_NAMES = read_names(__name__)
_REFUSED_NETWORKS = tuple(map(ipaddress.ip_network, _NAMES["special_networks"]))
# All public IPv6 addresses are in this network. Outside are loopback, mapped and translated IPv4, discard-only, segment
# routing, the retired site-local and 6bone blocks, local and multicast addresses, and unassigned ones.
_PUBLIC_IPV6 = ipaddress.ip_network("2000::/3")


def address_refusal(address: str) -> str:
    """Return why a crawl may not connect to this IP address; "" for an ordinary public one."""
    try:
        ip = ipaddress.ip_address(address.split("%", 1)[0])
    except ValueError:
        return f"{address} is not an IP address"
    if ip.is_loopback:
        return f"{address} is a loopback address"
    if ip.is_private or ip.is_link_local:
        return f"{address} is a private address"
    if ip.is_multicast or ip.is_reserved or ip.is_unspecified or not ip.is_global:
        return f"{address} is not a public address"
    if (ip.version == 6 and ip not in _PUBLIC_IPV6) or any(ip in network for network in _REFUSED_NETWORKS):
        return f"{address} is a special-purpose address"
    return ""


def name_refusal(host: str) -> str:
    """Return why this host name may not be looked up; "" if it may."""
    name = host.rstrip(".").lower()
    if name in _NAMES["own_names"] or name.endswith(tuple(_NAMES["own_suffixes"])):
        return f"{host} names this machine or its private network"
    return ""


def system_lookup(host: str, port: int) -> Sequence[str]:
    """Return the addresses of a host from the system's resolver (also for 127.1, 0x7f.1 and 2130706433); blocks."""
    # As bytes: for an impossible name (with an empty label), the codec of a str raises an error that is not an OSError.
    found = socket.getaddrinfo(host.encode(), port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(info[4][0]) for info in found))


def resolve_permitted(host: str, port: int, lookup: Lookup = system_lookup) -> tuple[Sequence[str], str]:
    """Return the addresses to connect to and "", or none and the reason: one bad address refuses them all."""
    if reason := name_refusal(host):
        return (), reason
    addresses = lookup(host, port)
    reasons = filter(None, map(address_refusal, addresses))
    if reason := next(reasons, ""):
        return (), reason
    return addresses, ""


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
