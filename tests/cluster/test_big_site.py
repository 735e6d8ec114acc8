"""A site of 100,000 small pages goes through with flat memory; several hosts are crawled on several nodes.

RAYDEX_TEST_PAGES sets another number of pages.
"""

import os
import subprocess
import sys
import time
from collections import defaultdict

import psycopg
import pytest
import yaml
from kit.counting_model import DIMENSION
from kit.databases import DatabaseServer
from kit.meter import Meter
from kit.node_kills import spelt
from kit.nodes import cluster
from kit.processes import postmaster
from kit.reindexing import html_page
from kit.reporting import leave_table
from kit.web import Answer, Site

pytestmark = [pytest.mark.exhaustive, pytest.mark.timeout(3600)]

PAGES, LINKS = int(os.environ.get("RAYDEX_TEST_PAGES", "100000")), 20
STORE_BYTES = 300_000_000


class Pages(dict):
    """The routes of a site of so many pages in a tree, written as they are asked for."""

    def __init__(self, count: int, seconds: float = 0.0) -> None:
        super().__init__({"/robots.txt": Answer("", 404)})
        self.count, self.seconds = count, seconds

    def get(self, path, default=None):
        name = path.removeprefix("/p-")
        if path != "/" and not (path.startswith("/p-") and name.isdigit() and int(name) < self.count):
            return super().get(path, default)
        time.sleep(self.seconds)
        number = 0 if path == "/" else int(name)
        below = range(number * LINKS + 1, min((number + 1) * LINKS + 1, self.count))
        subjects = spelt(number * 7919 % 1_000_003), spelt(number * 104_729 % 999_983)
        text = f"Subject {subjects[0]} is treated here, and so is {subjects[1]}."
        return html_page(f"Page {number}", {"usage": text}, links=tuple(f"/p-{each}" for each in below))


def write_collection(folder, *sites: Site) -> str:
    starts = [
        {"start_urls": [site.url + "/"], "allow_private": True, "sitemap": False, "max_pages": 10**6} for site in sites
    ]
    index = {"model": f"hash:{DIMENSION}", "dimension": DIMENSION}
    (folder / "docs.yaml").write_text(yaml.safe_dump({"name": "docs", "sites": starts, "index": index}))
    return str(folder / "docs.yaml")


def stored(database: str) -> int:
    with psycopg.connect(database) as connection:
        return connection.execute("select count(*) from page where body is not null").fetchone()[0]


def test_memory_stays_flat_on_a_site_of_many_pages(tmp_path, server: DatabaseServer, request: pytest.FixtureRequest):
    with (
        server.database() as database,
        Site(Pages(PAGES)) as site,
        cluster(tmp_path / "cluster", 2, flags=[f"--object-store-memory={STORE_BYTES}"]) as nodes,
        (tmp_path / "log").open("w+") as log,
    ):
        command = [sys.executable, "-m", "jobs.reindex", write_collection(tmp_path, site), "--parallel-workers", "0"]
        environment = nodes.environment(DATABASE_URL=database)
        curve = []
        with subprocess.Popen(command, env=environment, stdout=log, stderr=log, text=True) as run:
            roots = {"driver": run.pid, "Postgres": postmaster(server.home), "other Ray": nodes.head.process.pid}
            with Meter(roots, 5.0) as meter:
                while run.poll() is None:
                    time.sleep(5)
                    if meter.samples:
                        curve.append((stored(database), meter.samples[-1]))
        log.seek(0)
        assert run.returncode == 0, log.read()
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
        (tmp_path / "log").open("w+") as log,
    ):
        for _ in range(3):
            nodes.add(cpus=1)
        file = write_collection(tmp_path, first, second, third)
        command = [sys.executable, "-m", "jobs.reindex", file, "--parallel-workers", "0"]
        environment = nodes.environment(DATABASE_URL=database)
        with subprocess.Popen(command, env=environment, stdout=log, stderr=log, text=True) as run:
            most = 0
            while run.poll() is None:
                most = max(most, sum(bool(node.pids("crawling.spider")) for node in nodes.nodes))
                time.sleep(0.5)
        log.seek(0)
        assert run.returncode == 0, log.read()
        assert stored(database) == 1200
    assert most > 1
    leave_table(request.config, "three hosts", ("nodes that crawl",), [(str(most),)])
