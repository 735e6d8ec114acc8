"""Publishing with a real Postgres: visible states, rewritten rows, the right to publish, and undoing."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import psycopg
import pytest
from kit.processes import eventually
from kit.workshop import BASE, SMALL_BUILD, Site, Workshop, rows_of, search_index, small_site
from psycopg import sql
from psycopg.types.json import Jsonb

from pipelines.indexing import settings as settings_module
from pipelines.indexing.collection import INDEX, compose_collection
from pipelines.indexing.lock import hold_collection
from pipelines.indexing.publish import deletion_refusal, rollback
from pipelines.indexing.run import plan_reindex
from pipelines.records import Chunk, Hit, Index
from pipelines.store import (
    BuildResources,
    ChangesPruned,
    CollectionBusy,
    LostCollection,
    NoLiveIndex,
    NoSuchIndex,
    Publication,
    RunLock,
    Store,
    StoreUnavailable,
    VectorsMissing,
    build_index,
    promote_index,
)
from pipelines.store import indexes as searching_module
from pipelines.store import publish as publishing_module
from pipelines.store.chunks import chunk_table
from pipelines.store.database.connection import statement
from pipelines.store.indexes import IndexSnapshot


@pytest.fixture
def workshop(store: Store) -> Workshop:
    return Workshop(store)


def states(store: Store) -> list[str]:
    return [index["state"] for index in store.status("docs")["indexes"]]


def changed(site: Site, **pages) -> Site:
    return {**site, **pages}


def texts_of(site: Site) -> frozenset[str]:
    return frozenset(text for sections in site.values() if not isinstance(sections, str) for text in sections.values())


# ---------------------------------------------------------------------------------------------- written rows


def publish_p03(workshop: Workshop, change: Callable[[Chunk], Chunk]) -> tuple[Publication, int]:
    """Publish a page with changed chunks, and return the number of texts embedded with it."""
    with hold_collection(workshop.store, "docs") as lock:
        run = lock.begin("reindex", {})
        workshop.save(run, {"p03": {**small_site(8)["p03"], "new": f"In run {run}."}})  # so that it is read
        live, digest = workshop.live().id, workshop.rules.digest
        [entry] = workshop.store.pages_to_index("docs", run, live, digest, [f"{BASE}p03"])
        page = workshop.read(entry.page, entry.input_hash)
        chunks = [change(chunk) for chunk in page.chunks[:-1]]
        workshop.store.stage_pages(run, [replace(page, chunks=chunks)])
        mine = sorted(workshop.store.claim(run, {chunk.embed_hash: chunk.url for chunk in chunks}))
        workshop.store.stage_vectors(run, mine, np.ones((len(mine), 64), np.float32))
        return workshop.publish(lock, run), len(mine)


def test_changed_heading_is_reembedded_changed_link_is_not_and_ids_stay(workshop):
    workshop.reindex(small_site(8))
    ids, first = workshop.ids(), small_site(8)["p03"]["s0"]

    def moved(chunk: Chunk) -> Chunk:
        return replace(chunk, text=f"[{first}](https://moved.test/)") if chunk.text == first else chunk

    publication, embedded = publish_p03(workshop, moved)
    assert (publication.written, publication.deleted, embedded, workshop.ids()) == (1, 0, 0, ids)
    assert workshop.texts()["p03#s0"] == [f"[{first}](https://moved.test/)"]
    publication, embedded = publish_p03(
        workshop, lambda chunk: replace(chunk, headings=("Renamed",), embed_hash=f"renamed {chunk.id}")
    )
    assert (publication.written, publication.deleted, embedded, workshop.ids()) == (3, 0, 3, ids)
    hits = workshop.store.chunks_of_pages(workshop.live().id, [f"{BASE}p03"])
    assert [hit.headings for hit in hits] == [("Renamed",)] * 3


def test_text_is_embedded_once_across_pages_and_collections(store, workshop):
    site = {f"p{n}": {"s": "The same words on every page."} for n in range(10)}
    workshop.reindex(site)
    other = Workshop(store, "other")
    other.reindex(site)
    assert (workshop.embedded, other.embedded, len(workshop.ids())) == (1, 0, 10)
    assert other.texts() == workshop.texts()


def test_page_that_changes_twice_in_a_run_is_staged_in_its_last_state(store, workshop):
    lock = workshop.lock()
    run = workshop.prepare(lock, {"a": {"s": "First version."}, "b": {"s": "Stays."}})
    workshop.save(run, {"a": {"s": "Second version."}})
    workshop.stage(run)
    workshop.publish(lock, run)
    lock.release()
    assert workshop.texts() == {"a#s": ["Second version."], "b#s": ["Stays."]}


# ---------------------------------------------------------------------------------------------- vanished pages


def test_vanished_page_is_deleted_if_allowed_failed_page_stays(workshop):
    site = small_site()
    workshop.reindex(site)
    texts = workshop.texts()
    publication = workshop.reindex(changed(site, p01="gone"), delete=False)
    assert (publication.deleted, publication.changed, publication.revision) == (0, False, 1)
    assert workshop.texts() == texts
    publication = workshop.reindex(changed(site, p01="gone", p02="failed", p03="redirect", p04="skipped"))
    assert (publication.deleted, publication.pages_deleted) == (9, 3)
    left = {source.split("#")[0] for source in workshop.texts()}
    assert left == set(site) - {"p01", "p03", "p04"}
    workshop.reindex(site)
    assert workshop.texts() == texts


@pytest.mark.parametrize(
    ("deletable", "pages", "complete", "allowed"),
    [(0, 100, True, True), (20, 100, True, True), (21, 100, True, False), (1, 100, False, False), (0, 0, True, True)],
)
def test_deletion_requires_a_complete_run_and_a_small_share(deletable, pages, complete, allowed):
    refusal = deletion_refusal(deletable, pages, "" if complete else "error: x", 0.2)
    assert (refusal == "") is allowed


# ---------------------------------------------------------------------------------------------- visible states


def shrunk_and_grown(site: Site) -> Site:
    """Return the site with gone, changed and new pages."""
    new = {f"new{n}": {"s0": f"A new page number {n} says {n * 13}."} for n in range(3)}
    return {**site, "p01": "gone", "p02": {"s0": "Wholly other words.", "s9": "And a new section."}, **new}


class Readers:
    """Threads that query all the time. Each observation must be exactly one of the allowed states."""

    def __init__(self, store: Store, workshop: Workshop, *allowed: frozenset[str]) -> None:
        self.store, self.workshop, self.allowed = store, workshop, set(allowed)
        self.seen: set[frozenset[str]] = set()
        self.revisions: dict[tuple[int, int], set[frozenset[str]]] = {}
        self.polls, self.wrong = 0, []
        self.vector = workshop.embedder.embed_query("part of page")
        self._stop = threading.Event()

    def _poll(self, number: int) -> None:
        while not self._stop.is_set():
            try:
                self._check(*self._read(number))
            except NoSuchIndex:
                continue  # pruned between the two calls: the caller looks up the live index again
            except BaseException as error:
                self.wrong.append(repr(error))
                return

    def _read(self, number: int) -> tuple[int, int, list[str]]:
        index = self.store.live_index("docs")
        if number % 2:
            revision, hits = self.store.read_index(index, self._read_nearest)
            return index.id, revision, [hit.text for hit in hits]
        with self.store.scan_chunks(index.id) as (revision, hits):
            return index.id, revision, [hit.text for hit in hits]

    def _read_nearest(self, chunks: IndexSnapshot) -> tuple[int, list[Hit]]:
        """Return all chunks, each looked up after the search: a publish in between is invisible."""
        found = chunks.search([self.vector], [], 500)
        ids = [chunk.chunk_id for _, chunk in found.nearest[0]]
        hits = chunks.search([], ids, 500).by_id
        return found.revision, [hits[name] for name in ids]

    def _check(self, index: int, revision: int, texts: list[str]) -> None:
        state = frozenset(texts)
        self.polls += 1
        self.seen.add(state)
        self.revisions.setdefault((index, revision), set()).add(state)
        if len(texts) != len(state) or state not in self.allowed:
            self.wrong.append(f"index {index} revision {revision}: {len(texts)} hits, {len(state)} texts")

    @contextmanager
    def polling(self, threads: int = 3) -> Iterator["Readers"]:
        workers = [threading.Thread(target=self._poll, args=(n,)) for n in range(threads)]
        for worker in workers:
            worker.start()
        try:
            self.wait()
            yield self
            self.wait()
        finally:
            self._stop.set()
            for worker in workers:
                worker.join()

    def wait(self, polls: int = 6) -> None:
        """Wait for so many more polls that the states before and after are certainly seen."""
        target, deadline = self.polls + polls, time.monotonic() + 60
        while self.polls < target and not self.wrong and time.monotonic() < deadline:
            time.sleep(0.005)


def test_readers_see_only_the_old_or_new_state_in_every_kind_of_publish(store, workshop):
    site = small_site()
    after = shrunk_and_grown(site)
    rewritten = {path: {"s0": f"Rewritten page {path}."} for path in after if after[path] != "gone"}
    old, new, newest = texts_of(site), texts_of(after), texts_of(rewritten)
    workshop.reindex(site)
    with Readers(store, workshop, old, new, newest).polling() as readers:
        first = workshop.reindex(after)  # in place
        readers.wait()
        second = workshop.reindex(rewritten)  # most has changed: a new index is built
        readers.wait()
    assert (first.in_place, second.in_place) == (True, False)
    assert readers.seen == {old, new, newest}
    assert readers.wrong == []
    assert all(len(seen) == 1 for seen in readers.revisions.values())


def test_readers_see_whole_indexes_during_rebuilds_and_rollbacks(store, workshop):
    site = small_site()
    after = shrunk_and_grown(site)
    old, new = texts_of(site), texts_of(after)
    workshop.reindex(site)
    with Readers(store, workshop, old, new).polling() as readers:
        workshop.use("hash:64", chunk_size=200)
        candidate = workshop.reindex(after, publish=False)
        assert (candidate.published, candidate.changed) == (False, True)
        assert states(store) == ["live", "candidate"]
        readers.wait()
        assert readers.seen == {old}
        with hold_collection(store, "docs") as lock:
            assert promote_index(lock, lock.begin("publish", None), candidate.index) == 1
        assert states(store) == ["retired", "live"]
        readers.wait()
        with hold_collection(store, "docs") as lock:
            rollback(store, lock, lock.begin("rollback", None))
        readers.wait()
        with hold_collection(store, "docs"):
            assert store.prune("docs") == [candidate.index]
    assert readers.wrong == []
    assert readers.seen == {old, new}


def test_publish_that_dies_halfway_changes_nothing(store, workshop):
    """test_reads_during_publishes.py in tests/attacks covers reads during publishes of every kind."""
    site = small_site()
    after = shrunk_and_grown(site)
    workshop.reindex(site)
    rows = rows_of(store, workshop.live())
    lock = workshop.lock()
    run = workshop.prepare(lock, after)
    other = psycopg.connect(store.url, autocommit=True)
    with ThreadPoolExecutor(1) as threads, other, other.transaction():
        other.execute("lock table indexed_page in share mode")  # publishing waits here with its chunks written
        publishing = threads.submit(workshop.publish, lock, run)
        eventually(lambda: bool(blocked(store)), "the publish waits for the lock")
        assert frozenset(text for texts in workshop.texts().values() for text in texts) == texts_of(site)
        other.execute("select pg_terminate_backend(%s)", blocked(store))
        with pytest.raises(StoreUnavailable):
            publishing.result(60)
    assert rows_of(store, workshop.live()) == rows
    assert workshop.live().revision == 1
    lock.release()
    embedded = workshop.embedded
    workshop.reindex(after)
    assert workshop.embedded == embedded
    assert frozenset(text for texts in workshop.texts().values() for text in texts) == texts_of(after)


def blocked(store: Store) -> list[int]:
    """Return the pids of the sessions that wait for a lock."""
    query = "select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
    with psycopg.connect(store.url) as connection:
        return [pid for (pid,) in connection.execute(query)]


# ---------------------------------------------------------------------------------------------- settings, rollback


def roll_back(store: Store) -> tuple[Index, int, int]:
    with hold_collection(store, "docs") as lock:
        return rollback(store, lock, lock.begin("rollback", None))


def test_changed_settings_build_a_new_index_and_keep_the_old_for_rollback(store, workshop):
    site = small_site()
    with pytest.raises(NoLiveIndex, match=r"raydex index"):
        roll_back(store)
    workshop.reindex(site)
    with pytest.raises(NoSuchIndex, match="no retired index"):
        roll_back(store)
    old = workshop.live()
    workshop.use("hash:32")
    publication = workshop.reindex(site)
    assert (publication.published, publication.in_place, publication.changed) == (True, False, True)
    assert states(store) == ["retired", "live"]
    assert workshop.live().settings.dimension == 32
    left, index, revision = roll_back(store)
    assert (left.id, index, revision) == (publication.index, old.id, 2)
    assert states(store) == ["live", "retired"]
    workshop.use("hash:64")
    assert len(workshop.search("part", 100)) == 60
    assert roll_back(store)[1] == publication.index


def test_next_run_brings_a_rolled_back_index_up_to_date(store, workshop):
    site = small_site()
    workshop.reindex(site)
    rewritten = {path: {"s": f"Rewritten {path}."} for path in site}
    workshop.reindex(rewritten)
    assert states(store) == ["retired", "live"]
    roll_back(store)
    assert len(workshop.ids()) == 60
    embedded = workshop.embedded
    workshop.reindex(rewritten)
    assert workshop.embedded == embedded
    assert workshop.texts()["p00#s"] == ["Rewritten p00."]


def test_prune_frees_the_space_of_retired_indexes(store, workshop):
    for model in ("hash:8", "hash:16", "hash:32", "hash:64"):
        workshop.use(model)
        workshop.reindex(small_site(3))
    assert states(store) == ["retired"] * 3 + ["live"]
    with hold_collection(store, "docs"):
        assert len(store.prune("docs", keep=1)) == 2
        assert states(store) == ["retired", "live"]
        assert len(store.prune("docs")) == 1
        assert store.prune("docs") == []
    with psycopg.connect(store.url) as connection:
        tables = connection.execute("select relname from pg_class where relname ~ '^chunk_[0-9]+$'").fetchall()
    assert tables == [(f"chunk_{workshop.live().id}",)]
    assert len(workshop.search("part", 100)) == 9


@pytest.mark.parametrize("meanwhile", [False, True])
def test_querying_a_pruned_index_says_so_even_if_pruned_meanwhile(store, workshop, meanwhile):
    workshop.reindex(small_site(3))
    workshop.reindex(small_site(4))
    old = workshop.live()
    assert old.revision == 2
    if meanwhile:
        with psycopg.connect(store.url, autocommit=True) as connection:
            connection.execute(sql.SQL("drop table {}").format(chunk_table(old.id)))
    else:
        workshop.use("hash:32")
        workshop.reindex(small_site(3))
        store.prune("docs")
    vector = np.ones(64, np.float32)
    for ask in (
        lambda: search_index(store, old, [vector], ["x"], 5),
        lambda: store.changes_since(old.id, 1),
        lambda: store.scan_chunks(old.id).__enter__(),
    ):
        with pytest.raises(NoSuchIndex, match="pruned"):
            ask()


def test_page_that_takes_too_long_costs_only_itself(store, workshop):
    workshop.reindex(small_site(3))
    index = workshop.live()
    (hit,) = store.chunks_of_pages(index.id, [f"{BASE}p01"])[:1]

    def read(chunks: IndexSnapshot) -> dict[str, Hit]:
        chunks.search([], [], 5)
        with psycopg.connect(store.url) as other, pytest.raises(psycopg.errors.QueryCanceled):
            other.execute(sql.SQL("lock table {} in access exclusive mode").format(chunk_table(index.id)))
            chunks.page(hit.url)
        return chunks.search([], [hit.chunk_id], 5).by_id

    assert store.read_index(index, read, 0.2) == {hit.chunk_id: hit}


# ---------------------------------------------------------------------------------------------- candidates


def test_candidate_is_updated_in_place_and_never_more_than_one_exists(store, workshop):
    site = small_site()
    waiting = workshop.reindex(site, publish=False)  # a first index can wait too
    with pytest.raises(NoLiveIndex):
        workshop.live()
    published = workshop.reindex(site)
    assert (published.index, published.published, published.changed) == (waiting.index, True, False)
    assert states(store) == ["live"]
    workshop.use("hash:32")
    first = workshop.reindex(site, publish=False)
    second = workshop.reindex(shrunk_and_grown(site), publish=False)
    assert (second.index, second.in_place, second.published) == (first.index, True, False)
    workshop.use("hash:16")
    third = workshop.reindex(site, publish=False)
    assert third.index != first.index
    workshop.use("hash:16", chunk_size=128)
    fourth = workshop.reindex(site, publish=False)
    assert fourth.index != third.index
    assert workshop.embedded == 0  # vectors that a run relied on while embedding still exist when it publishes
    assert states(store) == ["live", "candidate"]


@pytest.mark.parametrize("model", [INDEX.model, f"int8:{INDEX.model}"])
def test_candidate_keeps_its_model_on_a_machine_with_another_default(store, model, tmp_path, monkeypatch):
    monkeypatch.setattr(settings_module, "multiplies_int8", lambda: not model.startswith("int8:"))
    monkeypatch.setattr(settings_module, "has_gpu", lambda: False)
    (tmp_path / "page.md").write_text("# A page")
    collection = compose_collection(path=str(tmp_path), base_url=BASE, name="docs")
    assert plan_reindex(store, collection)["settings"]["model"] != model
    with psycopg.connect(store.url) as connection:
        connection.execute("insert into collection (name) values ('docs')")
        insert = "insert into index (collection, fingerprint, settings, state) values ('docs', '', %s, 'candidate')"
        connection.execute(insert, [Jsonb({"model": model})])
    assert plan_reindex(store, collection)["settings"]["model"] == model


def test_vector_type_of_a_rebuild_counts_rows_carried_over(store, workshop, monkeypatch):
    monkeypatch.setattr(publishing_module, "LARGE_INDEX_CHUNKS", 40)  # so that a million rows are not needed
    site = small_site(20)
    workshop.reindex(site)
    assert workshop.live().settings.vector_type == "halfvec"
    publication = workshop.reindex(changed(site, p01={"s": "Other."}), publish=False)
    candidate = store.candidate_index("docs")
    assert candidate is not None and candidate.id == publication.index
    assert candidate.settings.vector_type == "halfvec"


def test_build_memory_fits_its_graph_within_the_limit_of_the_server(store, workshop, monkeypatch):
    workshop.reindex(small_site(3))
    table = sql.Identifier(f"chunk_{workshop.live().id}")

    def memory() -> int:
        with psycopg.connect(store.url, row_factory=psycopg.rows.dict_row) as connection:
            graph = connection.execute(statement("graph_size", chunk=table)).fetchone()
            return int(publishing_module._memory_of_build(**graph).removesuffix("kB"))

    least = publishing_module.BUILD_BYTES >> 10
    assert least < memory() < least + 100  # nine chunks of more than a kilobyte
    monkeypatch.setattr(publishing_module, "GRAPH_BYTES", 1 << 50)
    with psycopg.connect(store.url) as connection:
        allowed = connection.execute("select pg_size_bytes(current_setting('maintenance_work_mem'))").fetchone()
    assert allowed is not None
    assert memory() == allowed[0] >> 10  # set by the keeper for this machine, on the server's command line


def test_one_process_builds_the_graph_if_shared_memory_is_too_small(store, workshop, caplog):
    """A parallel build takes its memory from /dev/shm, which by default has 64 MB in a container."""
    workshop.reindex(small_site(3))
    index = workshop.live().id
    with psycopg.connect(store.url, row_factory=psycopg.rows.dict_row) as connection:
        if connection.execute("show dynamic_shared_memory_type").fetchone()["dynamic_shared_memory_type"] != "posix":
            pytest.skip("the server has no /dev/shm that could be too small")
        connection.execute("set min_parallel_table_scan_size = 0")
        copy = sql.SQL("create table copied (like {0}); insert into copied select * from {0}")
        connection.execute(copy.format(chunk_table(index)))
        publishing_module.index_chunks(connection, sql.Identifier("copied"), "vector", BuildResources("2000GB", 1))
        built = connection.execute("select indexdef from pg_indexes where tablename = 'copied'").fetchall()
    assert [row for row in built if "hnsw" in row["indexdef"]]
    assert "built by one process" in caplog.text


@pytest.mark.parametrize(("large", "ef_construction", "ef_search"), [(40, 64, "100"), (8, 128, "220")])
def test_large_graph_is_built_and_searched_with_longer_lists(
    store, workshop, monkeypatch, large, ef_construction, ef_search
):
    monkeypatch.setattr(publishing_module, "LARGE_GRAPH", large)
    monkeypatch.setattr(searching_module, "HUGE_GRAPH", large)
    workshop.reindex(small_site(3))
    index, options = workshop.live(), "select reloptions from pg_class where %s = any(reloptions)"

    def used(chunks: IndexSnapshot, k: int) -> str:
        chunks.search([workshop.embedder.embed_query("part 1")], [], k)
        return chunks.connection.execute("show hnsw.ef_search").fetchone()["hnsw.ef_search"]

    assert store.read_index(index, lambda chunks: used(chunks, 5)) == ef_search
    assert store.read_index(index, lambda chunks: used(chunks, 400)) == "400"
    with psycopg.connect(store.url) as connection:
        assert connection.execute(options, [f"ef_construction={ef_construction}"]).fetchone()


def test_only_a_candidate_or_retired_index_of_the_collection_is_promoted(store, workshop):
    workshop.reindex(small_site(3))
    other = Workshop(store, "other")
    other.reindex(small_site(3), publish=False)
    foreign = store.candidate_index("other")
    assert foreign is not None
    with hold_collection(store, "docs") as lock:
        run = lock.begin("publish", None)
        for index in (workshop.live().id, foreign.id, 10**6):
            with pytest.raises(NoSuchIndex, match=str(index)):
                promote_index(lock, run, index)


@pytest.mark.parametrize("name", ["delete_chunks", "forget_pages"])
def test_staged_rows_of_a_run_are_scanned_once(store, workshop, name):
    """They must not be scanned once per chunk, as Postgres would do if it expected only one staged row."""
    workshop.reindex(small_site(3))
    index = workshop.live().id
    values = {"run": 1, "index": index, "revision": 2}
    with psycopg.connect(store.url) as connection:
        connection.execute("create temp table replaced (url text)")
        explained = sql.SQL("explain ") + statement(name, chunk=chunk_table(index))
        plan = "\n".join(line for (line,) in connection.execute(explained, values))
    assert "hashed SubPlan" in plan, plan


def test_edited_chunk_counts_once_when_choosing_how_to_publish(store, workshop):
    site = small_site(3)
    workshop.reindex(site)
    lock = workshop.lock()
    run = workshop.prepare(lock, changed(site, p01={"s": "Other.", "t": "More."}, p02="gone"))
    assert len(site["p01"]) == 3
    assert store.staged_changes(run, workshop.live().id) == 3  # two added, three removed
    lock.release()


# ---------------------------------------------------------------------------------------------- changes


def test_replaying_changes_on_the_old_state_gives_the_new_state(store, workshop):
    site = small_site()
    workshop.reindex(site)
    with store.scan_chunks(workshop.live().id) as (revision, hits):
        replica = {hit.chunk_id: hit.text for hit in hits}
    workshop.reindex(shrunk_and_grown(site))
    workshop.reindex({**shrunk_and_grown(site), "new1": "gone", "p05": {"s": "Once more."}})
    newest, changes = store.changes_since(workshop.live().id, revision)
    assert newest == 3
    assert len({name for name, _ in changes}) == len(changes)
    for name, hit in changes:
        if hit is None:
            replica.pop(name, None)
        else:
            replica[name] = hit.text
    with store.scan_chunks(workshop.live().id) as (revision, hits):
        assert replica == {hit.chunk_id: hit.text for hit in hits}
        assert revision == 3


def test_changes_older_than_the_kept_ones_are_refused(store, workshop):
    workshop.reindex(small_site(3))
    with psycopg.connect(store.url, autocommit=True) as connection:
        connection.execute("update index set revision = 500")
    workshop.reindex(changed(small_site(3), p01={"s": "x"}))
    live = workshop.live().id
    newest, changes = store.changes_since(live, 500)
    assert (newest, len(changes)) == (501, 4)
    for revision in (0, 400, 502):
        with pytest.raises(ChangesPruned):
            store.changes_since(live, revision)


def test_publish_is_announced_but_an_unchanged_run_is_not(store, workshop):
    with psycopg.connect(store.url, autocommit=True) as listener:
        listener.execute("listen raydex")
        workshop.reindex(small_site(3))
        assert [note.payload for note in listener.notifies(timeout=60, stop_after=1)] == ["docs"]
        workshop.reindex(small_site(3))
        assert list(listener.notifies(timeout=0.3)) == []
        workshop.reindex(changed(small_site(3), p01={"s": "x"}))
        assert [note.payload for note in listener.notifies(timeout=60, stop_after=1)] == ["docs"]


# ---------------------------------------------------------------------------------------------- the right to publish


def test_second_run_of_a_collection_exits_and_names_the_first(store):
    with hold_collection(store, "docs") as lock:
        run = lock.begin("reindex", {})
        with pytest.raises(CollectionBusy, match=rf"run {run} \(reindex.*docs.*--wait"), hold_collection(store, "docs"):
            pass
        with hold_collection(store, "another"):
            pass
    for _ in range(20):  # it is free immediately
        with hold_collection(store, "docs"):
            pass


def end_session_of(lock: RunLock) -> None:
    """End the lock's session from outside, like an administrator or a broken network."""
    assert lock._connection is not None
    pid = lock._connection.info.backend_pid
    with psycopg.connect(lock.store.url, autocommit=True) as connection:
        assert connection.execute("select pg_terminate_backend(%s, 5000)", [pid]).fetchone() == (True,)


