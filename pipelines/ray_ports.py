"""Gives the agents of a starting Ray node their ports, so that the node need not wait for them.

By default, an agent chooses its port. A node that doesn't learn the port within 15 s ends (ray#65983; there is no
setting). On a busy or slow machine, the agent's Python takes longer than that to start. Ray has no public way to give
its node the fourth of these ports.
"""

import contextlib
import errno
import random
import re
import socket
from collections.abc import Iterator, Sequence
from typing import Any

from pipelines import ray_internals

CHOSEN = ("metrics_agent_port", "runtime_env_agent_port", "metrics_export_port")
LISTEN, RAYS_OWN_LISTEN = "dashboard_agent_listen_port", 52365
AGENT_START_MS = 120_000  # how long a node waits for its agents; Ray's 30 s are too short on a busy machine
# Above the ports of a cluster's workers, and below the ports that Linux gives to connections.
PORTS = range(20000, 32768)


@contextlib.contextmanager
def given_ports() -> Iterator[None]:
    """Give nodes that start in the body the ports of their agents; ports that the caller did not set are chosen."""
    with (
        ray_internals.replaced(ray_internals.NODE, with_ports),
        ray_internals.replaced(ray_internals.START_PROCESS, with_listen_port),
    ):
        yield


def with_ports(node: Any, **options: Any) -> Any:
    """Return Ray's parameters of a node, with a port for each agent."""
    free = unused_ports()
    if options.get(LISTEN, RAYS_OWN_LISTEN) == RAYS_OWN_LISTEN and not is_free(RAYS_OWN_LISTEN):
        options[LISTEN] = next(free, 0)
    return node(**options | {name: options.get(name) or next(free, 0) for name in CHOSEN})


def with_listen_port(start: Any, command: Sequence[str], *rest: Any, **options: Any) -> Any:
    """Start one of Ray's processes; if its command gives an agent a port, give the node the same port."""
    told = next(
        filter(None, (re.search(r"^--dashboard_agent_command=.* --listen-port=(\d+)", word) for word in command)), None
    )
    if told and int(told[1]):
        command = [*command, f"--{LISTEN}={told[1]}"]
    return start(command, *rest, **options)


def unused_ports() -> Iterator[int]:
    """Yield ports on which nothing listens, each once, in random order."""
    return filter(is_free, random.SystemRandom().sample(PORTS, len(PORTS)))


def is_free(port: int) -> bool:
    """Return whether nothing on this machine listens on a port; recently closed connections don't count."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError as error:
            return error.errno != errno.EADDRINUSE
    return True
