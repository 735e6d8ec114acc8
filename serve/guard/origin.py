"""Where a request comes from: its bearer token, and whether it was sent from this machine."""

import ipaddress
import re

from starlette.datastructures import Headers
from starlette.types import Scope


def bearer_token(scope: Scope) -> str:
    """Return the token of the Authorization header, "" if it has none."""
    scheme, _, token = Headers(scope=scope).get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


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