@pytest.mark.parametrize("other_is_done", [False, True])
def test_run_that_lost_its_lock_to_another_cannot_publish(store, workshop, other_is_done):
    workshop.reindex(small_site(5))
    lost = workshop.lock()
    run = workshop.prepare(lost, changed(small_site(5), p01={"s": "From the run that lost."}))
    end_session_of(lost)
    winner = workshop.lock()
    winner.begin("reindex", {})
    if other_is_done:
        winner.release()
    with pytest.raises(LostCollection, match=f"run {run}"):
        workshop.publish(lost, run)
    with pytest.raises(LostCollection):
        promote_index(lost, run, workshop.live().id)
    with pytest.raises(LostCollection):
        build_index(lost, run, workshop.settings, workshop.base(), True, SMALL_BUILD)
    assert workshop.live().revision == 1
    assert "From the run that lost." not in {text for texts in workshop.texts().values() for text in texts}
    winner.release()
    lost.release()


def test_run_whose_session_died_publishes_if_nobody_took_its_lock(store, workshop):
    workshop.reindex(small_site(5))
    lock = workshop.lock()
    run = workshop.prepare(lock, changed(small_site(5), p01={"s": "Late."}))
    end_session_of(lock)
    assert workshop.publish(lock, run).revision == 2
    busy = RunLock(store, "docs")
    assert not busy.try_acquire()
    lock.release()


