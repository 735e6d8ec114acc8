"""The origin of a request: its token, its network, its page, and whether it comes from this machine."""

import ipaddress
import re
from collections.abc import Collection, Iterable, Sequence

from starlette.datastructures import Headers
from starlette.types import Scope

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
# A household or office has an IPv6 /64, and may use any of its addresses for each request.
IPV6_PREFIX = 64
# Requests per minute and address that the proxy passes on without delay; a page of the service needs 20.
UNDELAYED_RATE = 6_000


def bearer_token(scope: Scope) -> str:
    """Return the token of the Authorization header, "" if it has none."""
    scheme, _, token = Headers(scope=scope).get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def parse_networks(texts: Iterable[str]) -> tuple[Network, ...]:
    """Return networks from addresses and CIDR ranges such as `10.0.0.0/8`. Raises ValueError naming the bad string."""
    return tuple(ipaddress.ip_network(text.strip(), strict=False) for text in texts)


def network_of(scope: Scope, trusted: Sequence[Network] = ()) -> str:
    """Return the IPv4 address or IPv6 /64 that a request comes from; "" if unknown.

    X-Forwarded-For is read from its end, which the nearest proxy wrote, and only as far as `trusted` proxies wrote it.
    The sender may have made up the rest.
    """
    lines = Headers(scope=scope).getlist("x-forwarded-for")
    hops = [part.strip() for line in lines for part in line.split(",")]
    address = _parse((scope.get("client") or ("",))[0])
    while address and hops and any(address in network for network in trusted):
        address = _parse(hops.pop()) or address
    if address is None or address.version == 4:
        return str(address or "")
    return str(ipaddress.ip_network((address, IPV6_PREFIX), strict=False))


def is_in(address: str, networks: Iterable[Network]) -> bool:
    """Return whether an address, as returned by `network_of`, is in one of `networks`."""
    return bool(address) and any(ipaddress.ip_network(address)[0] in network for network in networks)


def _parse(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return an address, which may have a port or a zone; None if `text` is not an address."""
    bare = re.sub(r"^\[(.*)\](:\d+)?$|^([\d.]+):\d+$", r"\1\3", text).partition("%")[0]
    try:
        address = ipaddress.ip_address(bare)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def is_loopback(host: str) -> bool:
    """Return whether `host`, a name or an address, is this machine's loopback."""
    try:
        address = ipaddress.ip_address(host.strip("[]").partition("%")[0])
    except ValueError:
        return host.lower() == "localhost"
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback


def is_local(scope: Scope, bound: str = "127.0.0.1") -> bool:
    """Return whether a request comes from this machine and was meant for it; `bound` is the host that we listen on.

    A request that a proxy forwarded for someone else is not local. Neither is one with another host name: a web page on
    that host, whose owner points its DNS at 127.0.0.1, could ask through the reader's browser (DNS rebinding).
    """
    headers = Headers(scope=scope)
    forwarded = [part.strip() for line in headers.getlist("x-forwarded-for") for part in line.split(",")]
    client = scope.get("client") or ("",)
    name = re.sub(r":\d+$", "", headers.get("host", bound))
    return (
        all(map(is_loopback, [client[0], *forwarded]))
        and "forwarded" not in headers
        and (is_loopback(name) or name == bound)
    )


def origin_of(scope: Scope) -> str:
    """Return the origin of the page that sent a request; "" if there is none.

    Browsers send it with every request to another origin, and with every request that changes something.
    """
    return Headers(scope=scope).get("origin", "")


def is_of_page(scope: Scope) -> bool:
    """Return whether a browser sent a request: no page can omit or forge these headers, other programs can."""
    headers = Headers(scope=scope)
    return "origin" in headers or "sec-fetch-site" in headers


def is_foreign(scope: Scope, trusted: Collection[str] = ()) -> bool:
    """Return whether a page of another origin, not a `trusted` one, sent a request.

    Browsers say so in Sec-Fetch-Site, for https and loopback; otherwise the origin's host and port are compared with
    ours.
    """
    headers, origin = Headers(scope=scope), origin_of(scope)
    if origin in trusted:
        return False
    site = headers.get("sec-fetch-site", "none")
    if site != "none":
        return site != "same-origin"
    return bool(origin) and origin.partition("://")[2] != headers.get("host", "")
