"""The store with a real Postgres: pages and their states, repeatable staging, and hostile text."""

import json
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from urllib.parse import urlsplit, urlunsplit

import numpy as np
import psycopg
import pytest
from kit.api import wait_for
from kit.databases import end_sessions
from kit.plain_fusion import fuse_plainly
from kit.workshop import BASE, Workshop, fetched, nearest_hits, search_index, small_site
from psycopg import sql
from psycopg.rows import tuple_row

from pipelines.answering.retrieval.ranking.fusion import Fusion, spread_pages
from pipelines.answering.retrieval.ranking.prior import no_prior
from pipelines.answering.retrieval.ranking.texts import FUSED
from pipelines.answering.retrieval.retriever import Retriever
from pipelines.answering.retrieval.search import RetrievalSettings, Search
from pipelines.fetched import FetchedPage
from pipelines.indexing.lock import hold_collection
from pipelines.lexical import LexicalIndex
from pipelines.records import Index, IndexSettings
from pipelines.store import (
    NoSuchIndex,
    RunLock,
    StagedPage,
    Store,
    StoreUnavailable,
    UnusableDatabase,
    choose_vector_type,
)
from pipelines.store.chunks import chunk_table
from pipelines.store.database.connection import autocommit
from serve.api.errors import failure_of


@pytest.fixture
def workshop(store: Store) -> Workshop:
    return Workshop(store)


def begin(store: Store, name: str = "docs") -> int:
    """Begin a run of a collection. Its lock is released immediately."""
    with hold_collection(store, name) as lock:
        return lock.begin("reindex", {})


def page_row(store: Store, path: str) -> dict:
    with psycopg.connect(store.url, row_factory=psycopg.rows.dict_row) as connection:
        row = connection.execute("select * from page where url = %s", [BASE + path]).fetchone()
    assert row is not None
    return row


# ---------------------------------------------------------------------------------------------- the database itself


def test_database_without_permission_for_pgvector_is_a_clear_error(empty_database_url):
    with psycopg.connect(empty_database_url, autocommit=True) as connection:
        connection.execute("create role without_rights login password 'x'")
        connection.execute("grant create on schema public to without_rights")
    parts = urlsplit(empty_database_url)
    url = urlunsplit(parts._replace(netloc=f"without_rights:x@{parts.hostname}:{parts.port}"))
    try:
        with pytest.raises(UnusableDatabase, match="no pgvector extension") as caught:
            Store(url).migrate()
        assert "create extension vector" in str(caught.value)
    finally:
        with psycopg.connect(empty_database_url, autocommit=True) as connection:
            connection.execute("drop owned by without_rights")
            connection.execute("drop role without_rights")


@pytest.mark.parametrize("version", ["0.8.1", "0.7.4", "0.8"])
def test_outdated_pgvector_is_a_clear_error(database_url, superuser_url, version):
    with psycopg.connect(superuser_url, autocommit=True) as connection:
        connection.execute("update pg_extension set extversion = %s where extname = 'vector'", [version])
    with pytest.raises(UnusableDatabase, match=rf"pgvector {version} is too old.*0\.8\.2"):
        Store(database_url).migrate()


def test_terminated_sessions_are_replaced_without_an_error(store, workshop):
    workshop.reindex(small_site(2))
    index = workshop.live()
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda _: store.collections(), range(8)))
    assert end_sessions(store.url) >= 1
    assert len(store.collections()) == 1
    search_index(store, index, [], ["x"], 5)
    assert end_sessions(store.url) >= 1
    assert search_index(store, index, [], ["x"], 5).revision == 1


def test_original_error_is_raised_when_its_connection_is_lost(store):
    connection = psycopg.connect(store.url)
    with pytest.raises(ZeroDivisionError), autocommit(connection):
        connection.close()
        raise ZeroDivisionError


def test_url_options_apply_to_every_session_along_with_ours(database_url):
    with Store(f"{database_url}?options=-c%20work_mem%3D5MB") as store:
        settings = "select current_setting('work_mem'), current_setting('jit')"
        row = store._do(lambda connection: connection.cursor(row_factory=tuple_row).execute(settings).fetchone())
    assert row == ("5MB", "off")


def test_cancelled_statement_is_not_retried_and_names_the_limit_to_raise(database_url):
    tried = []

    def broken_off(connection):
        tried.append(connection)
        raise psycopg.errors.QueryCanceled("canceling statement due to statement timeout")

    with Store(database_url, retry_s=60) as store, hold_collection(store, "docs") as lock:
        run = lock.begin("reindex", {})
        for attempt in (store._do, lambda work: lock.once(run, "build", work)):
            with pytest.raises(StoreUnavailable, match="raise `statement_timeout`"):
                attempt(broken_off)
    assert len(tried) == 2


