"""Serves Raydex on a cluster of several hosts with deploy/serve.yaml, and queries it from many clients.

Every node is a host in its own network namespace with its own RAYDEX_HOME: nodes share only the network and Postgres.
"""

import contextlib
import copy
import json
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from kit.hosts import NetHost, Network, network
from kit.nodes import RayNode, RayNodes, cluster
from kit.processes import eventually
from kit.workshop import Workshop

from pipelines import embedded
from pipelines.store import Store
from serve.proxy import VARIABLES

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "deploy/serve.yaml"
PORT, DASHBOARD = 8000, 8265
PATIENCE_S = 20.0  # of a client: a slower reply counts as a hang
CLIENTS = 8
SUBJECTS = ("anchors", "barrels", "candles", "dragons", "engines", "feathers", "gardens", "hammers")
SITE = {f"{name}.html": {"about": f"Text about {name}: they are kept in hall {n}."} for n, name in enumerate(SUBJECTS)}
# Settings from docs/serving.md for several nodes. Direct ingress is off, because with it Ray has a single proxy.
SEVERAL = {
    "RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH": VARIABLES["RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH"],
    "RAY_health_check_period_ms": "300",
    "RAY_health_check_failure_threshold": "3",
}
OPEN = {"RAYDEX_PUBLIC": "true", "RAYDEX_LIMITS_ADDRESS_RATE": "0", "RAYDEX_LIMITS_ANONYMOUS_RATE": "0"}
ANSWER, COME_BACK, ENDED = "answer", "503 with Retry-After", "stream ended by an error event"


@dataclass
class Serving:
    """A cluster that serves. A head without CPUs leaves all replicas to `workers`."""

    nodes: RayNodes
    net: Network
    head: NetHost
    config: dict[str, Any] = field(default_factory=lambda: yaml.safe_load(EXAMPLE.read_text()))
    workers: dict[str, RayNode] = field(default_factory=dict)  # by address
    flags: Sequence[str] = ()  # for all nodes
    ports: Sequence[str] = ()  # that others can connect to; none: all

    def add(self, cpus: float = 2, gpus: float = 0) -> RayNode:
        host = self.net.host()
        if self.ports:
            host.open_only(self.ports)
        node = self.nodes.add(cpus, gpus, host.host, self.flags)
        self.workers[node.host.address] = node
        return node

    def options(self, deployment: str, **options: Any) -> None:
        """Set options of a deployment for the next `deploy`. None removes an option."""
        (found,) = [one for one in self.config["applications"][0]["deployments"] if one["name"] == deployment]
        found |= copy.deepcopy(options)
        for name in [name for name, value in found.items() if value is None]:
            del found[name]

    def scaling(self, deployment: str) -> dict[str, Any]:
        """Return a deployment's autoscaling configuration in the file."""
        (found,) = [one for one in self.config["applications"][0]["deployments"] if one["name"] == deployment]
        return dict(found["autoscaling_config"])

    @property
    def args(self) -> dict[str, Any]:
        """The settings under `args` for the next `deploy`."""
        args: dict[str, Any] = self.config["applications"][0]["args"]
        return args

    def deploy(self) -> None:
        """Run `serve deploy` with the current configuration. The deployment may not be finished yet."""
        file = self.nodes.folder / "serve.yaml"
        file.write_text(yaml.safe_dump(self.config))
        url = f"http://{self.head.host.address}:{DASHBOARD}"
        env = self.nodes.environment()
        command = [str(Path(sys.executable).with_name("serve")), "deploy", str(file), "--address", url]
        done = subprocess.run(command, env=env, capture_output=True, text=True, cwd=ROOT, check=False)
        assert done.returncode == 0, done.stderr[-3000:]

    def status(self) -> dict[str, Any]:
        """Return the application's status from Serve's API."""
        headers = {"Authorization": f"Bearer {self.nodes.token}"}
        url = f"http://{self.head.host.address}:{DASHBOARD}/api/serve/applications/"
        told: dict[str, Any] = httpx.get(url, headers=headers, timeout=10).json()
        return told

    def placed(self, deployment: str) -> Counter[str]:
        """Return the number of a deployment's running replicas per address."""
        app = self.status()["applications"].get("raydex", {})
        replicas = app.get("deployments", {}).get(deployment, {}).get("replicas", [])
        return Counter(replica["node_ip"] for replica in replicas if replica["state"] == "RUNNING")

    def running(self) -> bool:
        app = self.status()["applications"].get("raydex", {})
        assert app.get("status") != "DEPLOY_FAILED", app.get("message")
        return app.get("status") == "RUNNING"

    def url(self, address: str) -> str:
        return f"http://{address}:{PORT}"

    def wait_until_answering(self, *addresses: str, within_s: float = 120) -> None:
        """Wait until the proxies at `addresses` answer ten questions in a row each."""
        for address in addresses:
            with httpx.Client(base_url=self.url(address), timeout=PATIENCE_S) as http:
                eventually(
                    lambda: all(ask(http, number)[0] == ANSWER for number in range(10)), f"{address} answers", within_s
                )