def test_silently_dead_run_is_abandoned_by_the_next_with_its_staged_rows(store, workshop):
    lock = workshop.lock()
    workshop.prepare(lock, small_site(4))
    lock.release()
    workshop.reindex(small_site(3))
    assert [run["state"] for run in store.status("docs")["runs"]] == ["done", "abandoned"]
    with psycopg.connect(store.url) as connection:
        for table in ("staged_page", "staged_chunk", "staged_vector", "embedding_claim"):
            count = connection.execute(sql.SQL("select count(*) from {}").format(sql.Identifier(table))).fetchone()
            assert count == (0,), table


def test_nothing_is_published_while_a_vector_is_missing(store, workshop):
    workshop.reindex(small_site(5))
    lock = workshop.lock()
    run = lock.begin("reindex", {})
    workshop.save(run, changed(small_site(5), p01={"s": "Not embedded."}))
    base = workshop.base()
    [entry] = store.pages_to_index("docs", run, base.id, workshop.rules.digest, [BASE + "p01"])
    store.stage_pages(run, [workshop.read(entry.page, entry.input_hash)])
    with pytest.raises(VectorsMissing, match="1 staged chunk of"):
        workshop.publish(lock, run)
    with pytest.raises(VectorsMissing):
        build_index(lock, run, workshop.settings, base, True, SMALL_BUILD)
    assert workshop.live().revision == 1
    lock.release()
    assert workshop.reindex(changed(small_site(5), p01={"s": "Not embedded."})).revision == 2


def test_collections_reindexed_concurrently_do_not_disturb_each_other(store, database_url):
    """Each looks for vectors in the other's indexes, while the other drops some of its own."""

    def work(name: str) -> None:
        with Store(database_url, retry_s=10) as own:
            workshop = Workshop(own, name)
            for turn in range(8):
                workshop.use("hash:64", chunk_size=64 + 8 * turn)
                workshop.reindex(small_site(6), publish=turn % 2 == 0)
                with hold_collection(own, name):
                    own.prune(name)

    with ThreadPoolExecutor(3) as threads:
        list(threads.map(work, ("one", "two", "three")))
    assert len(Workshop(store, "one").search("part", 100)) == 18