def test_builds_have_no_statement_timeout(database_url):
    url = f"{database_url}?options=-c%20statement_timeout%3D1min"
    with Store(url) as store, hold_collection(store, "docs") as lock:
        run = lock.begin("reindex", {})
        assert lock.once(run, "build", lambda c: c.execute("show statement_timeout").fetchone()) == {
            "statement_timeout": "0"
        }


# ---------------------------------------------------------------------------------------------- pages


def test_failed_fetch_keeps_the_body_and_counts_its_attempts(store):
    first, second, third, fourth = (begin(store) for _ in range(4))
    store.save_pages("docs", first, [fetched("a", {"s": "one"}, links=("https://docs.test/b",))])
    body = page_row(store, "a")["body"]
    for run in (second, third):
        store.save_pages("docs", run, [fetched("a", "failed", http_status=500)])
    row = page_row(store, "a")
    assert (row["state"], row["attempts"], row["http_status"], row["body"]) == ("failed", 2, 500, body)
    assert row["links"] == ["https://docs.test/b"]
    assert store.failed_urls("docs") == [BASE + "a"]
    store.save_pages("docs", fourth, [FetchedPage(BASE + "a", "ok", 304)])
    row = page_row(store, "a")
    assert (row["state"], row["attempts"], row["error"], row["changed_run"]) == ("ok", 0, None, first)
    assert store.page_counts("docs", fourth)["unchanged"] == 1


def test_counts_describe_the_pages_of_a_run(store):
    first, second = begin(store), begin(store)
    store.save_pages("docs", first, [fetched(path, {"s": path}) for path in "abcde"])
    again = {"a": {"s": "a"}, "b": {"s": "other"}, "c": "gone", "d": "failed", "e": "skipped", "new": {"s": "new"}}
    for _ in range(2):  # a page that is saved twice in its run is still new
        store.save_pages("docs", second, [fetched(path, content) for path, content in again.items()])
    assert store.page_counts("docs", second) == {
        "seen": 4, "new": 1, "changed": 1, "unchanged": 1, "failed": 1, "duplicate": 0, "skipped": 1,
    }  # fmt: skip


def test_etag_is_sent_only_if_the_body_is_stored(store):
    run = begin(store)
    store.save_pages("docs", run, [fetched("a", {"s": "one"}, etag='"1"'), fetched("b", "failed", etag='"2"')])
    known = store.known_page("docs", BASE + "a")
    assert known is not None and known.etag == '"1"'
    unknown = store.known_page("docs", BASE + "b")
    assert unknown is not None and unknown.etag is None
    assert store.known_page("docs", BASE + "c") is None
    assert store.known_page("other", BASE + "a") is None


def test_all_known_urls_are_returned_at_any_count(store):
    run = begin(store)
    store.save_pages("docs", run, [fetched(f"{n:04}", {"s": str(n)}) for n in range(2_050)])
    urls = store.known_urls("docs")
    assert urls == sorted(urls)
    assert len(urls) == 2_050
    ranges = store.ranges_to_index("docs", run, None, "", 200)
    assert [row["pages"] for row in ranges] == [200] * 10 + [50]
    assert [url for row in ranges for url in store.urls_in_range("docs", row["first"], row["last"])] == urls


def test_page_with_lost_claimed_texts_is_still_pending(store, workshop):
    """This happens if a node dies with the pages that it read: the page is staged, and nobody embeds its texts."""

    def to_do() -> list[int]:
        return [row["pages"] for row in store.ranges_to_index("docs", run, None, "", 10)]

    run = begin(store)
    store.save_pages("docs", run, [fetched(name, {"s": f"Text of {name}."}) for name in ("a", "b")])
    assert to_do() == [2]
    pages = [BASE + "a", BASE + "b"]
    staged = [workshop.read(e.page, e.input_hash) for e in store.pages_to_index("docs", run, None, "", pages)]
    store.stage_pages(run, staged)
    wanted = {chunk.embed_hash: chunk.url for page in staged for chunk in page.chunks}
    mine = sorted(store.claim(run, wanted))
    assert to_do() == [2]
    vectors = np.zeros((len(mine), 64), np.float32)
    lost = [name for name in mine if wanted[name] == BASE + "b"]
    kept = [name for name in mine if name not in lost]
    store.stage_vectors(run, kept, vectors[: len(kept)])
    assert to_do() == [1]
    store.stage_vectors(run, lost, vectors[: len(lost)])
    assert to_do() == []


