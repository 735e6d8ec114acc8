"""`raydex drop` deletes a collection with everything in it and nothing else, and only on confirmation."""

import os
import pty
import subprocess
import sys
from collections import Counter
from pathlib import Path

import psycopg
import pytest
from kit.recorded import recorded
from kit.reindexing import Jobs
from kit.workshop import Workshop, small_site
from psycopg import sql

from pipelines.lexical import lexical_folder
from pipelines.store import NoLiveIndex, RunLock, Store, copy_name

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RAYDEX_HOME", str(tmp_path))


@pytest.fixture
def docs(store: Store) -> Workshop:
    """Create a collection with a copy, a question and feedback, and another collection."""
    Workshop(store, "other").reindex(small_site(1))
    workshop = Workshop(store, "docs")
    workshop.reindex(small_site(2))
    Workshop(store, copy_name("docs", "a" * 32), chunk_size=32).reindex(small_site(2))
    store.record_questions([recorded("named", "?", "docs"), recorded("unnamed", "?", index=workshop.live().id)])
    store.record_questions([recorded("another", "?", "other")])
    for question in ("named", "another"):
        store.record_feedback(question, 1)
    return workshop


def rows_of(url: str, name: str) -> dict[str, int]:
    """Return the row counts of a collection and its copies in every table with a column `collection`."""
    with psycopg.connect(url) as connection:
        tables = connection.execute(
            "select table_name from information_schema.columns where column_name = 'collection' "
            "and table_schema = 'public' union select 'collection'"
        ).fetchall()
        counts = Counter[str]()
        for (table,) in tables:
            column = "name" if table == "collection" else "collection"
            query = sql.SQL("select 1 from {} where {} = %s or starts_with({}, %s)")
            placed = query.format(*map(sql.Identifier, (table, column, column)))
            counts[table] = connection.execute(placed, [name, f"{name}@"]).rowcount
        return dict(+counts)


def chunk_tables(url: str) -> int:
    with psycopg.connect(url) as connection:
        return connection.execute("select 1 from pg_tables where tablename ~ '^chunk_[0-9]+$'").rowcount


def test_dropped_collection_leaves_only_its_questions(jobs, store, docs, tmp_path):
    folder = lexical_folder(tmp_path, jobs.url, docs.live().id)
    folder.mkdir(parents=True)
    other = rows_of(jobs.url, "other")
    assert chunk_tables(jobs.url) == 3
    store.set_default("docs")
    done = jobs.run("drop", "docs", "--yes")
    assert done.code == 0
    assert done.summary["deleted"].items() >= {"pages": 4, "indexes": 2, "runs": 2}.items()
    assert done.summary["kept"] == {"questions": 2, "feedback": 1, "evaluations": 0}
    assert done.summary["was_default"] is True
    assert rows_of(jobs.url, "docs") == {"question": 1}
    assert rows_of(jobs.url, "other") == other
    assert not folder.exists() and chunk_tables(jobs.url) == 1
    with pytest.raises(NoLiveIndex):
        store.live_index("docs")


def test_questions_are_dropped_too_on_request(jobs: Jobs, store: Store, docs: Workshop) -> None:
    assert jobs.run("drop", "docs", "--yes", "--with-questions").summary["deleted"]["questions"] == 2
    assert rows_of(jobs.url, "docs") == {}
    assert store.question("unnamed") is None and store.feedback("named") == []
    assert store.question("another") is not None and len(store.feedback("another")) == 1


def test_nothing_is_dropped_without_a_terminal_or_yes_flag(jobs: Jobs, docs: Workshop) -> None:
    done = jobs.run("drop", "docs")
    assert done.code == 2
    assert "`raydex drop docs --yes`" in done.messages
    assert docs.texts()


def test_collection_held_by_a_run_is_not_dropped(jobs: Jobs, store: Store, docs: Workshop) -> None:
    for name in ("docs", copy_name("docs", "a" * 32)):
        lock = RunLock(store, name)
        assert lock.try_acquire()
        assert jobs.run("drop", "docs", "--yes").code == 75
        lock.release()
    assert docs.texts()


def test_unknown_name_is_bad_input(jobs: Jobs, store: Store, docs: Workshop) -> None:
    done = jobs.run("drop", "dcos", "--yes")
    assert done.code == 2 and "there is no collection 'dcos'; there are: docs" in done.messages
    assert "dcos" not in [row["name"] for row in store.collections()]


@pytest.mark.parametrize(("reply", "dropped"), [("docs", True), ("y", True), ("no", False), ("", False)])
def test_person_is_shown_the_deletions_and_asked(jobs: Jobs, docs: Workshop, reply: str, dropped: bool) -> None:
    ours, theirs = pty.openpty()
    os.write(ours, f"{reply}\n".encode())
    done = subprocess.run([sys.executable, "-m", "jobs", "drop", "docs"], cwd=ROOT, stdin=theirs, text=True,
                          capture_output=True, env=os.environ, check=False)  # fmt: skip
    os.close(ours)
    os.close(theirs)
    assert "collection docs will be deleted: 4 pages, 2 indexes," in done.stderr
    assert "kept: 2 questions, 1 feedback, 0 evaluations" in done.stderr
    assert (done.returncode, rows_of(jobs.url, "docs") == {"question": 1}) == ((0, True) if dropped else (1, False))
