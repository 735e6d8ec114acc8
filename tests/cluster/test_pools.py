"""Embedding extends to a node that joins a run, and a leaving node costs only its work in flight."""

import time
from collections.abc import Iterator

import pytest
from kit.counting_model import CountingModel, IndexRun, counted_pages
from kit.nodes import RayNodes, cluster
from kit.processes import eventually
from kit.reporting import leave_table

pytestmark = [pytest.mark.exhaustive, pytest.mark.timeout(600)]

PAGES = 2_500
SECONDS_PER_TEXT = 0.03


@pytest.fixture
def nodes(tmp_path) -> Iterator[RayNodes]:
    with cluster(tmp_path / "cluster", cpus=0) as nodes:
        yield nodes


def test_run_uses_a_joining_node_and_survives_its_death(nodes, tmp_path, server, request):
    first = nodes.add(cpus=2)
    with server.database() as database, CountingModel(SECONDS_PER_TEXT) as model:
        environment = nodes.environment(DATABASE_URL=database, OPENAI_BASE_URL=model.url)
        with IndexRun(counted_pages(tmp_path, PAGES), environment) as run:
            eventually(lambda: len(model.hashes()) >= PAGES // 10, "the run embeds", 120)
            second = nodes.add(cpus=2)
            took = eventually(lambda: bool(second.pids("EmbedTexts)")), "the new node embeds", 120)
            assert first.pids("EmbedTexts)")
            time.sleep(3)  # it has work in flight
            second.kill()
            summary = run.finish(240)
    again = len(model.requests) - len(set(model.hashes()))
    rows = [(f"{took:.1f} s", f"{again} of {PAGES}", f"{summary['seconds']['embed']:.0f} s")]
    leave_table(request.config, "a node joins and leaves", ("its first actor", "embedded twice", "embedding"), rows)
    assert summary["chunks"]["embedded"] == summary["chunks"]["total"] == PAGES
    assert again <= 2 * PAGES // 10  # an actor's work in flight: two blocks of 200 texts, which is a sixth here
