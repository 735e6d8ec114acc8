"""Provides the scale benchmark's meters: seconds by name, server CPU, a publish's statements, disk and memory.

Each returns figures by name, in seconds or bytes.
"""

import os
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from pipelines.records import Index
from pipelines.store import Store

POLL_S = 0.02
Figures = dict[str, float]

# The beginnings of a publish's statements, and their step.
STATEMENTS = {
    "hnsw": ("using hnsw",),
    "copy_rows": ('insert into "chunk_',),
    "keys": ("alter table", "create index"),
}


class Stopwatch:
    """Sums the seconds of blocks by name."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        began = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] += time.perf_counter() - began

    def figures(self) -> Figures:
        return {f"{name}_s": seconds for name, seconds in self.seconds.items()}


@contextmanager
def cpu_counted(url: str, figures: Figures, name: str, own: bool = False) -> Iterator[None]:
    """Add the CPU seconds of the server's processes in the block to `figures`, and this process's too if `own`."""
    with psycopg.connect(url, autocommit=True) as connection:
        (backend,) = connection.execute("select pg_backend_pid()").fetchone() or (0,)
        server = int(_stat(backend)[1])
        before = _cpu_of(server), time.process_time()
        yield
        after = _cpu_of(server), time.process_time()
    figures[f"{name}_cpu_s"] = after[0] - before[0] + (after[1] - before[1] if own else 0.0)


def _cpu_of(server: int) -> float:
    """Return the CPU seconds of a server's children, both dead and alive."""
    children = Path(f"/proc/{server}/task/{server}/children").read_text().split()
    ticks = sum(map(int, _stat(server)[13:15])) + sum(sum(map(int, _stat(int(pid))[11:13])) for pid in children)
    return ticks / os.sysconf("SC_CLK_TCK")


def _stat(pid: int) -> list[str]:
    """Return a process's fields from its state on, as in proc(5), or none if it has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ["0"] * 40


@contextmanager
def statements_timed(url: str, figures: Figures) -> Iterator[None]:
    """Add the seconds of a publish's statements to `figures`, and the server's peak memory."""
    over, seen, held = threading.Event(), Counter[str](), [0.0]
    query = """select query from pg_stat_activity where datname = current_database() and state = 'active'
        and backend_type = 'client backend' and pid <> pg_backend_pid()"""

    def watch() -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            before = time.perf_counter()
            while not over.wait(POLL_S):
                rows, now = connection.execute(query).fetchall(), time.perf_counter()
                seen.update({step: now - before for (text,) in rows for step in [_step_of(text)] if step})
                if int(now) > int(before):
                    held.append(memory_of_server(connection))
                before = now

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    figures |= {f"publish_{step}_s": seconds for step, seconds in seen.items()}
    if max(held):
        figures["publish_peak_bytes"] = max(held)


def _step_of(text: str) -> str | None:
    return next((step for step, signs in STATEMENTS.items() if any(sign in text for sign in signs)), None)


def sizes(store: Store, index: Index) -> Figures:
    """Return the bytes of the chunk table (with TOAST), of its HNSW, of its other indexes, and of the pages."""
    query = """
        select pg_table_size(%(chunk)s) as table_bytes, pg_indexes_size(%(chunk)s) as all_indexes,
               pg_total_relation_size('page') as pages_bytes,
               (select sum(pg_relation_size(indexrelid))::bigint from pg_index join pg_class c on c.oid = indexrelid
                join pg_am a on a.oid = c.relam where indrelid = %(chunk)s::regclass and amname = 'hnsw') as hnsw
    """
    with psycopg.connect(store.url) as connection:
        row = connection.execute(query, {"chunk": f"chunk_{index.id}"}).fetchone()
    assert row is not None
    table, indexes, pages, hnsw = map(float, row)
    return {"table_bytes": table, "hnsw_bytes": hnsw, "keys_bytes": indexes - hnsw, "pages_bytes": pages}


def memory(store: Store) -> Figures:
    """Return the memory of this process and the server's processes in bytes, with shared pages divided (PSS)."""
    with psycopg.connect(store.url) as connection:
        return {"postgres_bytes": memory_of_server(connection), "python_bytes": float(_held(os.getpid()))}


def memory_of_server(connection: psycopg.Connection) -> float:
    """Return the memory of all processes of a local server in bytes."""
    rows = connection.execute("select pid from pg_stat_activity").fetchall()
    return float(sum(_held(pid) for (pid,) in rows))


def _held(pid: int) -> int:
    try:
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:  # it ended, or is on another machine
        return 0
    return next(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:")) * 1024
