"""Measures the speedup from more nodes when the embedder is the bottleneck, and the next bottleneck.

The embedder waits like a remote endpoint, so that one machine can supply the actors of eight nodes. RAYDEX_TEST_PAGES
sets another number of pages.
"""

import os
import time

import pytest
from kit.counting_model import CountingModel, IndexRun, counted_pages
from kit.databases import DatabaseServer
from kit.meter import Meter
from kit.nodes import cluster
from kit.processes import postmaster
from kit.reporting import leave_table

pytestmark = [pytest.mark.exhaustive, pytest.mark.timeout(2400)]

PAGES, SECONDS_PER_TEXT = int(os.environ.get("RAYDEX_TEST_PAGES", "20000")), 0.05
HEAD = ("nodes", "run", "speed-up over the embedder alone", "CPU seconds by process")


@pytest.mark.parametrize("count", [1, 2, 4, 8])
def test_more_nodes_finish_sooner(count, tmp_path, server: DatabaseServer, request: pytest.FixtureRequest):
    file = counted_pages(tmp_path, PAGES)
    with (
        server.database() as database,
        CountingModel(SECONDS_PER_TEXT) as model,
        cluster(tmp_path / "cluster", cpus=0) as nodes,
    ):
        for _ in range(count):
            nodes.add(cpus=2)
        environment = nodes.environment(DATABASE_URL=database, OPENAI_BASE_URL=model.url)
        began = time.monotonic()
        with IndexRun(file, environment) as run:
            raylets = {node.mark: node.process.pid for node in (nodes.head, *nodes.nodes)}
            with Meter({"driver": run.process.pid, "Postgres": postmaster(server.home), **raylets}, 1e9) as meter:
                run.finish()
        took = time.monotonic() - began
    assert len(set(model.hashes())) == PAGES
    for mark in raylets:
        meter.cpu_s.pop(mark, None)
    spent = ", ".join(f"{role} {seconds:.0f}" for role, seconds in meter.cpu_s.most_common(7))
    speedup = PAGES * SECONDS_PER_TEXT / took
    leave_table(request.config, f"{PAGES:,} texts of {SECONDS_PER_TEXT * 1000:g} ms each", HEAD,
                [(str(count), f"{took:.0f} s", f"{speedup:.2f}", spent)])  # fmt: skip
