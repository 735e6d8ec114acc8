"""Starts Ray for a test session, and Serve in it, which runs one application after another."""

import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import ray
from ray import serve

from pipelines.cluster import start_local_ray
from serve import proxy
from serve.app import build
from serve.settings import Settings

APP = "raydex"
READY_S = 60.0


@contextmanager
def local_ray() -> Iterator[None]:
    """Start Ray with two CPUs and connect to it. Jobs and Serve use this connection."""
    proxy.configure(os.environ)
    start_local_ray(num_cpus=2)
    try:
        yield
    finally:
        ray.shutdown()


class Service:
    """Serve at `url`, with at most one application."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"

    @contextmanager
    def deployed(self, settings: Settings) -> Iterator[None]:
        """Deploy the application of `settings`. It may not be ready yet."""
        serve.run(build(settings), name=APP, route_prefix="/")
        try:
            yield
        finally:
            serve.delete(APP)

    def wait_until_ready(self) -> None:
        deadline = time.monotonic() + READY_S
        while (ready := httpx.get(f"{self.url}/health/ready", timeout=30)).status_code != httpx.codes.OK:
            assert time.monotonic() < deadline, ready.text
            time.sleep(0.1)


@contextmanager
def local_serve() -> Iterator[Service]:
    """Start Serve in the connected Ray on a free loopback port."""
    port = free_port()
    serve.start(http_options={"host": "127.0.0.1", "port": port}, proxy_location="HeadOnly")
    try:
        yield Service(port)
    finally:
        serve.shutdown()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
