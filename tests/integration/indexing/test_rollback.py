"""An update in place is undone exactly: rows, ids, vectors, pages, statistics. Readers and BM25 follow."""

from pathlib import Path
from typing import Any

import psycopg
import pytest
from kit.reindexing import Jobs
from kit.workshop import Workshop, small_site
from psycopg import sql

from pipelines.indexing.lock import hold_collection
from pipelines.indexing.publish import KnownState, known_states, rollback
from pipelines.lexical import LexicalIndex
from pipelines.store import NoSuchRevision, Publication, Store, return_to_revision
from pipelines.store import publish as publishing
from pipelines.store.chunks import Column

SITE = small_site(40)
EDITED = SITE | {"p01": SITE["p01"] | {"s0": "Quite another text."}, "p02": "gone", "new": {"a": "A new page."}}
EDITED_AGAIN = EDITED | {"p01": {"s9": "Once more."}, "p02": SITE["p02"], "p03": {**SITE["p03"], "s7": "Longer."}}


@pytest.fixture
def workshop(store: Store) -> Workshop:
    return Workshop(store)


def everything(store: Store, name: str = "docs") -> dict[str, Any]:
    """Return all complete rows of the live index, and its statistics."""
    live = store.live_index(name)
    with psycopg.connect(store.url) as connection:
        table = sql.Identifier(f"chunk_{live.id}")
        chunks = connection.execute(sql.SQL("select to_jsonb(c), c.embedding::text from {} c").format(table)).fetchall()
        pages = connection.execute(
            "select i.url, i.input_hash, i.sections, p.title, p.language, p.tags, p.version from indexed_page i "
            "join page p on p.url = i.url and p.collection = %s where i.index = %s order by 1", [name, live.id]
        ).fetchall()  # fmt: skip
    stats = next(index["stats"] for index in store.status(name)["indexes"] if index["id"] == live.id)
    return {"chunks": {row["id"]: (row, vector) for row, vector in chunks}, "pages": pages, "stats": stats}


def undo(store: Store, revision: int) -> Publication:
    with hold_collection(store, "docs") as lock:
        return return_to_revision(lock, lock.begin("rollback", None), store.live_index("docs"), revision)


@pytest.mark.parametrize("vector_type", ["vector", "halfvec"])
def test_update_is_undone_exactly_and_the_undo_can_be_undone(store: Store, vector_type: str) -> None:
    workshop, states, searched = Workshop(store, vector_type=vector_type), {}, {}
    for revision, site in enumerate((SITE, EDITED, EDITED_AGAIN), 1):
        publication = workshop.reindex(site)
        assert (publication.revision, publication.in_place) == (revision, revision > 1)
        states[revision] = everything(store)
        searched[revision] = [(hit.chunk_id, hit.score) for hit in workshop.search("another text", 5)]
    for returned, to in ((4, 1), (5, 3), (6, 2)):
        assert undo(store, to).revision == returned
        assert everything(store) == states[to]
        assert [(hit.chunk_id, hit.score) for hit in workshop.search("another text", 5)] == searched[to]
    counted = store.publications(workshop.live().id)
    assert [row["revision"] for row in counted] == [6, 5, 4, 3, 2, 1]
    assert [row["returned_to"] for row in counted] == [2, 3, 1, None, None, None]
    (second,) = [row for row in counted if row["revision"] == 2]
    assert {name: second[name] for name in second if name.startswith("pages_")} == {
        "pages_added": 1, "pages_changed": 1, "pages_removed": 1}  # fmt: skip
    assert {name: second[name] for name in second if name.startswith("chunks_")} == {
        "chunks_added": 2, "chunks_changed": 0, "chunks_removed": 4}  # fmt: skip


def test_next_run_brings_a_rolled_back_index_up_to_date(store: Store, workshop: Workshop) -> None:
    workshop.reindex(SITE)
    workshop.reindex(EDITED)
    edited, embedded = everything(store), workshop.embedded
    undo(store, 1)
    assert workshop.reindex(EDITED).revision == 4
    assert everything(store) == edited
    assert workshop.embedded == embedded + 2


