"""Creates hosts on this machine: network namespaces on a bridge, each with its own address and loopback.

    with network() as net:
        head, worker = net.host(), net.host()
        with cluster(folder, host=head.host) as nodes:
            nodes.add(host=worker.host)
            worker.cut()

`publish` makes a port of this machine's loopback reachable to the hosts at the bridge's address. Requires root and
iproute2, and nftables for `open_only`; skips the test without them. A slow link is a process that delays frames, so the
kernel does not need `netem`. Everything is removed at the end.
"""

import asyncio
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from kit.nodes import Host

SLOW_LINK = Path(__file__).with_name("slow_link.py")
RULES = """
table inet raydex {{
  set refused {{ type inet_service; flags dynamic; size 4096; }}
  chain input {{
    type filter hook input priority 0; policy drop;
    iif lo accept
    ct state established,related accept
    meta l4proto icmp accept
    tcp dport {{ {ports} }} accept
    tcp flags & (syn | ack) == syn add @refused {{ tcp dport }}
  }}
}}
"""


@dataclass
class NetHost:
    """One host. `host` is the object that a cluster's node runs on."""

    host: Host
    namespace: str
    link: str  # its end at the bridge

    def run(self, *command: str) -> str:
        """Run a command on the host and return its output."""
        return _run(*self.host.enter, *command)

    def cut(self) -> None:
        """Cut the host off: everything sent to it or by it is lost, as with a pulled cable."""
        _run("ip", "link", "set", self.link, "nomaster")

    def mend(self) -> None:
        """Reconnect the host to the network."""
        _run("ip", "link", "set", self.link, "master", self.link.partition("-")[0])

    def open_only(self, ports: Sequence[str]) -> None:
        """Allow other hosts to connect only to these ports ("6379" or "10002-19999"). Skips without nftables."""
        if shutil.which("nft") is None:
            pytest.skip("no nftables: on Debian, as root: apt-get install nftables")
        rules = RULES.format(ports=", ".join(ports))
        subprocess.run([*self.host.enter, "nft", "-f", "-"], input=rules, text=True, check=True)

    def refused(self) -> set[int]:
        """Return the closed ports that others tried to connect to since `open_only`."""
        listed = json.loads(self.run("nft", "--json", "list", "set", "inet", "raydex", "refused"))["nftables"]
        return {int(port) for entry in listed if "set" in entry for port in entry["set"].get("elem", [])}


@dataclass
class Network:
    """A bridge and its hosts. `address` is this machine's address on it."""

    bridge: str
    prefix: str
    hosts: list[NetHost] = field(default_factory=list)
    pumps: "list[subprocess.Popen[bytes]]" = field(default_factory=list)
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)
    _listening: list[asyncio.Server] = field(default_factory=list)

    @property
    def address(self) -> str:
        return f"{self.prefix}.1"

    def host(self, delay_s: float = 0.0, bits_per_s: float = 0.0) -> NetHost:
        """Return a new host. With a delay, its frames arrive that much later in each direction, at a limited rate."""
        number = len(self.hosts) + 2
        name, link = f"{self.bridge}h{number}", f"{self.bridge}-{number}"
        host = NetHost(Host(f"{self.prefix}.{number}", ("ip", "netns", "exec", name)), name, link)
        _run("ip", "netns", "add", name)
        self.hosts.append(host)
        if delay_s:
            command = [sys.executable, str(SLOW_LINK), link, name, str(delay_s), str(bits_per_s)]
            self.pumps.append(pump := subprocess.Popen(command, stdout=subprocess.PIPE))
            assert pump.stdout is not None
            assert pump.stdout.readline() == b"ready\n"
        else:
            _run("ip", "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", name)
        _run("ip", "link", "set", link, "master", self.bridge, "up")
        host.run("ip", "link", "set", "lo", "up")
        host.run("ip", "address", "add", f"{host.host.address}/24", "dev", "eth0")
        host.run("ip", "link", "set", "eth0", "up")
        return host

    def publish(self, url: str) -> str:
        """Make a service on loopback reachable to the hosts, and return its URL with the bridge's address."""
        parts = urlsplit(url)
        assert parts.port is not None
        asyncio.run_coroutine_threadsafe(self._listen(parts.port), self._loop).result(10)
        return url.replace(f"{parts.hostname}:{parts.port}", f"{self.address}:{parts.port}")

    async def _listen(self, port: int) -> None:
        async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with contextlib.suppress(OSError, asyncio.CancelledError):  # the network is shutting down
                theirs, ours = await asyncio.open_connection("127.0.0.1", port)
                await asyncio.gather(_copy(reader, ours), _copy(theirs, writer))
            writer.close()

        self._listening.append(await asyncio.start_server(forward, self.address, port))

    async def _close(self) -> None:
        for server in self._listening:
            server.close()
        forwarding = asyncio.all_tasks() - {asyncio.current_task()}
        for task in forwarding:
            task.cancel()
        await asyncio.gather(*forwarding, return_exceptions=True)
        self._loop.stop()


@contextlib.contextmanager
def network() -> Iterator[Network]:
    """Create a bridge and yield its network. At the end, stop the processes on its hosts and remove everything.

    Skips with the reason if that is impossible here.
    """
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("network namespaces need root and iproute2")
    number = os.getpid()
    net = Network(f"rdx{number}", f"10.{number % 50 + 200}.{number // 50 % 250}")
    threading.Thread(target=net._loop.run_forever, daemon=True).start()
    try:
        _run("ip", "link", "add", net.bridge, "type", "bridge")
        _run("ip", "address", "add", f"{net.address}/24", "dev", net.bridge)
        _run("ip", "link", "set", net.bridge, "up")
        yield net
    finally:
        asyncio.run_coroutine_threadsafe(net._close(), net._loop)
        for pump in net.pumps:
            pump.kill()
            pump.wait()
        for host in net.hosts:
            for pid in _run("ip", "netns", "pids", host.namespace).split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
            _run("ip", "netns", "del", host.namespace)
            subprocess.run(["ip", "link", "del", host.link], capture_output=True, check=False)  # gone with its peer
        _run("ip", "link", "del", net.bridge)


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while part := await source.read(1 << 16):
            target.write(part)
            await target.drain()
        target.write_eof()


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout
