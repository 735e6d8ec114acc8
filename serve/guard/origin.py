"""Where a request comes from: its token, its network, its page, whether it was sent from this machine."""

import ipaddress
import re
from collections.abc import Collection, Iterable, Sequence

from starlette.datastructures import Headers
from starlette.types import Scope

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
# A household or office has a /64 of IPv6, and may use any of its addresses for each request.
IPV6_PREFIX = 64
# Requests of one address, of any kind, that the proxy passes on at once; a page of the service needs 20.
UNDELAYED_RATE = 6_000


def bearer_token(scope: Scope) -> str:
    """Return the token of the Authorization header, "" if it has none."""
    scheme, _, token = Headers(scope=scope).get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def parse_networks(texts: Iterable[str]) -> tuple[Network, ...]:
    """Return networks from addresses and CIDR ranges such as `10.0.0.0/8`. Raises ValueError, which names the text."""
    return tuple(ipaddress.ip_network(text.strip(), strict=False) for text in texts)


def network_of(scope: Scope, trusted: Sequence[Network] = ()) -> str:
    """Return the IPv4 address or IPv6 /64 that a request comes from; "" if it is not known.

    X-Forwarded-For is read from its end, which the nearest proxy wrote, and only as far as `trusted` proxies wrote it:
    whatever else stands there is the sender's own claim.
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
    """Return whether an address, as `network_of` returns it, is of one of the `networks`."""
    return bool(address) and any(ipaddress.ip_network(address)[0] in network for network in networks)


def _parse(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return an address, with a port or a zone or without; None if `text` is none."""
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

    A request that a proxy forwarded for someone else is not local. Neither is one that names another host: a web page
    of that name, whose owner points its DNS at 127.0.0.1, would ask through the reader's browser (DNS rebinding).
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
    """Return the origin of the page that sent a request; "" if it does not say.

    Browsers send it with every request to another origin, and with every one that changes something.
    """
    return Headers(scope=scope).get("origin", "")


def is_of_page(scope: Scope) -> bool:
    """Return whether a browser sent a request: no page can leave out or forge these headers, other programs can."""
    headers = Headers(scope=scope)
    return "origin" in headers or "sec-fetch-site" in headers


def is_foreign(scope: Scope, trusted: Collection[str] = ()) -> bool:
    """Return whether a page of another origin sent a request, and not one of the `trusted` origins.

    Browsers say so in Sec-Fetch-Site, to https and to loopback; else the origin's host and port are compared with ours.
    """
    headers, origin = Headers(scope=scope), origin_of(scope)
    if origin in trusted:
        return False
    site = headers.get("sec-fetch-site", "none")
    if site != "none":
        return site != "same-origin"
    return bool(origin) and origin.partition("://")[2] != headers.get("host", "")
