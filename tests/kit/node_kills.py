"""Runs on clusters whose nodes are killed, counts fetches and embeddings, and compares with an undisturbed run.

The site's server and the model's endpoint count requests. Each case has its own cluster, database and model.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml
from kit.counting_model import DIMENSION, MODEL, CountingModel
from kit.databases import DatabaseServer
from kit.hosts import Network
from kit.nodes import Host, RayNode, RayNodes, cluster
from kit.processes import eventually
from kit.reindexing import html_page
from kit.reporting import leave_table
from kit.web import Answer, Route, Site
from psycopg import sql

from pipelines.store import Store

PAGES, LINKS = 2_000, 20
SECONDS_PER_TEXT, SECONDS_PER_PAGE = 0.012, 0.08
RUN_S = 700.0
SPIDER = "crawling.spider"
HEAD = ("what died", "pages stored, texts embedded by then", "finished by", "stored pages asked for again",
        "pages asked for twice in all", "texts twice", "seconds, lost of them", "what the run said")  # fmt: skip
# Ray gives a driver the head's raylet if it finds one among the machine's processes, as it does here. On a cluster of
# several machines, a driver gets its own node's raylet.
DRIVER = """
import os, runpy, sys, ray
ray.init(os.environ["RAY_ADDRESS"], _node_ip_address=sys.argv.pop(1), log_to_driver=False, logging_level="ERROR")
runpy.run_module("jobs.reindex", run_name="__main__")
"""


@dataclass
class Command:
    """A command in its own process. `log` has its output."""

    process: "subprocess.Popen[bytes]"
    log: Path

    def wait(self) -> int:
        return self.process.wait(RUN_S)

    def said(self) -> str:
        return self.log.read_text(errors="replace")


@dataclass
class NodeBench:
    """State shared by all cases: site, database server, the undisturbed index and duration, the final table."""

    folder: Path
    server: DatabaseServer
    site: Site
    quiet: set[tuple[str, ...]] = field(default_factory=set)
    quiet_s: float = 0.0
    table: list[tuple[str, ...]] = field(default_factory=list)

    @contextlib.contextmanager
    def case(self, name: str, net: Network | None = None, **variables: str) -> Iterator["Case"]:
        """Yield a cluster of a head without CPUs and two workers. `variables` are set on all its nodes."""
        folder = self.folder / name.replace(" ", "-")
        folder.mkdir()
        hosts = [net.host().host if net else None for _ in range(3)]
        with (
            self.server.database() as database,
            CountingModel(SECONDS_PER_TEXT) as model,
            cluster(folder, 0, hosts[0], **variables) as nodes,
        ):
            case = Case(self, name, folder, database, model, nodes, net, variables)
            case.add(2, 2, hosts=hosts[1:])
            try:
                yield case
            finally:
                for command in case.commands:
                    command.process.kill()
                    command.process.wait()


@dataclass
class Case:
    """One case: starts runs, kills nodes, and compares the result with the undisturbed run."""

    bench: NodeBench
    name: str
    folder: Path
    database: str
    model: CountingModel
    nodes: RayNodes
    net: Network | None
    variables: dict[str, str]
    commands: list[Command] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)
    stored: set[str] = field(default_factory=set)
    at_kill: str = ""
    requests: int = 0
    requests_before_kill: int = 0

    def __post_init__(self) -> None:
        self.requests = len(self.bench.site.requests)
        site = {"start_urls": [self.reached(self.bench.site.url) + "/"], "allow_private": True, "sitemap": False}
        collection = {"name": "docs", "sites": [site], "index": {"model": MODEL, "dimension": DIMENSION}}
        (self.folder / "docs.yaml").write_text(yaml.safe_dump(collection))
        self.url = self.reached(self.database)
        self.model_url = self.reached(self.model.url)

    def reached(self, url: str) -> str:
        """Return the URL at which nodes reach a server that this process runs at `url`."""
        return self.net.publish(url) if self.net else url

    def add(self, *cpus: float, hosts: Sequence[Host | None] = ()) -> None:
        for number, each in enumerate(cpus):
            self.nodes.add(each, 0, hosts[number] if hosts else None, **self.variables)

    # ------------------------------------------------------------------------------------------ runs

    def run(self, driver: RayNode | None = None) -> Command:
        """Start a run on the node `driver`, or next to the head without one."""
        words = ["-m", "jobs.reindex"] if driver is None else ["-c", DRIVER, driver.host.address]
        enter = (driver or self.nodes.head).host.enter
        mark = {} if driver is None else {"RAYDEX_TEST_NODE": driver.mark}
        command = [*enter, sys.executable, *words, str(self.folder / "docs.yaml"), "--parallel-workers", "0"]
        log = self.folder / f"run-{len(self.commands) + 1}.log"
        environment = self.nodes.environment(DATABASE_URL=self.url, OPENAI_BASE_URL=self.model_url, **mark)
        with log.open("wb") as output:
            process = subprocess.Popen(command, env=environment, stdout=output, stderr=output, start_new_session=True)
        self.commands.append(Command(process, log))
        if len(self.commands) == 1:
            self.began = time.monotonic()
        return self.commands[-1]

    def message(self) -> str:
        """Return the first run's last line, if it failed and was not killed with its node, and its exit code."""
        first = self.commands[0]
        code = first.process.returncode
        lines = [line.strip() for line in first.said().splitlines() if line.strip() and "(raylet)" not in line]
        return f"{lines[-1][:200]} ({code})" if code not in (0, -signal.SIGKILL) else ""

    # ------------------------------------------------------------------------------------------ moments and victims

    def until(self, pages: float, texts: float) -> None:
        """Wait until these shares of the pages are stored and of the texts embedded."""
        run = self.commands[-1]

        def there() -> bool:
            assert run.process.poll() is None, f"the run ended before the kill: {run.said()}"
            return len(self.pages()) >= pages * PAGES and len(set(self.model.hashes())) >= texts * PAGES

        eventually(there, f"{pages:.0%} are stored and {texts:.0%} embedded", RUN_S)

    def pages(self) -> set[str]:
        """Return the paths of pages with a stored body."""
        with psycopg.connect(self.database, autocommit=True) as connection:
            rows = connection.execute("select url from page where body is not null").fetchall()
        return {"/" + url.split("/", 3)[3] for (url,) in rows}

    def worker(self, command: str, *, crawls: bool | None = None) -> RayNode:
        """Wait for a node with `command` in a process's command line, and return it.

        `crawls` restricts the search to nodes that do, or do not, run a crawler.
        """

        def found() -> list[RayNode]:
            nodes = [node for node in self.nodes.nodes if node.pids(command)]
            return [node for node in nodes if crawls in (None, bool(node.pids(SPIDER)))]

        eventually(lambda: bool(found()), f"a node runs {command}", 60)
        return found()[0]

    def publishing(self) -> None:
        """Wait until the run builds its index."""
        with psycopg.connect(self.database, autocommit=True) as connection:
            query = "select exists (select from pg_tables where tablename ~ '^chunk_[0-9]+$')"
            eventually(lambda: connection.execute(query).fetchone() == (True,), "the run publishes", RUN_S)

    def restart_head(self) -> None:
        """Restart the head with the same address, ports and variables."""
        self.nodes.start_head(0, self.nodes.head.host, (), self.variables)

    def kill(self, kill: Callable[[], object]) -> None:
        """Record the numbers stored so far, and kill."""
        self.stored, self.requests_before_kill = self.pages(), len(self.bench.site.requests)
        self.at_kill = f"{len(self.stored)}, {len(set(self.model.hashes()))}"
        kill()

    # ------------------------------------------------------------------------------------------ the end

    def index(self) -> set[tuple[str, ...]]:
        """Return sections, texts and vectors of the live index, with URLs relative to the site."""
        with Store(self.database) as store:
            index = store.live_index("docs").id
        query = sql.SQL("select split_part(url, '/', 4), anchor, title, text, embed_hash, md5(embedding::text) from {}")
        pages = "select split_part(url, '/', 4), sections::text from indexed_page where index = %s"
        with psycopg.connect(self.database) as connection:
            chunks = connection.execute(query.format(sql.Identifier(f"chunk_{index}"))).fetchall()
            return {*map(tuple, chunks), *map(tuple, connection.execute(pages, [index]).fetchall())}

    def report(self, finished_by: str) -> None:
        """Assert that the index equals the undisturbed one and little work was repeated.

        No stored page may be refetched, and few texts embedded twice.
        """
        seconds = time.monotonic() - self.began
        asked = [r.path for r in self.bench.site.requests[self.requests :]]
        again = {r.path for r in self.bench.site.requests[self.requests_before_kill :]} & self.stored
        pages = Counter(path for path in asked if path in self.bench.site.routes)
        twice = len(self.model.requests) - len(set(self.model.hashes()))
        lost = f"{seconds:.0f}, {seconds - self.bench.quiet_s:+.0f}"
        self.bench.table.append((
            self.name, self.at_kill, finished_by, str(len(again)), str(sum(pages.values()) - len(pages)),
            f"{twice} ({twice / PAGES:.1%})", lost, self.message()))  # fmt: skip
        print(*self.bench.table[-1], sep=" | ", file=sys.stderr)
        assert self.index() == self.bench.quiet
        assert not again
        assert twice <= PAGES * 0.05