def test_pages_missed_by_a_complete_run_are_gone_only_below_its_prefix(store):
    first, second = begin(store), begin(store)
    store.save_pages("docs", first, [fetched(path, {"s": path}) for path in ("in/a", "in/b", "out/c")])
    store.save_pages("docs", second, [fetched("in/a", {"s": "in/a"})])
    assert store.mark_unseen("docs", second, BASE + "in/", "not seen") == 1
    assert [page_row(store, path)["state"] for path in ("in/a", "in/b", "out/c")] == ["ok", "gone", "ok"]


def test_unreadable_page_is_tried_three_times_and_again_when_it_changes(store, workshop):
    def to_do(run):
        return [entry.page.url for entry in store.pages_to_index("docs", run, None, "", [BASE + "a"])]

    for attempt in range(1, 4):
        run = begin(store)
        store.save_pages("docs", run, [fetched("a", {"s": "hostile"})])
        assert to_do(run) == [BASE + "a"]
        store.fail_pages("docs", [(BASE + "a", "took \0 too long")])
        row = page_row(store, "a")
        assert (row["state"], row["attempts"], row["error"]) == ("failed", attempt, "took  too long")
        assert store.page_counts("docs", run)["failed"] == 1
    run = begin(store)
    store.save_pages("docs", run, [fetched("a", {"s": "hostile"})])
    assert page_row(store, "a")["state"] == "failed"
    assert to_do(run) == []
    assert len(store.pages_to_index("docs", run, None, "", [BASE + "a"], attempts=10**6)) == 1
    store.save_pages("docs", run, [fetched("a", {"s": "mended"})])
    assert page_row(store, "a")["state"] == "ok"
    [entry] = store.pages_to_index("docs", run, None, "", [BASE + "a"])
    assert json.loads(entry.page.body) == {"s": "mended"}
    store.stage_pages(run, [workshop.read(entry.page, entry.input_hash)])
    row = page_row(store, "a")
    assert (row["state"], row["attempts"], row["unreadable"], row["error"]) == ("ok", 0, None, None)


def test_copies_are_skipped_until_they_differ(store):
    run = begin(store)
    store.save_pages("docs", run, [fetched("a", {"s": "same"}), fetched("b", {"s": "same"}), fetched("f", "failed")])
    store.mark_duplicates("docs", run, {BASE + "b": BASE + "a", BASE + "f": BASE + "a"})
    row = page_row(store, "b")
    assert (row["state"], row["error"]) == ("duplicate", f"same text as {BASE}a")
    assert (page_row(store, "a")["state"], page_row(store, "f")["state"]) == ("ok", "failed")
    store.mark_duplicates("docs", run, {})
    assert (page_row(store, "b")["state"], page_row(store, "b")["error"]) == ("ok", None)


def test_known_copy_is_not_reread_until_a_text_changes(store):
    def to_read(run: int) -> list[str]:
        return [entry.page.url for entry in store.pages_to_index("docs", run, None, "", [BASE + "a", BASE + "b"])]

    first, second, third = begin(store), begin(store), begin(store)
    both = [fetched("a", {"s": "x"}), fetched("b", {"s": "x"})]
    store.save_pages("docs", first, both)
    assert to_read(first) == [BASE + "a", BASE + "b"]
    store.mark_duplicates("docs", first, {BASE + "b": BASE + "a"})
    store.save_pages("docs", second, both)
    assert to_read(second) == [BASE + "a"]
    store.save_pages("docs", third, [fetched("a", {"s": "y"})])
    assert to_read(third) == [BASE + "a", BASE + "b"]


def test_sketch_is_valid_only_for_its_own_text(store):
    run = begin(store)
    store.save_pages("docs", run, [fetched("a", {"s": "x"}), fetched("b", {"s": "x"})])
    store.save_sketches("docs", {BASE + "a": "1234", BASE + "b": ""})
    assert store.page_sketches("docs", [BASE + "a", BASE + "b", BASE + "c"]) == {BASE + "a": "1234", BASE + "b": ""}
    store.save_pages("docs", run, [fetched("a", {"s": "y"}), FetchedPage(BASE + "b", "ok", 304)])
    assert store.page_sketches("docs", [BASE + "a", BASE + "b"]) == {BASE + "b": ""}


