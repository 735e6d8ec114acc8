"""Says whose a request is, where few of one address may wait, as the limits of rates do."""

import json
from collections.abc import Mapping, Sequence

from starlette.types import Scope

from serve.guard.origin import Network, network_of, parse_networks

TRUSTED_PROXIES = "RAYDEX_TRUSTED_PROXIES"  # the setting trusted_proxies
# A proxy that stands before the service, where none is named: it is on this machine, or in its network.
PRIVATE = ("127.0.0.0/8", "::1", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7")


class Addresses:
    """Names the address of a request: its peer or, where that is one of `trusted`, the one that X-Forwarded-For names.

    An IPv6 /64 counts as one address.
    """

    def __init__(self, trusted: Sequence[Network] = parse_networks(PRIVATE)) -> None:
        self._trusted = trusted

    @classmethod
    def of_environment(cls, environ: Mapping[str, str]) -> "Addresses":
        """Trust the proxies of the setting; a private network where it is not set. Raises ValueError."""
        named = environ.get(TRUSTED_PROXIES)
        return cls(parse_networks(json.loads(named))) if named else cls()

    def of(self, scope: Scope) -> str:
        """Return the address that sent a request; "" if it is not known."""
        return network_of(scope, self._trusted)

    def of_peer(self, client: tuple[str, int] | None) -> str:
        """Return the address of a connection that has sent no request yet."""
        return network_of({"client": client, "headers": []})