def test_bm25_follows_a_rollback(store: Store, workshop: Workshop, tmp_path: Path) -> None:
    workshop.reindex(SITE)
    lexical = LexicalIndex(tmp_path / "bm25", heap=15_000_000)
    lexical.sync(store, workshop.live())
    before = [name for name, _ in lexical.search("part page another text once more", 200).scores]
    workshop.reindex(EDITED_AGAIN)
    lexical.sync(store, workshop.live())
    undo(store, 1)
    assert lexical.sync(store, workshop.live()) == 3
    after = [name for name, _ in lexical.search("part page another text once more", 200).scores]
    assert set(after) == set(before) and lexical.search("once", 5).scores == ()


def test_replaced_rows_are_kept_for_the_last_publishes_and_some_time(store, workshop, monkeypatch):
    monkeypatch.setattr(publishing, "PUBLICATIONS_KEPT", 3)
    for word in ("one", "two", "three", "four", "five"):
        workshop.reindex(SITE | {"p01": {"s": f"The text is {word}."}})
    assert [one.revision for one in known_states(store, "docs")] == [5, 4, 3, 2]
    with pytest.raises(NoSuchRevision, match="--list"):
        undo(store, 1)
    undo(store, 2)
    assert workshop.texts()["p01#s"] == ["The text is two."]
    with psycopg.connect(store.url) as connection:
        connection.execute("update publication set published_at = now() - interval '31 days' where revision < 6")
        connection.commit()
        workshop.reindex(SITE | {"p01": {"s": "The text is new."}})
        assert [one.revision for one in known_states(store, "docs")] == [7, 6, 5]
        left = connection.execute("select distinct revision from replaced_chunk order by 1").fetchall()
        assert left == [(6,), (7,)]
    assert store.prune("docs", keep=1) == []
    assert len(known_states(store, "docs")) == 3
    store.prune("docs")
    assert len(known_states(store, "docs")) == 1


def test_row_older_than_a_column_gets_its_default(store, workshop, monkeypatch):
    workshop.reindex(SITE)
    workshop.reindex(EDITED)
    columns = Store.columns.extended(
        Column("mark", "text", default="'old'"), Column("note", "text", nullable=True, default="null")
    )
    monkeypatch.setattr(Store, "columns", columns)
    store.migrate()
    undo(store, 1)
    marks = {row["mark"] for row, _ in everything(store)["chunks"].values()}
    assert marks == {"old"} and len(everything(store)["chunks"]) == 120


def test_lost_run_undoes_nothing(store: Store, workshop: Workshop) -> None:
    workshop.reindex(SITE)
    workshop.reindex(EDITED)
    state = everything(store)
    with hold_collection(store, "docs") as lock:
        run = lock.begin("rollback", None)
        lock.finish(run, "failed", {}, "")
        with pytest.raises(Exception, match=r"run .* is failed"):
            rollback(store, lock, run, KnownState(workshop.live().id, 1, "earlier"))
    assert everything(store) == state


def test_command_lists_states_and_returns_to_one(store: Store, workshop: Workshop, jobs: Jobs) -> None:
    for _ in range(2):  # a run that changes nothing leaves nothing to undo
        workshop.reindex(SITE)
    assert [row["revision"] for row in store.publications(workshop.live().id)] == [1]
    assert "has nothing to return to" in jobs.run("rollback", "docs").messages
    workshop.reindex(EDITED)
    first = everything(store)
    assert jobs.run("rollback", "docs").summary["to"] == 1  # the only one
    assert jobs.run("rollback", "docs", "--to", 2).code == 0
    assert everything(store) == first
    several = jobs.run("rollback", "docs")
    assert several.code == 2 and "has several states to return to: name one of these" in several.messages
    with hold_collection(store, "docs"):  # reading waits for nobody
        listed = jobs.run("rollback", "docs", "--list").summary["states"]
    assert [(one["kind"], one["revision"]) for one in listed] == [("live", 4), *(("earlier", n) for n in (3, 2, 1))]
    assert (listed[0]["returned_to"], listed[2]["changes"]["pages_added"]) == (2, 1)
    assert "--to 2 " in several.messages and "pages +1 ~1 -1, chunks +2 ~0 -4" in several.messages
    unknown = jobs.run("rollback", "docs", "--to", 17)
    assert unknown.code == 2 and "has no revision 17 to return to" in unknown.messages
    workshop.use("hash:32")
    workshop.reindex(EDITED)
    assert jobs.run("rollback", "docs").summary["index"] == 1  # only the retired one