def test_skipped_pages_are_counted_by_reason(store):
    run = begin(store)
    pages = [fetched(path, {"s": path}) for path in ("a", "b", "c")]
    pages += [FetchedPage(BASE + "d", "skipped", error="robots.txt"), FetchedPage(BASE + "e", "redirect", 301)]
    store.save_pages("docs", run, pages)
    store.mark_duplicates("docs", run, {BASE + "b": BASE + "a", BASE + "c": BASE + "a"})
    assert store.left_out("docs", run) == [
        {"state": "duplicate", "pages": 2, "url": BASE + "b", "error": f"same text as {BASE}a"},
        {"state": "redirect", "pages": 1, "url": BASE + "e", "error": None},
        {"state": "skipped", "pages": 1, "url": BASE + "d", "error": "robots.txt"},
    ]
    assert store.left_out("docs", run + 1) == []


def test_unchanged_copies_are_not_rewritten(store):
    def written() -> list[tuple[str, ...]]:
        with psycopg.connect(store.url) as connection:
            return connection.execute(
                "select url, xmin::text from page where collection = 'docs' order by 1"
            ).fetchall()

    run = begin(store)
    store.save_pages("docs", run, [fetched(path, {"s": "x"}) for path in ("a", "b", "c")])
    store.mark_duplicates("docs", run, {BASE + "b": BASE + "a"})
    before = written()
    store.mark_duplicates("docs", run, {BASE + "b": BASE + "a"})
    assert written() == before
    store.mark_duplicates("docs", run, {BASE + "b": BASE + "c"})
    assert page_row(store, "b")["error"] == f"same text as {BASE}c"
    assert [one for one in written() if one in before] == [one for one in before if one[0] != BASE + "b"]


def test_staged_rows_of_a_duplicate_are_dropped(store, workshop):
    run = begin(store)
    store.save_pages("docs", run, [fetched("b", {"s": "x"}, canonical=BASE + "a")])
    workshop.stage(run)
    assert store.staged_counts(run)["chunks"] == 1
    store.save_pages("docs", run, [fetched("a", {"s": "x"})])
    store.mark_duplicates("docs", run, {BASE + "b": BASE + "a"})
    assert (store.staged_counts(run)["pages"], store.staged_counts(run)["chunks"]) == (0, 0)


# ---------------------------------------------------------------------------------------------- staging


def test_concurrent_tasks_that_stage_the_same_rows_store_them_once(store, workshop):
    run = begin(store)
    workshop.save(run, small_site(30))
    todo = store.pages_to_index("docs", run, None, "", store.known_urls("docs"))
    pages = [workshop.read(entry.page, entry.input_hash) for entry in todo]
    chunks = {chunk.embed_hash: chunk for page in pages for chunk in page.chunks}
    wanted = {name: chunk.url for name, chunk in chunks.items()}
    vectors = workshop.embedder.embed_chunks([chunk.embed_text for chunk in chunks.values()])
    order = list(range(len(chunks)))

    def task(number: int) -> None:
        mixed = sorted(order, key=lambda n: hash((n, number)))
        store.stage_pages(run, sorted(pages, key=lambda page: hash((page.url, number))))
        store.claim(run, {name: wanted[name] for name in sorted(wanted, key=lambda name: hash((name, number)))})
        store.stage_vectors(run, [list(chunks)[n] for n in mixed], vectors[mixed])

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(task, range(6)))
    assert store.staged_counts(run) == {"pages": 30, "sections": 90, "chunks": 90, "embedded": 90}


def test_sessions_writing_the_same_rows_in_any_order_never_deadlock(store, superuser_url):
    """Each statement takes its locks in key order, for rows in any order: 50 rounds of four concurrent sessions."""
    run = begin(store)
    pages = [f"{BASE}{number}" for number in range(40)]
    store.save_pages("docs", run, [fetched(url.removeprefix(BASE), {"s": url}) for url in pages])
    hashes = [f"hash {number}" for number in range(40)]
    vectors = np.ones((len(hashes), 4), np.float32)
    barrier = threading.Barrier(4)

    def session(number: int) -> None:
        mixed = random.Random(number)
        for turn in range(50):
            urls = mixed.sample(pages, len(pages))
            names = [f"{turn} {name}" for name in mixed.sample(hashes, len(hashes))]
            barrier.wait(60)
            store.stage_vectors(run, names, vectors)
            store.claim(run, dict.fromkeys(names, "page"))
            store.fail_pages("docs", [(url, "unreadable") for url in urls])
            store.stage_pages(run, [StagedPage(url, str(turn), "t", "en", (), None, 1, ()) for url in urls])
            store.save_pages("docs", run, [fetched(url.removeprefix(BASE), {"s": str(turn)}) for url in urls])

    before = deadlocks(superuser_url)
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(session, range(4)))
    assert deadlocks(superuser_url) == before
    assert store.staged_counts(run)["embedded"] == 50 * len(hashes)


