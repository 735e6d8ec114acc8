"""Jobs submitted to a Ray cluster by a user, with a real head and token, started by deploy/start-cluster.

All tests share one cluster with its own ports, folder and token. The two GPUs that it declares do not exist. Only
processes started here are ended: `ray stop` would end every Ray on the machine.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from kit.databases import DatabaseServer
from kit.head_process import HeadProcess, run_head, summary_of
from kit.reindexing import write_site

from pipelines.store import Store

pytestmark = pytest.mark.exhaustive

RAY = Path(sys.executable).parent / "ray"
RAYDEX = str(RAY.with_name("raydex"))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, server: DatabaseServer) -> Iterator[HeadProcess]:
    folder = tmp_path_factory.mktemp("cluster")
    command, home = ["deploy/start-cluster", "--num-gpus=2"], str(folder / "home")
    with (
        server.database() as url,
        run_head(command, folder / "ray" / "token", DATABASE_URL=url, RAYDEX_HOME=home) as head,
    ):
        yield head


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Return a folder of twelve pages with one section each."""
    texts = {n: f"Nodes of kind {n} restart after {n} minutes." for n in range(12)}
    write_site(tmp_path, {f"page{n}": {f"part-{n}": text} for n, text in texts.items()})
    return tmp_path


def test_submitted_job_publishes_into_the_database_passed_to_it(cluster, database_url, site):
    """The collection file is found by its relative path in the uploaded folder, and no environment is built."""
    done = cluster.run(
        RAYDEX, "submit", "index", "collections/ray.yaml", "--model", "hash:64", "--path", str(site),
        "--base-url", "https://docs.ray.io/en/latest/", "--json", DATABASE_URL=database_url,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    summary = summary_of(done.stdout)
    assert summary["published"]
    assert summary["chunks"]["embedded"] == summary["chunks"]["total"] == 12
    with Store(database_url) as store:
        (live,) = store.status("ray")["indexes"]
    assert (live["state"], live["stats"]["chunks"], live["stats"]["pages"]) == ("live", 12, 12)
    assert "the nodes lack" not in done.stdout


def test_submitted_job_ends_with_its_own_exit_code(cluster, database_url):
    done = cluster.run(RAYDEX, "submit", "index", "--collection", "nowhere", DATABASE_URL=database_url)
    assert done.returncode == 2, done.stdout
    assert "there is no collection" in done.stdout


def test_submit_is_refused_without_the_token(cluster, tmp_path):
    assert cluster.get("/api/jobs/").status_code == httpx.codes.UNAUTHORIZED
    assert cluster.get("/api/jobs/", Authorization="Bearer " + "0" * 64).status_code != httpx.codes.OK
    assert cluster.get("/api/jobs/", Authorization=f"Bearer {cluster.token}").status_code == httpx.codes.OK
    empty = {"HOME": str(tmp_path), "RAY_AUTH_TOKEN_PATH": "", "RAY_AUTH_MODE": "disabled"}
    done = cluster.run(str(RAY), "job", "submit", "--", "true", **empty)
    assert done.returncode != 0
    assert "Missing authentication token" in done.stdout
    wrong = {"RAY_AUTH_TOKEN": "0" * 64, "DATABASE_URL": "postgresql://nowhere"}
    done = cluster.run(RAYDEX, "submit", "index", "--collection", "x", **wrong)
    assert done.returncode == 1
    assert f"raydex submit: the cluster at {cluster.address}: " in done.stdout
    assert "Traceback" not in done.stdout


def test_only_the_owner_can_read_the_token(cluster):
    path = Path(cluster.environment["RAY_AUTH_TOKEN_PATH"])
    assert len(cluster.token) == 64
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_plain_ray_job_refuses_a_relative_folder(cluster):
    """The working directory is a copy: its files may be old, and other nodes do not have them."""
    done = cluster.run(
        str(RAY), "job", "submit", "--working-dir", ".", "--",
        "python", "-m", "jobs.reindex", "--path", "docs", "--base-url", "https://raydex.example/", "--model", "hash:64",
    )  # fmt: skip
    assert done.returncode != 0
    assert "path 'docs' is relative" in done.stdout
    assert "Traceback" not in done.stdout.split("python -m jobs.reindex:")[1]


def test_declared_gpus_are_shared_by_fraction_and_missing_cuda_is_reported(cluster, database_url, site):
    torch = pytest.importorskip("torch")
    done = cluster.run(
        RAYDEX, "submit", "index", "--collection", "gpu", "--path", str(site),
        "--base-url", "https://raydex.example/", "--gpus-per-embedder", "0.5", "--embedders", "2", "--json",
        DATABASE_URL=database_url,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    summary = summary_of(done.stdout)
    assert summary["chunks"]["embedded"] == 12
    reported = [warning for warning in summary["warnings"] if "torch sees no CUDA" in warning]
    assert bool(reported) == (not torch.cuda.is_available())
    assert resources_of_newest_actors(cluster) == [{"GPU": 0.5, "CPU": 0.25}] * 2


def resources_of_newest_actors(cluster: HeadProcess) -> list[dict[str, float]]:
    """Return the resources that the last job's embedding actors requested."""
    listed = cluster.run(str(RAY), "list", "actors", f"--address={cluster.address}", "--detail", "--format=json")
    actors = [actor for actor in json.loads(listed.stdout) if "EmbedTexts" in actor["class_name"]]
    newest = max(actor["job_id"] for actor in actors)
    return [actor["required_resources"] for actor in actors if actor["job_id"] == newest]
