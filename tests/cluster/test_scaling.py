"""A run on an autoscaling cluster starts with the existing nodes, scales up by its plan, and releases nodes."""

import time

import pytest
from kit.counting_model import CountingModel, IndexRun, counted_pages
from kit.processes import eventually
from kit.reporting import leave_table
from kit.scaling import scaling_cluster

pytestmark = [pytest.mark.exhaustive, pytest.mark.timeout(400)]

PAGES, SECONDS_PER_TEXT, MOST = 1_200, 0.05, 4


@pytest.mark.parametrize("head_cpus", [2, 0], ids=["a-busy-head", "no-node"])
def test_run_scales_up_with_waiting_texts_and_releases_its_nodes(head_cpus, tmp_path, server, request):
    file = counted_pages(tmp_path, PAGES)
    with (
        server.database() as database,
        CountingModel(SECONDS_PER_TEXT) as model,
        scaling_cluster(tmp_path / "cluster", 2, MOST, head_cpus=head_cpus) as nodes,
    ):

        def raylets() -> int:
            return len(nodes.head.pids("raylet/raylet"))

        environment = nodes.environment(DATABASE_URL=database, OPENAI_BASE_URL=model.url)
        began = time.monotonic()
        with IndexRun(file, environment) as run:
            eventually(lambda: bool(model.requests), "the first texts are embedded", 120)
            first = time.monotonic() - began
            eventually(lambda: len(nodes.head.pids("EmbedTexts)")) > 1, "actors on more nodes", 120)
            grown = time.monotonic() - began
            run.finish(240)
            took, most = time.monotonic() - began, raylets()
        released = eventually(lambda: raylets() == 1, "the nodes are released", 60)
    assert len(set(model.hashes())) == PAGES
    row = (f"{head_cpus}", f"{first:.0f} s", f"{grown:.0f} s", f"{took:.0f} s", str(most), f"{released:.0f} s")
    heads = ("CPUs of the head", "first text", "second actor", "run", "nodes at its end", "released after")
    leave_table(request.config, "a cluster that scales", heads, [row])
