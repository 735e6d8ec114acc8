"""Ray starts on a machine where a node's agent takes longer than the 15 s of Ray's own time limit."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from kit.head_process import run_head
from kit.nodes import cluster
from kit.processes import eventually

pytestmark = [pytest.mark.exhaustive, pytest.mark.timeout(300)]

# Code that Python runs first: every agent of a node waits, as if it loaded that slowly.
SITECUSTOMIZE = """
import sys, time
if any(word.endswith(("dashboard/agent.py", "runtime_env/agent/main.py")) for word in sys.orig_argv):
    time.sleep(20)
"""
WORK = """
import ray
from pipelines.cluster import connect_ray
with connect_ray() as cluster:
    print("answer", ray.get(ray.remote(lambda: 6 * 7).remote()))
"""


@pytest.fixture
def slow(tmp_path: Path) -> dict[str, str]:
    """Return the variable that makes agents slow."""
    (tmp_path / "slow").mkdir()
    (tmp_path / "slow" / "sitecustomize.py").write_text(SITECUSTOMIZE)
    return {"PYTHONPATH": os.pathsep.join([str(tmp_path / "slow"), os.environ.get("PYTHONPATH", "")]).rstrip(":")}


def test_ray_on_this_machine_works_after_a_slow_start(slow):
    done = subprocess.run([sys.executable, "-c", WORK], env=os.environ | slow, capture_output=True, text=True,
                          check=False)  # fmt: skip
    assert "answer 42" in done.stdout, done.stderr


def test_head_shows_its_node_after_a_slow_start(slow, tmp_path):
    with run_head(["deploy/start-cluster"], tmp_path / "token", **slow) as head:
        as_owner = {"Authorization": f"Bearer {head.token}"}
        eventually(lambda: "ALIVE" in head.get("/nodes?view=summary", **as_owner).text, "the node is up", 120)


def test_node_joins_a_cluster_after_a_slow_start(slow, tmp_path):
    with cluster(tmp_path, **slow) as nodes:
        node = nodes.add(**slow)
        assert node.pids("raylet/raylet")