def deadlocks(url: str) -> int:
    """Return the number of deadlocks that Postgres has resolved in this database."""
    with psycopg.connect(url) as connection:
        connection.execute("select pg_stat_force_next_flush(), pg_stat_clear_snapshot()")
        return connection.execute(
            "select deadlocks from pg_stat_database where datname = current_database()"
        ).fetchone()[0]


def test_deadlock_with_a_foreign_session_is_retried_immediately(store, superuser_url):
    """Sessions with another lock order cannot be excluded, and must not make the database count as unreachable."""
    run = begin(store)
    store.save_pages("docs", run, [fetched("a", {"s": "a"}), fetched("b", {"s": "b"})])
    lock = "select from page where url = %s for update"
    waiting = "select count(*) from pg_locks where not granted and transactionid = pg_current_xact_id()::xid"
    with psycopg.connect(superuser_url) as stranger, ThreadPoolExecutor(1) as threads:
        stranger.execute("set deadlock_timeout = '1min'")  # so that Postgres aborts the other one
        stranger.execute(lock, [f"{BASE}b"])
        failing = threads.submit(store.fail_pages, "docs", [(f"{BASE}a", "no"), (f"{BASE}b", "no")])
        wait_for(lambda: stranger.execute(waiting).fetchone() == (1,))
        with suppress(psycopg.errors.DeadlockDetected):
            stranger.execute(lock, [f"{BASE}a"])
        stranger.commit()
        failing.result(60)
    assert [page_row(store, path)["state"] for path in "ab"] == ["failed", "failed"]


def test_persistent_deadlock_is_reported(store):
    def broken_off(connection):
        raise psycopg.errors.DeadlockDetected("deadlock detected")

    with pytest.raises(StoreUnavailable, match="in each other's way: deadlock detected"):
        store._do(broken_off)


def test_text_is_claimed_by_one_page_and_can_be_reclaimed_only_by_it(store):
    run = begin(store)
    assert store.claim(run, {"h1": "page a", "h2": "page a"}) == {"h1", "h2"}
    assert store.claim(run, {"h1": "page b", "h3": "page b"}) == {"h3"}
    assert store.claim(run, {"h1": "page a", "h2": "page a"}) == {"h1", "h2"}
    store.stage_vectors(run, ["h1"], np.ones((1, 4), np.float32))
    assert store.claim(run, {"h1": "page a", "h2": "page a"}) == {"h2"}
    assert store.claim(run, {}) == set()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_non_finite_vector_is_refused_before_it_breaks_a_load(store, bad):
    run = begin(store)
    vectors = np.ones((3, 4), np.float32)
    vectors[1, 2] = bad
    with pytest.raises(ValueError, match="NaN or infinity"):
        store.stage_vectors(run, ["a", "b", "c"], vectors)
    assert store.staged_counts(run)["embedded"] == 0


def test_last_run_with_a_step_is_found_within_the_given_days(store, workshop):
    lock = workshop.lock()
    run = lock.begin("nightly", {})
    lock.once(run, "began", lambda _: {"mark": "m", "day": "monday"})
    lock.once(run, "train", lambda _: {"kept": False, "said": "worse"})
    asked = {"began": {"mark": "m"}, "train": {"kept": False}}
    lock.begin("nightly", {})
    lock.release()
    assert store.last_run_with("docs", asked, 1) == store.last_runs("docs", 2)[1]["started"]
    assert store.last_run_with("docs", asked | {"began": {"mark": "n"}}, 1) is None
    assert store.last_run_with("docs", {"train": {"kept": True}}, 1) is None
    assert store.last_run_with("others", asked, 1) is None
    with psycopg.connect(store.url) as connection:
        connection.execute("update run set started = started - interval '2 days'")
    assert store.last_run_with("docs", asked, 1) is None and store.last_run_with("docs", asked, 3)


