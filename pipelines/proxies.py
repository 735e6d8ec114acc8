"""Decides which servers to reach directly, bypassing any proxy from the environment.

It reads URLs and sends nothing. `HTTP_PROXY` without `NO_PROXY` is common, but a proxy can't reach this machine or its
network. A call to a local model would fail at the proxy, which would see the API key.
"""

import ipaddress
from urllib.parse import urlsplit

# Names that only this machine or its network resolves (RFC 6761, RFC 6762, RFC 8375, ICANN's reservation, Kubernetes).
LOCAL_SUFFIXES = (".localhost", ".local", ".home.arpa", ".internal", ".svc", ".lan")


def is_near(url: str) -> bool:
    """Return whether the host of a URL is this machine or is on its network, judged by name or address."""
    host = (urlsplit(url).hostname or "").rstrip(".")
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return bool(host) and ("." not in host or host.endswith(LOCAL_SUFFIXES))  # `ollama` is a container's name
    mapped = getattr(address, "ipv4_mapped", None) or address
    return mapped.is_private or mapped.is_loopback or mapped.is_link_local


def direct_mounts(url: str) -> dict[str, None]:
    """Return httpx `mounts` that bypass proxies for the server at `url` if it is near."""
    host = urlsplit(url).hostname or ""
    pattern = f"[{host}]" if ":" in host else host
    return {f"all://{pattern}": None} if is_near(url) else {}
