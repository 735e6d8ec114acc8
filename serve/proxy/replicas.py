"""Tracks the ports of this machine on which the running replicas of each application listen.

Serve's controller reports them, as to Ray's own proxies, by long polls: requests that it answers at each change. No
other source in Serve reports a running or ending replica as quickly.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import ray

from pipelines.ray_internals import CONTROLLER, LISTEN, NAMESPACE, OF_ROUTES, ROUTES, TARGETS, find, has_all


class RunningReplicas:
    """The ports of running replicas by path prefix; empty until the first request has started the polls.

    Replicas on other machines are left out, and so are those that do not listen themselves: Ray's proxy finds them. If
    Ray's private names have changed, none is known.
    """

    def __init__(self) -> None:
        self._can_listen = has_all(OF_ROUTES)
        self._ports: dict[Any, tuple[int, ...]] = {}
        self._prefixes: dict[str, Any] = {}
        self._polls: dict[Any, Any] = {}
        self._busy: Counter[int] = Counter()

    def ports_for(self, path: str) -> list[int]:
        """Return the ports of the application with `path`, the one with the fewest requests first."""
        if not self._polls and self._can_listen:
            self._polls[None] = self.listen({find(ROUTES): self.take_routes})
        fits = [prefix for prefix in self._prefixes if f"{path}/".startswith(prefix.rstrip("/") + "/")]
        deployment = self._prefixes[max(fits, key=len)] if fits else None
        return sorted(self._ports.get(deployment, ()), key=self._busy.__getitem__)

    @contextmanager
    def counted(self, port: int) -> Iterator[None]:
        """Count a request to `port` while the body runs."""
        self._busy[port] += 1
        try:
            yield
        finally:
            self._busy[port] -= 1

    def take_routes(self, endpoints: Mapping[Any, Any]) -> None:
        """Update Serve's table of applications, and poll the replicas of each."""
        self._prefixes = {info.route: deployment for deployment, info in endpoints.items()}
        for deployment in self._polls.keys() - endpoints.keys() - {None}:
            self._polls.pop(deployment).stop()
            self._ports.pop(deployment, None)
        for deployment in endpoints.keys() - self._polls.keys():
            key = (find(TARGETS), deployment)
            self._polls[deployment] = self.listen({key: lambda targets, of=deployment: self.take(of, targets)})

    def take(self, deployment: Any, targets: Any) -> None:
        """Update the running replicas of a deployment."""
        here = ray.get_runtime_context().get_node_id()
        ports = [replica.backend_http_port for replica in targets.running_replicas if replica.node_id == here]
        self._ports[deployment] = tuple(filter(None, ports))

    @staticmethod
    def listen(listeners: dict[Any, Any]) -> Any:
        """Let Serve's controller call the `listeners` at each change, until the result is stopped."""
        controller = ray.get_actor(find(CONTROLLER), find(NAMESPACE))
        return find(LISTEN)(controller, listeners, asyncio.get_running_loop(), client_id="serve.proxy")