class Pages(dict[str, Route]):
    """The routes of a site with that many pages in a tree, generated on request. Each takes its time."""

    def __init__(self, count: int, seconds: float = 0.0) -> None:
        super().__init__({"/robots.txt": Answer("", 404)})
        self.count, self.seconds = count, seconds

    def __contains__(self, path: object) -> bool:
        return path == "/" or str(path).startswith("/p-")

    def get(self, path: str, default: Route | None = None) -> Any:
        name = path.removeprefix("/p-")
        if path != "/" and not (path.startswith("/p-") and name.isdigit() and int(name) < self.count):
            return super().get(path, default)
        time.sleep(self.seconds)
        number = 0 if path == "/" else int(name)
        below = range(number * LINKS + 1, min((number + 1) * LINKS + 1, self.count))
        subjects = spelt(number * 7919 % 1_000_003), spelt(number * 104_729 % 999_983)
        text = f"Subject {subjects[0]} is treated here, and so is {subjects[1]}."
        return html_page(f"Page {number}", {"usage": text}, links=tuple(f"/p-{each}" for each in below))


def spelt(number: int) -> str:
    """Write a number in letters: pages that differ only in digits would be taken for a trap."""
    return str(number).translate(str.maketrans("0123456789", "aeioubcdfg"))


@contextlib.contextmanager
def node_bench(
    tmp_path_factory: pytest.TempPathFactory, server: DatabaseServer, config: pytest.Config
) -> Iterator[NodeBench]:
    """Serve the site, index it undisturbed on a cluster, yield the bench, and print its table."""
    with Site(Pages(PAGES, SECONDS_PER_PAGE)) as site:  # the crawl continues while texts are embedded
        bench = NodeBench(tmp_path_factory.mktemp("node-kills"), server, site)
        with bench.case("nothing") as case:
            assert case.run().wait() == 0, case.commands[0].said()
            bench.quiet, bench.quiet_s = case.index(), time.monotonic() - case.began
            assert len(set(case.model.hashes())) == PAGES
            case.kill(lambda: None)
            case.report("the same run")
        yield bench
    leave_table(config, f"nodes killed ({PAGES} pages, {os.cpu_count()} CPUs)", HEAD, bench.table)
