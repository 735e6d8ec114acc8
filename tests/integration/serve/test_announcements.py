"""Announced page changes: who may announce them, their processing, and that it happens once."""

import json
import threading
import time
from pathlib import Path
from typing import Any

import psycopg
import pytest
from kit.api import FakeEngine
from kit.guarded import SilentMetrics, bearer, client
from kit.reindexing import Jobs, site_sections, write_site
from kit.workshop import BASE
from starlette.testclient import TestClient

from pipelines.signing import sign
from pipelines.store import Store
from serve.changes.runner import ChangeRunner
from serve.guard.policy import Policy, protect
from serve.routes import create_app
from serve.settings import Settings

pytestmark = pytest.mark.slow
FLAGS = ("--no-ray", "--model", "hash:64", "--parallel-workers", 0, "--maintenance-work-mem", "64MB")
PAGES, EDITED = site_sections(12), {"usage": "Said again, in other words."}
PATH = "/v1/collections/docs/changes"
P03, P04 = f"{BASE}p03.html", f"{BASE}p04.html"
# The longest start of a child process on a machine with ten other jobs.
LONG_S = 300.0


@pytest.fixture
def folder(jobs: Jobs, tmp_path: Path) -> Path:
    """Index a folder of twelve pages."""
    write_site(tmp_path / "site", PAGES)
    jobs.run("reindex", "--collection", "docs", "--path", tmp_path / "site", "--base-url", BASE, *FLAGS)
    return tmp_path / "site"


@pytest.fixture
def asking(store: Store, folder: Path) -> TestClient:
    """Return a client of the service, on another machine, that sends JSON."""
    app = create_app(FakeEngine(store), store)  # type: ignore[arg-type]
    asking = client(protect(app, store, Policy(host="0.0.0.0"), SilentMetrics()))
    asking.headers["Content-Type"] = "application/json"
    return asking


@pytest.fixture
def key(store: Store) -> dict[str, str]:
    """Return the headers of a key for the collection."""
    return bearer(store.create_key("ci", ["changes"], collections=["docs"])[1])


def signed(secret: str, body: bytes, at: float | None = None) -> dict[str, str]:
    now = int(time.time() if at is None else at)
    return {"X-Raydex-Timestamp": str(now), "X-Raydex-Signature": sign(secret, now, body)}


def runs_of(url: str) -> list[Any]:
    with psycopg.connect(url) as connection:
        return connection.execute("select state from run where kind = 'changes' order by id").fetchall()


def test_announced_page_is_indexed_by_the_next_run(jobs, folder, asking, key):
    write_site(folder, {name: PAGES[name] | EDITED for name in ("p03", "p04")})
    accepted = asking.post(PATH, json={"changed": [P03]}, headers=key)
    assert accepted.status_code == 202
    waiting = accepted.json()
    assert (waiting["state"], waiting["changed"], waiting["deleted"], waiting["run"]) == ("waiting", 1, 0, None)
    assert jobs.run("reindex", "docs", "--announced").code == 0
    done = asking.get(f"{PATH}/{waiting['id']}", headers=key).json()
    assert (done["state"], done["attempts"], done["error"]) == ("done", 1, None)
    assert (jobs.texts()["p03.html#usage"], jobs.texts()["p04.html#usage"]) == (EDITED["usage"], PAGES["p04"]["usage"])
    assert jobs.run("reindex", "docs", "--announced").summary == {"collection": "docs"}
    assert len(runs_of(jobs.url)) == 1


def test_burst_is_one_run_and_the_last_announcement_of_a_page_wins(jobs, folder, asking, key):
    write_site(folder, {name: PAGES[name] | EDITED for name in ("p03", "p04")})
    (folder / "p00.html").unlink()
    p00 = f"{BASE}p00.html"
    bodies = ({"deleted": [P03]}, {"changed": [P03, P04]}, {"changed": [p00]}, {"deleted": [p00]})
    ids = [asking.post(PATH, json=body, headers=key).json()["id"] for body in bodies]
    assert len(set(ids)) == 4
    jobs.run("reindex", "docs", "--announced")
    assert {asking.get(f"{PATH}/{id}", headers=key).json()["state"] for id in ids} == {"done"}
    assert runs_of(jobs.url) == [("done",)]
    assert (jobs.texts()["p03.html#usage"], jobs.texts()["p04.html#usage"]) == (EDITED["usage"],) * 2
    assert not any(source.startswith("p00.html") for source in jobs.texts())


def test_repeated_delivery_does_nothing_twice(jobs, folder, asking, key):
    secret = jobs.run("keys", "secret", "docs").summary["secret"]
    body = json.dumps({"changed": [P03]}).encode()
    for headers in ({**key, "X-Raydex-Delivery": "7f3a"}, signed(secret, body)):
        first = asking.post(PATH, content=body, headers=headers).json()
        jobs.run("reindex", "docs", "--announced")
        again = asking.post(PATH, content=body, headers=headers)
        assert (again.status_code, again.json()["id"], again.json()["state"]) == (202, first["id"], "done")
    assert len(runs_of(jobs.url)) == 2


