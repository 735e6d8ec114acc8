"""A service and jobs share a head of two CPUs, as docs/running.md and docs/serving.md start them."""

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from kit.databases import DatabaseServer
from kit.head_process import ROOT, HeadProcess, free_ports, run_head, summary_of
from kit.processes import eventually
from kit.reindexing import write_site
from kit.serving import OPEN
from kit.web import Site

pytestmark = [pytest.mark.exhaustive, pytest.mark.timeout(900)]

BIN = Path(sys.executable).parent
STEPS = ("Raydex", "Retriever")
INDEX = (str(BIN / "raydex"), "submit", "--environment", "none", "index", "--model", "hash:64")


class SmallCluster:
    """A head of two CPUs with a database, and the service of deploy/serve.yaml on its own port."""

    def __init__(self, head: HeadProcess, database: str, folder: Path) -> None:
        self.head, self.folder = head, folder
        (self.port,) = map(int, free_ports(1))
        self._variables = {"DATABASE_URL": database}

    def deploy(self, cpus: float | None = None, replicas: int | None = None) -> None:
        """Run `serve deploy` with other CPUs and replica counts, if given, and wait until all replicas run."""
        config = yaml.safe_load((ROOT / "deploy/serve.yaml").read_text())
        config["http_options"] = {"host": "127.0.0.1", "port": self.port}
        for deployment in config["applications"][0]["deployments"]:
            if cpus is not None:
                deployment["ray_actor_options"]["num_cpus"] = cpus
            if replicas:
                deployment["autoscaling_config"] |= {"min_replicas": replicas, "max_replicas": replicas}
        (file := self.folder / "serve.yaml").write_text(yaml.safe_dump(config))
        done = self.head.run(str(BIN / "serve"), "deploy", str(file), "--address", self.head.address)
        assert done.returncode == 0, done.stdout
        wanted = replicas or 2
        eventually(lambda: self.running() == {step: wanted for step in STEPS}, "all replicas run", 180)

    def running(self) -> dict[str, int]:
        """Return the number of running replicas per deployment."""
        try:
            told = self.head.get("/api/serve/applications/", Authorization=f"Bearer {self.head.token}").json()
        except httpx.TimeoutException:  # a busy machine: ask again
            return {}
        app = told["applications"].get("raydex", {})
        assert app.get("status") != "DEPLOY_FAILED", app.get("message")
        return {
            name: sum(replica["state"] == "RUNNING" for replica in one["replicas"])
            for name, one in app.get("deployments", {}).items()
        }

    def index(self, *flags: str) -> dict[str, Any]:
        """Run `raydex submit index`, and return its summary and output."""
        done = self.head.run(*INDEX, *flags, "--json", timeout=600, **self._variables)
        assert done.returncode == 0, done.stdout
        return summary_of(done.stdout) | {"said": done.stdout}

    def ask(self, question: str, collection: str) -> list[str]:
        """Return the texts that the service finds."""
        url = f"http://127.0.0.1:{self.port}/search"
        reply = httpx.post(url, json={"question": question, "collection": collection}, timeout=30)
        assert reply.status_code == 200, reply.text
        return [hit["text"] for hit in reply.json()["hits"]]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, server: DatabaseServer) -> Iterator[SmallCluster]:
    folder = tmp_path_factory.mktemp("small")
    home = {"HOME": str(folder), "RAYDEX_HOME": str(folder / "home")}
    with server.database() as database:
        command, token = ["deploy/start-cluster"], folder / "ray" / "token"
        with run_head(command, token, DATABASE_URL=database, **home, **OPEN) as head:
            yield SmallCluster(head, database, folder)


@contextlib.contextmanager
def written(folder: Path, pages: dict[str, str]) -> Iterator[tuple[str, ...]]:
    """Write a folder of pages, and yield the flags that index it."""
    write_site(folder, {page: {"about": text} for page, text in pages.items()})
    yield ("--path", str(folder), "--base-url", "https://docs.example.com/")


@pytest.mark.parametrize(("held", "hall"), [("as-in-the-file", 7), ("all", 17)])
def test_run_update_and_crawl_succeed_next_to_a_service(cluster, tmp_path, held, hall):
    """It works even if replicas hold both CPUs, as a user's own file may say.

    The runs share no text, because its vector would be reused.
    """
    cluster.deploy(*([0.5] if held == "all" else []))
    name = f"folder-{held}"
    with written(
        tmp_path, {"keys": f"The key hangs in hall {hall}.", "locks": f"Locks of hall {hall} are oiled."}
    ) as flags:
        first = cluster.index("--collection", name, *flags)
        assert (first["chunks"]["embedded"], first["published"]) == (2, True)
        assert cluster.ask("Where does the key hang?", name)[0].endswith(f"The key hangs in hall {hall}.")
    with written(tmp_path, {"keys": f"The key hangs in hall {hall + 1} now."}) as flags:
        again = cluster.index("--collection", name, *flags)
        assert (again["chunks"]["embedded"], again["published"]) == (1, True)
    eventually(
        lambda: f"hall {hall + 1} now." in cluster.ask("Where does the key hang?", name)[0], "the update is served", 60
    )
    with Site({"/": f"<h1>Doors</h1><p>Doors of hall {hall} open at nine.</p>"}) as site:
        crawled = cluster.index("--collection", f"site-{held}", "--start-url", f"{site.url}/", "--allow-private")
    assert crawled["chunks"]["embedded"] == 1
    for summary in (first, again, crawled):
        assert "no node has room" not in summary["said"]


def test_run_without_free_cpus_waits_names_the_holders_and_then_continues(cluster, tmp_path):
    cluster.deploy(cpus=0.5)
    with written(tmp_path, {"bells": "Bells ring at noon."}) as flags:
        command = [*INDEX, "--collection", "bells", *flags, "--embedders", "1"]
        log = tmp_path / "said.log"
        with log.open("w") as output, cluster.head.start(*command, output=output, **cluster._variables) as job:
            eventually(lambda: "no node has room" in log.read_text() or job.poll() is not None, "it waits", 180)
            eventually(lambda: "waiting for a node that has room" in log.read_text(), "its line says so", 60)
            cluster.deploy()
            assert job.wait(240) == 0, log.read_text()
    said = log.read_text()
    assert "The service raydex holds 2 CPUs (" in said
    assert "Raydex 2 × 0.5" in said and "Retriever 2 × 0.5" in said
    assert "lower `num_cpus` or the number of replicas under `deployments`" in said
    assert "0 of 1 page" not in said.partition("no node has room")[2].partition("waiting for a node")[0]


def test_questions_next_to_a_real_run_are_all_answered(cluster, capsys):
    """The waiting times are printed, not asserted. The run reads and embeds this repository's docs."""
    cluster.deploy()
    flags = ("--path", str(ROOT / "docs"), "--base-url", "https://docs.example.com/")
    submit = (str(BIN / "raydex"), "submit", "--environment", "none", "index", *flags, "--collection")
    done = cluster.head.run(*submit, "read", timeout=600, **cluster._variables)
    assert done.returncode == 0, done.stdout
    url = f"http://127.0.0.1:{cluster.port}"
    measure = (sys.executable, "-m", "benchmarks.beside_a_run", "--url", url, "--collection", "read", "--rounds", "2")
    done = cluster.head.run(*measure, "--", *submit, "night{round}", timeout=800, **cluster._variables)
    assert done.returncode == 0, done.stdout
    rows = [line for line in done.stdout.splitlines() if line.startswith("|")]
    with capsys.disabled():
        print("\n" + "\n".join(rows))
    assert [row.split("|")[-2].strip() for row in rows[2:]] == ["0", "0"]