@contextlib.contextmanager
def serving(
    folder: Path,
    model: str = "hash:64",
    cpus: float = 0,
    node_flags: Sequence[str] = (),
    ports: Sequence[str] = (),
    **variables: str,
) -> Iterator[Serving]:
    """Start Postgres with an index, and a head with `cpus` on its own host. Nothing is deployed yet.

    All nodes start with `node_flags`. Others can connect only to these `ports` of the nodes, and to the head's
    dashboard.
    """
    with network() as net, embedded.run_postgres(folder) as url:
        with Store(url) as store:
            store.migrate()
            Workshop(store, model=model).reindex(SITE)
        head = net.host()
        if ports:
            head.open_only([*ports, str(DASHBOARD)])
        flags = [
            "--include-dashboard=true", "--dashboard-host=0.0.0.0", f"--dashboard-port={DASHBOARD}", *node_flags
        ]  # fmt: skip
        common = SEVERAL | {"DATABASE_URL": net.publish(url), "PYTHONPATH": str(ROOT)} | OPEN
        with pytest.MonkeyPatch.context() as patch:
            for name, value in (common | variables).items():
                patch.setenv(name, value)
            with cluster(folder, cpus, head.host, flags, 6379) as nodes:
                yield Serving(nodes, net, head, flags=node_flags, ports=ports)


def ask(http: httpx.Client, number: int) -> tuple[str, str]:
    """Ask about a subject, and return the outcome and the error."""
    subject = SUBJECTS[number % len(SUBJECTS)]
    text = SITE[f"{subject}.html"]["about"]
    try:
        reply = http.post("/search", json={"question": f"Where are {subject} kept?"})
    except httpx.TimeoutException:
        return "hang", ""
    except httpx.HTTPError as error:
        return type(error).__name__, str(error)
    if reply.status_code == 503:
        return (COME_BACK if reply.headers.get("retry-after", "").isdigit() else "bare 503"), reply.text
    if reply.status_code != 200:
        return str(reply.status_code), reply.text[:500]
    hits = reply.json()["hits"]
    return (ANSWER, "") if hits and hits[0]["text"] == text else ("wrong answer", reply.text[:500])


def ask_streamed(http: httpx.Client, number: int) -> tuple[str, str]:
    """Like `ask`, for a streamed answer. It quotes its source first, because there is no language model."""
    subject = SUBJECTS[number % len(SUBJECTS)]
    try:
        with http.stream("POST", "/query/stream", json={"question": f"Where are {subject} kept?"}) as reply:
            if reply.status_code == 503 and reply.headers.get("retry-after", "").isdigit():
                return COME_BACK, ""
            lines = [line.partition(": ") for line in reply.iter_lines()]
        names, bodies = ([value for field, _, value in lines if field == wanted] for wanted in ("event", "data"))
        events = {name: json.loads(body) for name, body in zip(names, bodies, strict=False)}
    except httpx.TimeoutException:
        return "hang", ""
    except httpx.HTTPError as error:
        return type(error).__name__, str(error)
    except ValueError:
        return "cut stream", ""
    if "answer" not in events:
        return (ENDED if "error" in events else "cut stream"), str(events)[:500]
    text = events["answer"]["answer"]
    quoted = [name for name in SUBJECTS if SITE[f"{name}.html"]["about"] in text]
    quoted.sort(key=lambda name: text.index(SITE[f"{name}.html"]["about"]))
    return (ANSWER, "") if quoted[:1] == [subject] else ("wrong answer", text[:500])


class Load:
    """Clients that ask one question after another at `urls` while in the block, and record each outcome."""

    def __init__(
        self, *urls: str, clients: int = CLIENTS, pause_s: float = 0.02, ask: Callable[..., tuple[str, str]] = ask
    ) -> None:
        self._ask_one = ask
        self.ends: list[tuple[float, float, str, str]] = []  # end time, duration, outcome, error
        self._urls, self._pause_s, self._over = urls, pause_s, threading.Event()
        self._threads = [threading.Thread(target=self._ask, args=(n,), daemon=True) for n in range(clients)]

    def __enter__(self) -> "Load":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join(2 * PATIENCE_S)

    def _ask(self, number: int) -> None:
        with httpx.Client(base_url=self._urls[number % len(self._urls)], timeout=PATIENCE_S) as http:
            while not self._over.is_set():
                began = time.monotonic()
                end, wrong = self._ask_one(http, number := number + 1)
                now = time.monotonic()
                self.ends.append((now, now - began, end, wrong))
                time.sleep(self._pause_s)

    def counts(self, since: float = 0.0) -> Counter[str]:
        return Counter(end for at, _, end, _ in self.ends if at >= since)

    def disturbed_s(self, since: float) -> float:
        """Return for how many seconds after `since` a question that began then could fail or be late.

        Late is a second more than the longest wait before `since`, so a slow machine doesn't count as a disturbance.
        """
        late = 1 + max((took for at, took, _, _ in self.ends if at < since), default=0.0)
        began = [at - took for at, took, end, _ in self.ends if at >= since and (end != ANSWER or took > late)]
        return max([since, *began]) - since

    def percentile_s(self, percent: int) -> float:
        return statistics.quantiles((took for _, took, _, _ in self.ends), n=100)[percent - 1]

    def longest_s(self, since: float = 0.0) -> float:
        return max((took for at, took, _, _ in self.ends if at >= since), default=0.0)
