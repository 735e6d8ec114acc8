"""`raydex status` lists collections readably and shows one in detail: sources, settings, runs, failed pages."""

from pathlib import Path

import pytest
from kit.reindexing import Jobs
from kit.workshop import Workshop, small_site

from jobs import status
from pipelines.files.services import announce
from pipelines.indexing.collection import Collection, Site
from pipelines.store import RunLock, Store


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RAYDEX_HOME", str(tmp_path))


def test_several_collections_are_a_table_with_the_default_marked(jobs: Jobs, store: Store, tmp_path: Path) -> None:
    assert jobs.text("status") == "no collection yet: create one with `raydex index URL`\n"
    for name, pages in (("docs", 2), ("tune", 3)):
        Workshop(store, name).reindex(small_site(pages))
    store.set_default("tune")
    with announce(tmp_path, "http://127.0.0.1:8000"):
        head, docs, tune, _, hint, service = jobs.text("status").splitlines()
    assert head.split()[:3] == ["collection", "pages", "chunks"]
    assert docs.startswith("  docs") and docs.split()[1] == "2"
    assert tune.startswith("* tune") and tune.split()[2] == "3"
    assert "`raydex status NAME`" in hint and service.startswith("service http://127.0.0.1:8000 since ")
    summary = jobs.run("status").summary
    assert summary["default"] == "tune" and set(summary["collections"]) == {"docs", "tune"}


def test_single_collection_shows_its_sources_and_non_default_settings(jobs: Jobs, store: Store) -> None:
    Workshop(store, "docs").reindex(small_site(1))
    lock = RunLock(store, "docs")
    assert lock.try_acquire()
    site = Site(start_urls=["https://d.test/guide/"], max_pages=200, exclude=["/old/"])
    run = lock.begin("reindex", Collection(name="docs", sites=[site]).model_dump())
    text = jobs.text("status", "docs")
    assert "  source     https://d.test/guide/ (exclude: /old/, max_pages: 200)\n" in text
    assert "hash:64 (64 dimensions)" in text
    assert f"  run {run:<6} " in text and "reindex running, " in text
    lock.release()
    assert "reindex abandoned" in jobs.text("status", "docs")


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ({"night": {"verdict": "refused"}, "index": 3}, "nightly refused"),
        ({"night": {"verdict": "unchanged"}, "index": 3}, "nightly unchanged"),
        ({"index": None}, "nightly done, and indexed nothing"),
        ({}, "nightly done"),
    ],
)
def test_finished_run_shows_its_outcome(jobs: Jobs, store: Store, counts: dict, said: str) -> None:
    lock = RunLock(store, "docs")
    assert lock.try_acquire()
    lock.finish(lock.begin("nightly", {}), "done", counts, None)
    lock.release()
    assert f" {said}, " in jobs.text("status", "docs")


def test_every_failed_page_is_listed_on_request(jobs: Jobs, store: Store) -> None:
    workshop = Workshop(store, "docs")
    workshop.reindex(small_site(2) | {f"f{number:02}": "failed" for number in range(12)})
    assert "and 7 more: `raydex status docs --failed`" in jobs.text("status", "docs")
    listed = jobs.text("status", "docs", "--failed").splitlines()
    assert len(listed) == 13 and listed[0].startswith("https://docs.test/f00: ")
    assert "--retry-failed" in listed[-1]
    assert len(jobs.run("status", "docs", "--failed", "--most", 3).summary["collections"]["docs"]["failures"]) == 3
    refused = jobs.run("status", "--most", -1)
    assert refused.code == 2 and "--most is -1: it must be 1 or more" in refused.messages


def test_unknown_name_is_bad_input(jobs: Jobs) -> None:
    wrong = jobs.run("status", "dcos")
    assert wrong.code == 2 and "there is no collection 'dcos': `raydex index` makes the first one" in wrong.messages


def test_piped_watch_prints_each_state_and_step_once(store, capsys):
    lock = RunLock(store, "watched")
    assert lock.try_acquire()
    run = lock.begin("nightly", {})
    looks = iter(
        [
            lambda: None,
            lambda: lock.once(run, "index", lambda _: {"said": "2 pages seen", "number": 1}),
            lambda: lock.finish(run, "done", {}, None),
        ]
    )

    def pause(_seconds: float) -> None:
        if (look := next(looks, None)) is None:
            raise KeyboardInterrupt
        look()

    assert status.watch(store, "watched", pause) == 0
    lock.release()
    first, index, last = capsys.readouterr().out.splitlines()
    assert "nightly running" in first and index.strip() == "index: 2 pages seen" and "nightly done" in last
