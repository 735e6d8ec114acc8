"""Middleware for Ray's proxy: limited connections, complete bodies, direct paths, 503 on replica loss.

Ray loads it from RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH=serve.proxy:middlewares, which must be set where Ray is
started. The proxy is a separate process, so this package imports as little of the service as possible.
"""

import os
from collections.abc import MutableMapping
from typing import Any

from starlette.middleware import Middleware

from serve.proxy.replica_loss import AnswerReplicaLoss, no_replica

# Set where Ray starts. Replicas then listen themselves (on loopback: see serve/app.py), and Ray's proxy stays in front.
# An ending replica accepts requests for another second, until every proxy knows about it; Ray waits for two anyway.
VARIABLES = {
    "RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH": "serve.proxy:middlewares",
    "RAY_SERVE_ENABLE_DIRECT_INGRESS": "1",
    "RAY_SERVE_DIRECT_INGRESS_MIN_DRAINING_PERIOD_S": "1",
    # Ray kills a proxy that is not ready after 5 s, and starting Serve fails with it; a busy machine needs longer.
    "RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S": "60",
    # HAProxy, if an operator uses it, shares the port with our claim (see serve/port.py), like Ray's proxy.
    "SERVE_SOCKET_REUSE_PORT_ENABLED": "1",
}


def configure(environ: MutableMapping[str, str]) -> None:
    """Set the variables with which Ray loads the middleware, unless they are already set."""
    for name, value in VARIABLES.items():
        environ.setdefault(name, value)


def middlewares() -> list[Any]:
    """Return the middleware around the application of Ray's proxy, the inner one first, and limit its connections.

    A replica also waits for bodies and limits its connections, because it can be reached without the proxy. Everything
    that the proxy, or an HAProxy, forwards comes to it from one address.
    """
    from serve.guard.origin import UNDELAYED_RATE
    from serve.proxy.address import trusted_proxies
    from serve.proxy.bodies import MOST, MOST_BODY_BYTES, WholeBodies
    from serve.proxy.connections import MOST_IDLE, bound_connections

    trusted = trusted_proxies(os.environ)
    most_bytes = int(os.environ.get("RAYDEX_MAX_BODY_BYTES", MOST_BODY_BYTES))  # the setting max_body_bytes
    bodies: dict[str, Any] = {"most_bytes": most_bytes, "trusted": trusted}
    if _in_replica():
        bound_connections(trusted, MOST_IDLE)
        return [Middleware(WholeBodies, most_of_address=MOST, **bodies)]
    from serve.proxy.direct import DirectToReplica
    from serve.proxy.replicas import RunningReplicas

    rate = int(os.environ.get("RAYDEX_UNDELAYED_RATE", UNDELAYED_RATE))  # the setting undelayed_rate
    bound_connections(trusted, undelayed_rate=rate)
    direct = Middleware(DirectToReplica, replicas=RunningReplicas())
    return [direct, Middleware(WholeBodies, **bodies), Middleware(AnswerReplicaLoss, absent=no_replica)]


def _in_replica() -> bool:
    from ray import serve
    from ray.serve.exceptions import RayServeException

    try:
        serve.get_replica_context()
    except RayServeException:
        return False
    return True
