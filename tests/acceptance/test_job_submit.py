"""Jobs on a Ray cluster as a user submits them: a real head with a token, started and used by deploy/'s own scripts.

One cluster for all tests, with its own ports, folder and token; the two GPUs that it declares do not exist. Only what
was started here is ended: `ray stop` would end every Ray of the machine.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from pipelines.store import Store

pytestmark = pytest.mark.exhaustive

ROOT = Path(__file__).parents[2]
RAY = Path(sys.executable).parent / "ray"
START_TIMEOUT_S = 90.0


@dataclass(frozen=True)
class Cluster:
    address: str
    token: str
    environment: dict[str, str]

    def run(self, *command: str, timeout: float = 150.0, **environment: str) -> subprocess.CompletedProcess[str]:
        """A command in another shell, with the cluster's address and token and a few variables more."""
        return subprocess.run(
            command, cwd=ROOT, env=self.environment | environment, text=True, timeout=timeout, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def get(self, path: str, **headers: str) -> httpx.Response:
        return httpx.get(self.address + path, headers=headers, timeout=10)


def free_ports(count: int) -> list[str]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [str(each.getsockname()[1]) for each in sockets]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = Path(tempfile.mkdtemp(prefix="rdx-", dir="/tmp"))  # sockets lie in it: their path must be short
    token, log = tmp_path_factory.mktemp("cluster") / "ray" / "token", folder / "start-cluster.log"
    gcs, dashboard, client, agent = free_ports(4)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY")}
    environment |= {
        "RAY_AUTH_TOKEN_PATH": str(token),
        "RAY_AUTH_MODE": "token",
        "RAY_API_SERVER_ADDRESS": f"http://127.0.0.1:{dashboard}",
    }
    with log.open("w") as output:
        head = subprocess.Popen(
            ["deploy/start-cluster", f"--port={gcs}", f"--dashboard-port={dashboard}",
             f"--ray-client-server-port={client}", f"--dashboard-agent-listen-port={agent}", f"--temp-dir={folder}",
             "--num-cpus=2", "--num-gpus=2", f"--object-store-memory={200 * 2**20}"],
            cwd=ROOT, env=environment, stdout=output, stderr=output, start_new_session=True,
        )  # fmt: skip
    try:
        wait_for_jobs_api(environment["RAY_API_SERVER_ADDRESS"], token, head, log)
        yield Cluster(environment["RAY_API_SERVER_ADDRESS"], token.read_text(), environment)
    finally:
        end(head)
        shutil.rmtree(folder, ignore_errors=True)


def wait_for_jobs_api(address: str, token: Path, head: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline and head.poll() is None:
        try:
            headers = {"Authorization": f"Bearer {token.read_text()}"}
            if httpx.get(f"{address}/api/jobs/", headers=headers, timeout=5).status_code == httpx.codes.OK:
                return
        except (OSError, httpx.HTTPError):
            pass
        time.sleep(0.5)
    pytest.fail(f"the cluster did not come up: {log.read_text()[-3000:]}")


def end(head: "subprocess.Popen[bytes]") -> None:
    """Ctrl-C, then harder; the group holds the launcher and every Ray process that it started."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        if head.poll() is not None:
            return
        os.killpg(head.pid, number)
        try:
            head.wait(20)
        except subprocess.TimeoutExpired:
            continue


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder of twelve pages with a section each."""
    for number in range(12):
        (tmp_path / f"page{number}.html").write_text(
            f"<html><head><title>Page {number}</title></head><body><main><section id='part-{number}'><h1>Part {number}"
            f"</h1><p>Nodes of kind {number} restart after {number} minutes.</p></section></main></body></html>"
        )
    return tmp_path


def summary_of(output: str) -> dict:
    """The JSON object that the job printed last; Ray's own lines surround it."""
    lines = [line for line in output.splitlines() if line.startswith("{")]
    assert lines, output
    return json.loads(lines[-1])


def test_a_submitted_job_publishes_into_the_database_that_was_passed_on(cluster, database_url, site):
    """The collection file is found by its relative path in the copied working directory."""
    done = cluster.run(
        "deploy/submit", "jobs.reindex", "collections/ray.yaml", "--model", "hash:64", "--path", str(site),
        "--base-url", "https://docs.ray.io/en/latest/", "--json", DATABASE_URL=database_url,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    summary = summary_of(done.stdout)
    assert summary["published"]
    assert summary["chunks"]["embedded"] == summary["chunks"]["total"] == 12
    with Store(database_url) as store:
        (live,) = store.status("ray")["indexes"]
    assert (live["state"], live["stats"]["chunks"], live["stats"]["pages"]) == ("live", 12, 12)


def test_nobody_submits_without_the_token(cluster, tmp_path):
    assert cluster.get("/api/jobs/").status_code == httpx.codes.UNAUTHORIZED
    assert cluster.get("/api/jobs/", Authorization="Bearer " + "0" * 64).status_code != httpx.codes.OK
    assert cluster.get("/api/jobs/", Authorization=f"Bearer {cluster.token}").status_code == httpx.codes.OK
    empty = {"HOME": str(tmp_path), "RAY_AUTH_TOKEN_PATH": "", "RAY_AUTH_MODE": "disabled"}
    done = cluster.run(str(RAY), "job", "submit", "--", "true", **empty)
    assert done.returncode != 0
    assert "Missing authentication token" in done.stdout


def test_the_token_is_readable_by_its_owner_alone(cluster):
    path = Path(cluster.environment["RAY_AUTH_TOKEN_PATH"])
    assert len(cluster.token) == 64
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_a_plainly_submitted_job_refuses_a_relative_folder(cluster):
    """The working directory is a copy: what is read there may be old, and is not on other nodes."""
    done = cluster.run(
        str(RAY), "job", "submit", "--working-dir", ".", "--",
        "python", "-m", "jobs.reindex", "--path", "docs", "--base-url", "https://raydex.example/", "--model", "hash:64",
    )  # fmt: skip
    assert done.returncode != 0
    assert "path 'docs' is relative" in done.stdout
    assert "Traceback" not in done.stdout.split("python -m jobs.reindex:")[1]


def test_declared_gpus_are_shared_by_fractions_and_a_missing_cuda_is_reported(cluster, database_url, site):
    torch = pytest.importorskip("torch")
    done = cluster.run(
        "deploy/submit", "jobs.reindex", "--collection", "gpu", "--path", str(site),
        "--base-url", "https://raydex.example/", "--gpus-per-embedder", "0.5", "--embedders", "2", "--json",
        DATABASE_URL=database_url,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    summary = summary_of(done.stdout)
    assert summary["chunks"]["embedded"] == 12
    reported = [warning for warning in summary["warnings"] if "torch sees no CUDA" in warning]
    assert bool(reported) == (not torch.cuda.is_available())
    assert resources_of_newest_actors(cluster) == [{"GPU": 0.5, "CPU": 0.25}] * 2


def resources_of_newest_actors(cluster: Cluster) -> list[dict[str, float]]:
    """What the embedding actors of the last job asked of Ray."""
    listed = cluster.run(str(RAY), "list", "actors", f"--address={cluster.address}", "--detail", "--format=json")
    actors = [actor for actor in json.loads(listed.stdout) if "EmbedTexts" in actor["class_name"]]
    newest = max(actor["job_id"] for actor in actors)
    return [actor["required_resources"] for actor in actors if actor["job_id"] == newest]
