"""The address guard: decides which network addresses a crawl may connect to.

Knows no reactor: resolver.py applies it to every connection of a crawl.
"""

import ipaddress
import socket
from collections.abc import Callable, Sequence

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