def test_nul_and_lone_surrogates_never_reach_the_database(store, workshop):
    nasty = "be\0fore \ud800 and \udfff after 😀"
    lock = workshop.lock()
    run = lock.begin("reindex", {})
    url = BASE + "nasty"
    store.save_pages("docs", run, [FetchedPage(
        url, "ok", body=b"{}", links=(f"{BASE}{nasty}",), etag=nasty, charset=nasty, canonical=nasty, error=nasty,
    )])  # fmt: skip
    [chunk, *_] = workshop.chunks(url, {"s": "text"})
    chunk = replace(chunk, anchors=(nasty,), title=nasty, headings=(nasty,), text=nasty)
    [entry] = store.pages_to_index("docs", run, None, "", [url])
    page = replace(workshop.read(entry.page, entry.input_hash), title=nasty, language=nasty, chunks=[chunk])
    store.stage_pages(run, [page])
    store.stage_vectors(run, [chunk.embed_hash], np.ones((1, 64), np.float32))
    workshop.publish(lock, run)
    [hit] = workshop.search("text")
    cleaned = "before  and  after 😀"
    assert (hit.text, hit.title, hit.headings, hit.anchors) == (cleaned, cleaned, (cleaned,), (cleaned,))
    lock.release()


# ---------------------------------------------------------------------------------------------- vectors


@pytest.mark.parametrize(("dimension", "chunks", "asked", "chosen"), [
    (384, 1_000, "auto", "vector"), (2_000, 1_000, "auto", "vector"), (2_001, 1_000, "auto", "halfvec"),
    (384, 1_000_001, "auto", "halfvec"), (384, 10, "halfvec", "halfvec"), (384, 2_000_000, "vector", "vector")
])  # fmt: skip
def test_halfvec_is_chosen_for_wide_vectors_and_large_indexes(dimension, chunks, asked, chosen):
    assert choose_vector_type(IndexSettings(dimension=dimension, vector_type=asked), chunks) == chosen


@pytest.mark.parametrize(("dimension", "asked"), [(4_001, "auto"), (4_001, "halfvec"), (2_001, "vector")])
def test_more_dimensions_than_hnsw_allows_are_refused(dimension, asked):
    with pytest.raises(ValueError, match=f"{dimension:,} dimensions"):
        choose_vector_type(IndexSettings(dimension=dimension, vector_type=asked), 1)


def test_row_keeps_its_vector_and_its_text(store):
    words = random.Random(1).sample(range(10**9), 80)  # they don't compress well
    Workshop(store, model="hash:384").reindex({"p.html": {"s": " ".join(map(str, words))}})
    with psycopg.connect(store.url) as connection:
        (outside,) = connection.execute(
            "select pg_relation_size(reltoastrelid) from pg_class where oid = %s::regclass",
            [f"chunk_{store.live_index('docs').id}"],
        ).fetchone()
    assert outside == 0  # each text outside would cost a search in an index


@pytest.mark.parametrize(("model", "asked", "column"), [
    ("hash:64", "auto", "vector(64)"), ("hash:64", "halfvec", "halfvec(64)"), ("hash:2100", "auto", "halfvec(2100)"),
])  # fmt: skip
def test_column_has_the_chosen_type_and_gives_the_same_hits(store, model, asked, column):
    workshop = Workshop(store, model=model, vector_type=asked)
    workshop.reindex(small_site(10))
    with psycopg.connect(store.url) as connection:
        row = connection.execute(
            "select format_type(atttypid, atttypmod), attstorage from pg_attribute "
            "where attrelid = %s::regclass and attname = 'embedding'",
            [f"chunk_{workshop.live().id}"],
        ).fetchone()
        connection.execute("set enable_seqscan = off")
        plan = "".join(line for (line,) in connection.execute(
            psycopg.sql.SQL("explain select id from {} order by embedding <=> %s::{} limit 5").format(
                psycopg.sql.Identifier(f"chunk_{workshop.live().id}"), psycopg.sql.SQL(column.split("(")[0])
            ),
            [str([0.5] * workshop.settings.dimension)],
        ))  # fmt: skip
    assert row == (column, "m")  # in its row: an exact search in TOAST is slow
    assert "embedding_idx" in plan
    text = small_site(10)["p07"]["s1"]
    best = workshop.search(f"Title › s1 {text}", 3)[0]
    assert best.text == text
    assert workshop.reindex(small_site(10)).changed is False


def test_index_of_a_newer_version_is_refused_and_reported_to_clients(store, workshop):
    """A service that is still running after its database was upgraded cannot know how to search it."""
    workshop.reindex(small_site(2))
    store.in_transaction(lambda c: c.execute("update index set settings = settings || '{\"of_later\": 1}'"))
    with pytest.raises(UnusableDatabase, match=r"newer version .* 'docs' \(with of_later\): upgrade") as raised:
        store.live_index("docs")
    assert failure_of(raised.value).status == 503


