"""kill -9 of a database's processes in the middle of a publish: the run publishes again by itself, once.

The database is the embedded one with its keeper. A lock on the next needed table holds a publish at a step, and there
its back end, the postmaster or the keeper is killed. The index must equal an undisturbed one.
"""

import contextlib
import itertools
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from kit.databases import new_database
from kit.processes import eventually, is_kept, keep_down, keeper, kill_9, postmaster
from kit.reporting import leave_table
from kit.workshop import Site, Workshop, small_site
from psycopg import sql

from pipelines import embedded
from pipelines.store import Publication, RunLock, Store

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

BEFORE = small_site(40)
CHANGED = BEFORE | {"p01": {"s0": "Rewritten."}, "p99": {"s0": "New."}}
REWRITTEN = {page: {name: f"{text} Once more." for name, text in parts.items()} for page, parts in BEFORE.items()}
_numbers = itertools.count(1)


@dataclass
class Bench:
    """State shared by all cases: the server's folder and the rows of the final table."""

    home: Path
    table: list[tuple[str, ...]] = field(default_factory=list)
    undisturbed: dict[str, tuple[dict[str, list[str]], set[str], Publication]] = field(default_factory=dict)

    @contextmanager
    def workshop(self) -> Iterator[Workshop]:
        """Return a workshop in its own database, with BEFORE published."""
        with Store(new_database(self.home, f"publish_{next(_numbers)}"), retry_s=60) as store:
            store.migrate()
            workshop = Workshop(store)
            workshop.reindex(BEFORE)
            yield workshop

    def expected(self, site: Site) -> tuple[dict[str, list[str]], set[str], Publication]:
        """Return texts and ids of an undisturbed index, and the result of its publish."""
        if str(site) not in self.undisturbed:
            with self.workshop() as workshop:
                publication = workshop.reindex(site)
                self.undisturbed[str(site)] = workshop.texts(), workshop.ids(), publication
        return self.undisturbed[str(site)]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Bench]:
    home = tmp_path_factory.mktemp("home")
    with embedded.run_postgres(home):
        bench = Bench(home)
        yield bench
    head = ("killed", "before it needs", "how it publishes", "done after", "index, compared with undisturbed")
    leave_table(request.config, "kill -9 during publish", head, bench.table)


# ------------------------------------------------------------------------------------------------ killing


def kill_back_end(bench: Bench, back_end: int) -> None:
    kill_9(back_end)  # Postgres ends every session and recovers


def kill_postmaster(bench: Bench, back_end: int) -> None:
    kill_9(postmaster(bench.home))


def kill_keeper(bench: Bench, back_end: int) -> None:
    kill_9(keeper(bench.home))


def take_away_for_5_s(bench: Bench, back_end: int) -> None:
    keep_down(bench.home, 5.0)


KILLS: list[Callable[[Bench, int], None]] = [kill_back_end, kill_postmaster, kill_keeper, take_away_for_5_s]


def waiting_for(connection: psycopg.Connection, table: str) -> list[int]:
    """Return the back ends that wait for the lock on `table`."""
    rows = connection.execute("select pid from pg_locks where not granted and relation = %s::regclass", [table])
    return [pid for (pid,) in rows]


@contextmanager
def held(workshop: Workshop) -> Iterator[RunLock]:
    lock = workshop.lock()
    try:
        yield lock
    finally:
        lock.release()


def survive(bench: Bench, kill: Callable[[Bench, int], None], step: str, site: Site) -> None:
    """Kill while the publish of `site` waits for the table `step`, and assert that it succeeds as if undisturbed."""
    texts, ids, expected = bench.expected(site)
    with (
        bench.workshop() as workshop,
        held(workshop) as lock,
        ThreadPoolExecutor(1) as threads,
        ExitStack() as blocking,
    ):
        run = workshop.prepare(lock, site)
        blocker = blocking.enter_context(closing(psycopg.connect(workshop.store.url)))
        watcher = blocking.enter_context(closing(psycopg.connect(workshop.store.url, autocommit=True)))
        blocker.execute(sql.SQL("lock table {} in share mode").format(sql.Identifier(step)))
        publishing = threads.submit(workshop.publish, lock, run)
        eventually(lambda: bool(waiting_for(watcher, step)), f"the publish waits for {step}")
        kill(bench, waiting_for(watcher, step)[0])
        blocking.close()
        took_s = eventually(publishing.done, "the run has published", 90)
        publication = publishing.result()
        assert publication == replace(expected, index=publication.index)
        assert workshop.texts() == texts and workshop.ids() == ids
        assert workshop.live().revision == expected.revision
    eventually(lambda: is_kept(bench.home), "the next case finds a server that nobody is about to stop")
    killed, way = kill.__name__.removeprefix("kill_").replace("_", " "), "in place" if expected.in_place else "anew"
    bench.table.append((killed, step, way, f"{took_s:.1f} s", f"{len(ids)} chunks equal"))


@pytest.mark.parametrize("kill", KILLS, ids=lambda kill: kill.__name__)
def test_publish_survives_a_kill_before_its_commit(bench, kill):
    survive(bench, kill, "run", CHANGED)


@pytest.mark.exhaustive
@pytest.mark.parametrize("site", [CHANGED, REWRITTEN], ids=["in place", "anew"])
@pytest.mark.parametrize("step", ["run", "index", "indexed_page", "staged_page"])
@pytest.mark.parametrize("kill", KILLS, ids=lambda kill: kill.__name__)
def test_publish_survives_a_kill_at_every_step(bench, kill, step, site):
    survive(bench, kill, step, site)


# ------------------------------------------------------------------------------------------------ after the commit


class DeafProxy:
    """Passes bytes between clients and Postgres, but withholds the reply to a publish's COMMIT and cuts it off."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._server = (parts.hostname, parts.port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        port = self._listener.getsockname()[1]
        self.url = urlunsplit(parts._replace(netloc=parts.netloc.replace(str(parts.port), str(port))))
        self.lost = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        committing, publishing = threading.Event(), False
        with contextlib.suppress(OSError), client, socket.create_connection(self._server) as server:
            threading.Thread(target=self._answer, args=(server, client, committing), daemon=True).start()
            while data := client.recv(65536):
                publishing = publishing or b"set steps = " in data
                if publishing and b"COMMIT" in data:
                    committing.set()
                server.sendall(data)
            server.shutdown(socket.SHUT_WR)

    def _answer(self, server: socket.socket, client: socket.socket, committing: threading.Event) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(65536):
                if committing.is_set():  # the server has replied: it has committed
                    self.lost += 1
                    client.shutdown(socket.SHUT_RDWR)
                    return
                client.sendall(data)


@pytest.mark.parametrize("site", [CHANGED, REWRITTEN], ids=["in place", "anew"])
def test_publish_with_a_lost_confirmation_happens_once(database_url, site):
    with Store(database_url) as direct:
        workshop = Workshop(direct)
        workshop.reindex(BEFORE)
        expected = Workshop(direct, "undisturbed")
        expected.reindex(BEFORE)
        publication = expected.reindex(site)
        proxy = DeafProxy(database_url)
        with Store(proxy.url, retry_s=20) as store, held(Workshop(store)) as lock:
            run = workshop.prepare(lock, site)
            result = Workshop(store).publish(lock, run)
        assert proxy.lost == (1 if publication.in_place else 3)  # build, drop older candidates, promote
        assert result == replace(publication, index=result.index)
        assert workshop.texts() == expected.texts() and workshop.live().revision == expected.live().revision
        assert len(direct.status("docs")["indexes"]) == len(direct.status("undisturbed")["indexes"])
