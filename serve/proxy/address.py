"""Decides which proxies to trust when attributing a request to an address, as the rate limits do."""

from collections.abc import Mapping

from pipelines.text.parsing import parse_json
from serve.guard.origin import Network, parse_networks

TRUSTED_PROXIES = "RAYDEX_TRUSTED_PROXIES"  # the setting trusted_proxies
# Trusted if no proxy is configured: a proxy on this machine, or in its private network.
PRIVATE = parse_networks(("127.0.0.0/8", "::1", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"))


def trusted_proxies(environ: Mapping[str, str]) -> tuple[Network, ...]:
    """Return the proxies in the setting; private networks if it is not set. Raises ValueError."""
    named = environ.get(TRUSTED_PROXIES)
    return parse_networks(parse_json(named)) if named else PRIVATE