def test_announcing_requires_a_key_or_signature_of_the_collection(jobs, store, asking, key):
    body = json.dumps({"changed": [P03]}).encode()
    secret = jobs.run("keys", "secret", "docs").summary["secret"]
    others = bearer(store.create_key("other", ["changes"], collections=["blog"])[1])
    for headers, status in (
        ({}, 401),
        (bearer(store.create_key("asks")[1]), 403),
        (others, 404),
        (signed("rdw_wrong", body), 401),
        (signed(secret, body + b" "), 401),
        (signed(secret, body, at=time.time() - 3600), 401),
        (signed(secret, body, at=time.time() + 3600), 401),
        ({"X-Raydex-Signature": signed(secret, body)["X-Raydex-Signature"]}, 401),
        (signed(secret, body), 202),
        (key, 202),
        (bearer(store.create_key("boss", ["admin"])[1]), 202),
    ):
        reply = asking.post(PATH, content=body, headers=headers)
        assert reply.status_code == status, reply.text
    assert asking.get(f"{PATH}/1", headers=others).status_code == 404
    assert asking.get(f"{PATH}/1", headers=signed(secret, b"")).status_code == 200
    jobs.run("keys", "secret", "docs")
    assert asking.post(PATH, content=body, headers=signed(secret, body)).status_code == 401
    assert asking.post("/search", json={"question": "x"}, headers=key).status_code == 403


def test_invalid_announcement_is_an_error_and_unknown_collection_is_404(asking, key, store):
    for body, words in (
        ({"changed": ["https://elsewhere.example/a"]}, f"outside of collection 'docs', which has {BASE}"),
        ({"changed": [P03], "deleted": [f"{P03}#usage"]}, "named as changed and as deleted"),
        ({}, "no page is named"),
        ({"changed": [P03] * 1_001}, "at most 1,000"),
        ({"changes": [P03]}, "changes"),
    ):
        reply = asking.post(PATH, json=body, headers=key)
        assert (reply.status_code, words in reply.json()["error"]) == (422, True), reply.text
    admin = bearer(store.create_key("boss", ["admin"])[1])
    for name in ("none", "No Name"):
        assert asking.post(f"/v1/collections/{name}/changes", json={"changed": [P03]}, headers=admin).status_code == 404
        assert asking.get(f"/v1/collections/{name}/changes/1", headers=admin).status_code == 404


def test_unreadable_page_is_retried_then_given_up(jobs, asking, key, store):
    id = asking.post(PATH, json={"changed": [f"{BASE}not-built-yet.html"]}, headers=key).json()["id"]
    for attempt in range(1, 6):
        with psycopg.connect(jobs.url) as connection:
            connection.execute("update announcement set due = now()")
        assert [row["due"] for row in store.announced_collections()] == [True]
        jobs.run("reindex", "docs", "--announced")
        now = asking.get(f"{PATH}/{id}", headers=key).json()
        assert (now["state"], now["attempts"]) == ("waiting" if attempt < 5 else "failed", attempt)
        assert now["error"] == f"{BASE}not-built-yet.html: no file and no page is there"
        assert not any(row["due"] for row in store.announced_collections())


def test_too_many_deletions_are_refused_and_reported(jobs, asking, key):
    id = asking.post(PATH, json={"deleted": [f"{BASE}p{n:02}.html" for n in range(6)]}, headers=key).json()["id"]
    assert jobs.run("reindex", "docs", "--announced").code == 3
    refused = asking.get(f"{PATH}/{id}", headers=key).json()
    assert refused["state"] == "failed"
    assert "6 of 12 pages have vanished" in refused["error"]
    assert len(jobs.texts()) == 36


class Watched:
    """A store that signals when nothing is left to index."""

    def __init__(self, store: Store) -> None:
        self._store, self.idle = store, threading.Event()

    def announced_collections(self) -> list[Any]:
        rows = self._store.announced_collections()
        if not rows:
            self.idle.set()
        return rows


def test_service_indexes_changes_announced_before_it_started(jobs, store, folder, tmp_path):
    write_site(folder, {"p03": PAGES["p03"] | EDITED})
    id = store.announce("docs", [P03], [])
    watched = Watched(store)
    runner = ChangeRunner(watched, Settings(database_url=jobs.url, home=tmp_path / "home"))
    try:
        assert watched.idle.wait(LONG_S)
    finally:
        runner.close()
    assert store.announcement("docs", id)["state"] == "done"
    assert jobs.texts()["p03.html#usage"] == EDITED["usage"]
