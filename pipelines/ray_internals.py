"""Lists every private name of Ray that Raydex uses, and what stops working if a Ray lacks it.

Callers look up a name with `find`, and leave Ray unchanged if it returns None. `warn_of_missing` logs missing names
once, at the start. This module doesn't know what the names are used for, and imports Ray on first use.
"""

import contextlib
import functools
import importlib
import inspect
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from operator import attrgetter
from typing import Any

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Internal:
    """A private name of Ray, the parameters it must have, and what stops working without it."""

    module: str
    name: str
    lost: str
    parameters: tuple[str, ...] = ()

    @property
    def owner(self) -> Any:
        """The module that contains the name, for callers that replace it."""
        return importlib.import_module(self.module)

    def __str__(self) -> str:
        return f"{self.module}.{self.name}({', '.join(self.parameters)})"


NETWORK = "a local Ray may listen on the network"
USAGE = "a local Ray collects usage statistics"
SLOW_START = "a local Ray may fail to start on a busy machine"
PORTS = "replicas listen on every interface, where the API still requires keys"
PROXY = "requests go through Ray's own proxy, a few milliseconds slower"
ADDRESS = "keys are required on loopback too, unless RAYDEX_KEYS_REQUIRED is false"

FREE_RESOURCES = Internal("ray._private.state", "available_resources_per_node", "all resources of a node count as free")
CLUSTERS = Internal("ray._private.ray_constants", "ENABLE_RAY_CLUSTER", NETWORK)
CLUSTERS_VARIABLE = Internal("ray._private.ray_constants", "ENABLE_RAY_CLUSTERS_ENV_VAR", NETWORK)
SET_USAGE = Internal("ray._common.usage.usage_lib", "set_usage_stats_enabled_via_env_var", USAGE, ("enabled",))
ASK_DASHBOARD = Internal(
    "ray.dashboard.modules.dashboard_sdk",
    "SubmissionClient._do_request",
    "`raydex submit --status` can't show the nodes",
    ("method", "endpoint"),
)
START_DASHBOARD = Internal("ray._private.services", "start_api_server", USAGE, ("include_dashboard",))
NODE = Internal("ray._private.parameter", "RayParams", SLOW_START, ("metrics_agent_port", "runtime_env_agent_port"))
START_PROCESS = Internal("ray._private.services", "start_ray_process", SLOW_START, ("command",))

OPEN_PORT = Internal("ray.serve._private.replica", "add_port_to_grpc_server", PORTS, ("server", "address"))
START_HTTP = Internal("ray.serve._private.replica", "start_asgi_http_server", PORTS, ("app", "http_options"))
HAPROXY = Internal("ray.serve._private.constants", "RAY_SERVE_ENABLE_HA_PROXY", PORTS)
CLIENT = Internal("ray.serve.context", "_get_global_client", ADDRESS, ("raise_if_no_controller_running",))
HTTP_CONFIG = Internal("ray.serve._private.client", "ServeControllerClient.http_config", ADDRESS)
CONTROLLER = Internal("ray.serve._private.constants", "SERVE_CONTROLLER_NAME", PROXY)
NAMESPACE = Internal("ray.serve._private.constants", "SERVE_NAMESPACE", PROXY)
ROUTES = Internal("ray.serve._private.long_poll", "LongPollNamespace.ROUTE_TABLE", PROXY)
TARGETS = Internal("ray.serve._private.long_poll", "LongPollNamespace.DEPLOYMENT_TARGETS", PROXY)
LISTEN = Internal(
    "ray.serve._private.long_poll",
    "LongPollClient",
    PROXY,
    ("host_actor", "key_listeners", "call_in_event_loop", "client_id"),
)
ENDPOINT = Internal("ray.serve._private.common", "EndpointInfo", PROXY, ("route",))
RUNNING = Internal("ray.serve._private.common", "DeploymentTargetInfo", PROXY, ("running_replicas",))
REPLICA = Internal("ray.serve._private.common", "RunningReplicaInfo", PROXY, ("node_id", "backend_http_port"))

OF_CLUSTERS = (
    FREE_RESOURCES,
    CLUSTERS,
    CLUSTERS_VARIABLE,
    SET_USAGE,
    START_DASHBOARD,
    ASK_DASHBOARD,
    NODE,
    START_PROCESS,
)
OF_REPLICAS = (OPEN_PORT, START_HTTP, HAPROXY)
OF_ROUTES = (CONTROLLER, NAMESPACE, ROUTES, TARGETS, LISTEN, ENDPOINT, RUNNING, REPLICA)
OF_SERVE = (CLIENT, HTTP_CONFIG, *OF_REPLICAS, *OF_ROUTES)


def find(internal: Internal) -> Any:
    """Return the object with this name; None if this Ray has no such name or its parameters differ."""
    try:
        found = attrgetter(internal.name)(internal.owner)
        if internal.parameters and not set(internal.parameters) <= inspect.signature(found).parameters.keys():
            return None
    except (ImportError, AttributeError, TypeError, ValueError):
        return None
    return found


@contextlib.contextmanager
def replaced(internal: Internal, value: Callable[..., Any]) -> Iterator[None]:
    """While the body runs, have Ray call `value` with the original object and the call's arguments.

    Does nothing if this Ray has no such name.
    """
    own = find(internal)
    if own is None:
        yield
        return
    setattr(internal.owner, internal.name, functools.partial(value, own))
    try:
        yield
    finally:
        setattr(internal.owner, internal.name, own)


def has_all(internals: Sequence[Internal]) -> bool:
    """Return whether this Ray has all of `internals`."""
    return all(find(internal) is not None for internal in internals)


@cache
def warn_of_missing(internals: tuple[Internal, ...]) -> None:
    """Log one line with the `internals` that this Ray lacks and what stops working; once per process."""
    missing = [internal for internal in internals if find(internal) is None]
    if missing:
        version = importlib.import_module("ray").__version__
        lost = "; ".join(dict.fromkeys(internal.lost for internal in missing))
        log.warning("Ray %s has no %s, so %s", version, ", ".join(map(str, missing)), lost)