def test_one_search_returns_neighbors_and_named_chunks_of_one_revision(store, workshop):
    workshop.reindex(small_site(6))
    some = sorted(workshop.ids())[:3]
    vector = workshop.embedder.embed_query("part 1 on page 3")
    found = search_index(store, workshop.live(), [vector, -vector], [*some, "no such id"], 200)
    nearest, opposite = found.nearest
    assert found.revision == 1
    assert len(nearest) == len(opposite) == 18 and nearest[0] != opposite[0]
    assert [score for score, _ in nearest] == sorted((score for score, _ in nearest), reverse=True)
    assert set(found.by_id) == set(some)
    assert search_index(store, workshop.live(), [], some, 5).nearest == []


def test_neighbors_come_from_the_section_and_its_subsections(store, workshop):
    workshop.reindex({"p": {"a": "One.", "a/b": "Two.", "c": "Three."}, "q": {"/d": "Four.", "/e": "Five."}})
    with store.scan_chunks(workshop.live().id) as (_, chunks):
        texts = {chunk.chunk_id: chunk.text for chunk in chunks}
    found = store.neighbours(workshop.live().id, list(texts), reach=1)
    words = {texts[of].split()[0]: [near.text.split()[0] for near in neighbours] for of, neighbours in found.items()}
    assert words == {"One.": ["One.", "Two."]} | {word: [word] for word in ("Two.", "Three.", "Four.", "Five.")}


def test_hits_and_scans_keep_the_first_state_read_despite_publishes(store, workshop):
    site = small_site(6)
    workshop.reindex(site)
    vector, index = workshop.embedder.embed_query("part 1 on page 3"), workshop.live()
    rewritten = {path: {"s0": f"Another text of {path}."} for path in site}

    def read(chunks):
        found = chunks.search([vector], [], 50)
        assert workshop.reindex(site | {"p00": {"s0": "Another text."}}).in_place
        assert not workshop.reindex(rewritten).in_place
        return found, chunks.search([], [chunk.chunk_id for _, chunk in found.nearest[0]], 5).by_id

    found, hits = store.read_index(index, read)
    assert len(hits) == len(found.nearest[0]) == 18 and found.revision == 1
    assert found.live[0]["index"] == index.id != workshop.live().id
    with store.scan_chunks(workshop.live().id) as (_, scanned):
        workshop.reindex(rewritten | {"p00": {"s0": "Once more."}})
        assert {hit.text for hit in scanned} == {f"Another text of {path}." for path in site}


def test_chunk_is_read_once_a_revision(store, workshop):
    workshop.reindex(small_site(3))
    vector, index = workshop.embedder.embed_query("part 1 on page 2"), workshop.live()
    before = nearest_hits(store, index, vector, 50)
    with psycopg.connect(store.url) as connection:
        connection.execute(sql.SQL("update {} set title = 'Renamed'").format(chunk_table(index.id)))
    assert nearest_hits(store, index, vector, 50) == before
    workshop.reindex(small_site(3) | {"p99": {"s0": "Another text."}})
    after = nearest_hits(store, workshop.live(), vector, 50)
    assert workshop.live().id == index.id and {hit.title for hit in after if hit in before} == set()
    assert "Renamed" in {hit.title for hit in after}


def test_chunk_of_an_earlier_revision_is_read_again(store, workshop):
    workshop.reindex(small_site(3))
    vector, before = workshop.embedder.embed_query("part 1 on page 2"), workshop.live()
    ids = [hit.chunk_id for hit in nearest_hits(store, before, vector, 50)]
    with psycopg.connect(store.url) as connection:
        connection.execute(sql.SQL("update {} set title = 'Renamed'").format(chunk_table(before.id)))
    workshop.reindex(small_site(3) | {"p99": {"s0": "Another text."}})
    found = store.read_index(before, lambda chunks: chunks.search([], ids, 5))
    assert found.revision == 2 and "Renamed" in {hit.title for hit in found.by_id.values()}


def test_server_searches_while_ids_are_found(store, workshop):
    workshop.reindex(small_site(3))
    vector = workshop.embedder.embed_query("part 1 on page 2")
    seen = (
        "select 1 from pg_stat_activity where datname = current_database() and query like %s and xact_start is not null"
    )
    asked = []

    def find_ids():
        deadline = time.monotonic() + 30
        with psycopg.connect(store.url, autocommit=True) as other:
            while not asked and time.monotonic() < deadline:
                asked.extend(other.execute(seen, [f"%{chunk_table(workshop.live().id).as_string()[1:-1]}%<=>%"]))
        return ()

    found = store.read_index(workshop.live(), lambda chunks: chunks.search_while(find_ids, [vector], 5))
    assert asked and len(found.nearest[0]) == 5


