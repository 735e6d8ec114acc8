"""Starts Ray clusters of several nodes on this machine, each with its own `ray start`, folders and address.

    with cluster(folder) as ray_cluster:
        worker = ray_cluster.add(cpus=2, gpus=1)
        run(["raydex", "index", …], env=ray_cluster.environment(DATABASE_URL=…))
        worker.kill()

Linux routes all of 127.0.0.0/8 to the loopback device, so every node has an address that no other machine can reach,
and its ports conflict with nobody's. Another kind of `Host`, such as a network namespace, provides its own address.
"""

import contextlib
import itertools
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kit.cluster import free_port
from kit.processes import eventually, marked

RAY = (sys.executable, str(Path(__file__).parents[2] / "deploy" / "start_ray.py"))  # as deploy/start-cluster
STORE_BYTES = 100_000_000
MARK = "RAYDEX_TEST_NODE"
_addresses = itertools.count(2)
_marks = itertools.count(1)


@dataclass(frozen=True)
class Host:
    """A place for nodes: an address, and the command prefix that runs a command there."""

    address: str
    enter: Sequence[str] = ()


def loopback_host() -> Host:
    """Return a host on this machine with a loopback address that this process has not used before."""
    return Host(f"127.{os.getpid() % 200 + 10}.{os.getpid() // 200 % 250}.{next(_addresses)}")


@dataclass
class RayNode:
    """One node: the processes of one `ray start`, which a mark in their environment identifies."""

    host: Host
    process: "subprocess.Popen[bytes]"
    mark: str
    log: Path
    home: Path  # RAYDEX_HOME of its processes

    def pids(self, command: str = "") -> list[int]:
        """Return the pids of this node whose command line contains `command`."""
        return marked(f"{MARK}={self.mark}", command)

    def kill(self) -> None:
        """Kill all processes of the node with SIGKILL, as if a machine lost its power."""
        # The raylet goes first, because it would replace dead workers. Then come all processes that started meanwhile.
        while pids := self.pids("raylet/raylet") or self.pids():
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.05)
        self.process.wait()


@dataclass
class RayNodes:
    """A cluster: a head, and nodes that come and go."""

    folder: Path
    token: str
    port: int
    head: RayNode = field(init=False)
    nodes: list[RayNode] = field(default_factory=list)

    @property
    def address(self) -> str:
        """The address that drivers and nodes connect to."""
        return f"{self.head.host.address}:{self.port}"

    def environment(self, **variables: str) -> dict[str, str]:
        """Return the environment of a driver of this cluster, or of a command that talks to it."""
        return os.environ | self._secrets() | {"RAY_ADDRESS": self.address} | variables

    def start_head(self, cpus: float, host: Host, flags: Sequence[str], variables: dict[str, str]) -> RayNode:
        """Start the head, or restart a dead one on the same port."""
        own = ["--head", f"--port={self.port}", *flags]
        if not any(flag.startswith("--include-dashboard") or flag.startswith("--dashboard") for flag in flags):
            own.append("--include-dashboard=false")
        self.head = self._start(own, cpus, 0, host, variables)
        return self.head

    def add(
        self, cpus: float = 1, gpus: float = 0, host: Host | None = None, flags: Sequence[str] = (), **variables: str
    ) -> RayNode:
        """Start a node with these declared resources, and return once the cluster counts it.

        `variables` are added to the environment of all its processes.
        """
        node = self._start([f"--address={self.address}", *flags], cpus, gpus, host or loopback_host(), variables)
        self.nodes.append(node)
        return node

    def _start(self, flags: Sequence[str], cpus: float, gpus: float, host: Host, variables: dict[str, str]) -> RayNode:
        mark = f"{os.getpid()}-{next(_marks)}"
        home = self.folder / f"home-{mark}"
        home.mkdir(parents=True)
        log = home / "ray-start.log"
        # Sockets are below the temporary folder, and their paths can have at most 107 bytes, so it is not below
        # `folder`.
        (temporary := Path(f"/tmp/rdx/{mark}")).mkdir(parents=True, exist_ok=True)
        command = [*host.enter, *RAY, "start", "--block", "--disable-usage-stats", f"--node-ip-address={host.address}",
                   f"--num-cpus={cpus:g}", f"--num-gpus={gpus:g}", f"--object-store-memory={STORE_BYTES}",
                   f"--temp-dir={temporary}", *flags]  # fmt: skip
        own = {"RAYDEX_HOME": str(home), "HOME": str(home), "TMPDIR": str(temporary), MARK: mark}
        environment = os.environ | self._secrets() | own | variables
        with log.open("wb") as output:
            process = subprocess.Popen(
                command, env=environment, stdout=output, stderr=output, start_new_session=True, cwd=home
            )
        node = RayNode(host, process, mark, log, home)
        eventually(lambda: "Ray runtime started" in log.read_text() or process.poll() is not None, "the node is up", 60)
        assert process.poll() is None, log.read_text()
        return node

    def _secrets(self) -> dict[str, str]:
        return {
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": self.token,
            "RAY_USAGE_STATS_REPORT_URL": "http://127.0.0.1:9",
        }


@contextlib.contextmanager
def cluster(
    folder: Path,
    cpus: float = 1,
    host: Host | None = None,
    flags: Sequence[str] = (),
    port: int | None = None,
    **variables: str,
) -> Iterator[RayNodes]:
    """Start a head with `cpus`, yield the cluster, and kill all its nodes at the end.

    `folder` contains the nodes' home folders and logs. Without a dashboard flag there is no dashboard, and no jobs can
    be submitted. The head listens on `port`, by default a free one.
    """
    nodes = RayNodes(folder, secrets.token_hex(32), port or free_port())
    try:
        nodes.start_head(cpus, host or loopback_host(), flags, variables)
        yield nodes
    finally:
        for node in (*nodes.nodes, nodes.head):
            node.kill()
