"""Reports where Serve's proxy listens, and keeps the replicas' ports on loopback.

Ray 2.60 has no options for either; if a later version differs, its own behavior applies (pipelines/ray_internals.py).
"""

from typing import Any, NamedTuple

import ray
from ray import serve
from ray.serve.config import HTTPOptions
from starlette.types import ASGIApp

from pipelines import ray_internals

LOOPBACK = "127.0.0.1"
EVERY_INTERFACE = "0.0.0.0"


class Address(NamedTuple):
    """Where a Serve listens; `port` is None if unknown."""

    host: str
    port: int | None


def running_address() -> Address | None:
    """Return where the Serve of the connected Ray listens; None if none runs.

    An unknown address counts as reachable by everyone, so that keys are required.
    """
    if not ray_internals.has_all((ray_internals.CLIENT, ray_internals.HTTP_CONFIG)):
        return Address(EVERY_INTERFACE, None) if serve.status().proxies else None
    client = ray_internals.find(ray_internals.CLIENT)(raise_if_no_controller_running=False)
    # With HAProxy in front, Ray reports no host.
    return Address(client.http_config.host or EVERY_INTERFACE, client.http_config.port) if client else None


def keep_ports_on_loopback() -> None:
    """Make this process's replica listen only on this machine, if nobody else has to reach it.

    Calls between deployments come from other machines unless Ray itself is on loopback. HTTP comes from the proxy on
    this machine, or from an HAProxy on another one.
    """
    if ray.util.get_node_ip_address() == LOOPBACK:
        _replace(ray_internals.OPEN_PORT, lambda own: lambda server, address: own(server, f"{LOOPBACK}:0"))
    if ray_internals.find(ray_internals.HAPROXY) is False:
        _replace(ray_internals.START_HTTP, _start_http)


def _replace(internal: ray_internals.Internal, make: Any) -> None:
    own = ray_internals.find(internal)
    if own is not None:
        setattr(internal.owner, internal.name, make(own))


def _start_http(own: Any) -> Any:
    def start(app: ASGIApp, http_options: HTTPOptions, **more: Any) -> Any:
        # The proxy ends TLS.
        mine = http_options.model_copy(update={"host": LOOPBACK, "ssl_keyfile": None, "ssl_certfile": None})
        return own(app, mine, **more)

    return start