def test_hits_equal_those_of_the_plain_method(store, workshop, tmp_path):
    """Whole hits of each leg are fused in the textbook way: scores, order, ties and equal texts are the same."""
    site = {
        f"p{n:02}": {"same": "Apples are red.", f"s{n % 3}": f"Apples and part {n % 4} of pears."} for n in range(12)
    }
    workshop.reindex(site)
    index, lexical = workshop.live(), LexicalIndex(tmp_path / "words")
    fused = RetrievalSettings(ranking=FUSED)
    retriever = Retriever(
        store, lambda _: workshop.embedder, lambda _: lexical, collection=workshop.name, settings=fused
    )
    with store.scan_chunks(index.id) as (_, rows):
        chunks = {hit.chunk_id: hit for hit in rows}
    for question in ("red apples", "pears 3", "part 2 of apples", "nothing of that"):
        found = retriever.retrieve(Search((question,), k=50))
        vectors = nearest_hits(store, index, workshop.embedder.embed_query(question), 50)
        scores = lexical.search(question, 50).scores
        words = [replace(chunks[name], score=score, score_kind="bm25") for name, score in scores]
        plain = fuse_plainly([("vector", vectors, 1.0), ("bm25", words, 1.0)], Fusion().rrf_k, no_prior, no_prior)
        assert list(found.hits) == spread_pages(plain) and found.degraded == ()
    retriever.close()


# ---------------------------------------------------------------------------------------------- outages


def test_failing_reader_leaves_a_writable_session(database_url):
    with Store(database_url, pool_size=1) as store:
        workshop = Workshop(store, "docs")
        workshop.reindex(small_site(6))
        for error in (ValueError, NoSuchIndex):
            with pytest.raises(error):
                store.read_index(workshop.live(), lambda chunks, error=error: fail_after_a_look(chunks, error))
        workshop.reindex(small_site(7))
        assert workshop.live().revision == 2


def fail_after_a_look(chunks, error):
    chunks.search([], [], 5)
    raise error


def test_error_while_the_server_searches_leaves_a_writable_session(database_url):
    def fail():
        raise ValueError("no words")

    with Store(database_url, pool_size=1) as store:
        workshop = Workshop(store, "docs")
        workshop.reindex(small_site(6))
        vectors = [workshop.embedder.embed_query("part 1 on page 2")] * 2
        with pytest.raises(ValueError, match="no words"):
            store.read_index(workshop.live(), lambda chunks: chunks.search_while(fail, vectors, 5))
        workshop.reindex(small_site(7))
        assert len(nearest_hits(store, workshop.live(), vectors[0], 5)) == 5


def test_part_of_a_reading_that_fails_costs_only_itself(database_url):
    def read(chunks):
        found = chunks.search([], [], 5)
        with suppress(psycopg.errors.DivisionByZero):
            chunks.connection.execute("select 1 / 0").fetchall()
        return found

    with Store(database_url, pool_size=1) as store:
        workshop = Workshop(store, "docs")
        workshop.reindex(small_site(6))
        assert store.read_index(workshop.live(), read).revision == 1
        workshop.reindex(small_site(7))
        assert workshop.live().revision == 2


def test_call_is_retried_for_exactly_the_configured_time():
    port_is_closed = "postgresql://raydex@127.0.0.1:9/postgres"
    patient = Store(port_is_closed, retry_s=0.7, timeout_s=0.3)
    index = Index(1, "docs", IndexSettings(), "live", 1)
    begin = [patient.migrate, RunLock(patient, "docs").try_acquire]
    for call in (*begin, patient.collections, lambda: search_index(patient, index, [], [], 1)):
        began = time.monotonic()
        with pytest.raises(StoreUnavailable):
            call()
        assert time.monotonic() - began >= 0.7
    patient.close()


def test_threads_share_one_store(database_url):
    with Store(database_url, timeout_s=60) as store, ThreadPoolExecutor(12) as threads:
        workshop = Workshop(store, "docs")
        workshop.reindex(small_site(6))
        index = workshop.live()
        assert set(threads.map(lambda _: len(workshop.search("part", 5, index)), range(240))) == {5}
