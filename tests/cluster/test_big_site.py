"""A site of 100,000 small pages is indexed in constant memory, and several hosts are crawled on several nodes.

RAYDEX_TEST_PAGES sets another number of pages.
"""

import os
import time
from collections import defaultdict
from pathlib import Path

import psycopg
import pytest
import yaml
from kit.counting_model import DIMENSION, IndexRun
from kit.databases import DatabaseServer
from kit.meter import Meter
from kit.node_kills import SPIDER, Pages
from kit.nodes import cluster
from kit.processes import postmaster
from kit.reporting import leave_table
from kit.web import Site

pytestmark = [pytest.mark.exhaustive, pytest.mark.timeout(3600)]

PAGES = int(os.environ.get("RAYDEX_TEST_PAGES", "100000"))
STORE_BYTES = 300_000_000


def write_collection(folder: Path, *sites: Site) -> Path:
    starts = [
        {"start_urls": [site.url + "/"], "allow_private": True, "sitemap": False, "max_pages": 10**6} for site in sites
    ]
    index = {"model": f"hash:{DIMENSION}", "dimension": DIMENSION}
    (file := folder / "docs.yaml").write_text(yaml.safe_dump({"name": "docs", "sites": starts, "index": index}))
    return file


def stored(database: str) -> int:
    with psycopg.connect(database) as connection:
        return connection.execute("select count(*) from page where body is not null").fetchone()[0]


def test_memory_stays_flat_on_a_large_site(tmp_path, server: DatabaseServer, request: pytest.FixtureRequest):
    with (
        server.database() as database,
        Site(Pages(PAGES)) as site,
        cluster(tmp_path / "cluster", 2, flags=[f"--object-store-memory={STORE_BYTES}"]) as nodes,
    ):
        environment = nodes.environment(DATABASE_URL=database)
        curve = []
        with IndexRun(write_collection(tmp_path, site), environment) as run:
            driver = run.process.pid
            roots = {"driver": driver, "Postgres": postmaster(server.home), "other Ray": nodes.head.process.pid}
            with Meter(roots, 5.0) as meter:
                while run.process.poll() is None:
                    time.sleep(5)
                    if meter.samples:
                        curve.append((stored(database), meter.samples[-1]))
            run.finish()
        crawling_s = site.requests[-1].at - site.requests[0].at
        assert stored(database) == PAGES
    roles = sorted({role for _, sample in curve for role in sample.memory})
    rows = []
    for share in (0.1, 0.2, 0.4, 0.6, 0.8, 0.99):
        pages, sample = next(row for row in curve if row[0] >= share * PAGES)
        rows.append(
            [f"{pages:,}", f"{sample.at:.0f} s", *(f"{sample.memory.get(role, 0) / 1e6:.0f}" for role in roles)]
        )
    leave_table(
        request.config,
        f"memory by pages stored, MB (PSS); {PAGES / crawling_s:.0f} pages/s",
        ("pages", "at", *roles),
        rows,
    )
    cpu = [[role, f"{seconds:.0f}", f"{seconds / PAGES * 1000:.2f}"] for role, seconds in meter.cpu_s.most_common()]
    leave_table(request.config, "processor time", ("process", "s", "ms a page"), cpu)
    most = defaultdict(int)
    for pages, sample in curve:
        if pages < PAGES:
            most[pages >= 0.2 * PAGES] = max(most[pages >= 0.2 * PAGES], sum(sample.memory.values()))
    assert most[True] <= 1.3 * next(sum(s.memory.values()) for pages, s in curve if pages >= 0.2 * PAGES)


def test_several_hosts_are_crawled_on_several_nodes(tmp_path, server: DatabaseServer, request: pytest.FixtureRequest):
    with (
        server.database() as database,
        Site(Pages(400, 0.2)) as first,
        Site(Pages(400, 0.2)) as second,
        Site(Pages(400, 0.2)) as third,
        cluster(tmp_path / "cluster", 0) as nodes,
    ):
        for _ in range(3):
            nodes.add(cpus=1)
        environment = nodes.environment(DATABASE_URL=database)
        with IndexRun(write_collection(tmp_path, first, second, third), environment) as run:
            most = 0
            while run.process.poll() is None:
                most = max(most, sum(bool(node.pids(SPIDER)) for node in nodes.nodes))
                time.sleep(0.5)
            run.finish()
        assert stored(database) == 1200
    assert most > 1
    leave_table(request.config, "three hosts", ("nodes that crawl",), [(str(most),)])
