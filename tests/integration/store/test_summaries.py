"""The summary of each section has a vector of its own: embedded once, found with each of its hits, kept by a dump."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import psycopg
import pytest
from kit.workshop import SMALL_BUILD, Workshop

from pipelines.store import RunLock, Store, VectorsMissing, dump, promote_index, restore
from pipelines.store.chunks import chunk_table
from pipelines.store.indexes import SUMMARY


def words(name: str, count: int = 400) -> str:
    return " ".join(f"{name}{n}." for n in range(count))


SITE = {"page": {"a": words("apple"), "b": words("pear"), "c": "A short one."}, "other": {"d": words("plum")}}
# Three sections of 400 words are four chunks each, and each of them has a summary besides.
TEXTS = 3 * 4 + 3 + 1


def scores(workshop: Workshop, question: str, name: str = "docs") -> dict[str, set[float]]:
    """The cosines of the summaries of each source, over all its chunks."""
    index, vector = workshop.store.live_index(name), workshop.embedder.embed_query(question)
    with workshop.store.scan_chunks(index.id) as (_, chunks):
        ids = [hit.chunk_id for hit in chunks]
    found: dict[str, set[float]] = {}
    for hit in workshop.store.read_index(index, lambda chunks: chunks.hits(ids, vector)).values():
        found.setdefault(hit.anchors[-1], set()).add(round(hit.scores[SUMMARY], 2))
    return found


def cosine(workshop: Workshop, question: str, texts: Sequence[str]) -> list[float]:
    vectors = workshop.embedder.embed_chunks(list(texts))
    return [round(float(one), 2) for one in np.asarray(vectors) @ workshop.embedder.embed_query(question)]


def restored(store: Store, name: str, path: Path) -> None:
    lock = RunLock(store, name)
    assert lock.try_acquire()
    try:
        run = lock.begin("restore", None)
        promote_index(lock, run, restore(lock, run, path, SMALL_BUILD)[0])
        lock.finish(run, "done", {}, None)
    finally:
        lock.release()


@pytest.fixture
def workshop(store: Store) -> Workshop:
    workshop = Workshop(store)
    workshop.reindex(SITE)
    return workshop


def test_all_hits_of_a_section_have_the_cosine_of_its_first_words(workshop: Workshop) -> None:
    question = words("pear", 20)
    parts = (("a", "apple"), ("b", "pear"))
    texts = [f"Title > {anchor}\n{words(name, 45)}" for anchor, name in parts] + ["Title > c\nA short one."]
    found = scores(workshop, question)
    assert [found[anchor] for anchor in "abc"] == [{one} for one in cosine(workshop, question, texts)]


def test_a_summary_is_embedded_once_and_used_again(workshop: Workshop, store: Store) -> None:
    assert workshop.embedded == TEXTS
    workshop.reindex(SITE)
    assert workshop.embedded == TEXTS
    changed = SITE | {"page": {**SITE["page"], "c": "Another one."}}
    assert workshop.reindex(changed).in_place and workshop.embedded == TEXTS + 1
    other = Workshop(store, "other")
    other.reindex(changed)
    assert other.embedded == 0
    workshop.use("hash:64", chunk_size=100)
    before = scores(other, "apple1. plum1.")
    assert not workshop.reindex(changed).in_place
    with workshop.store.scan_chunks(workshop.live().id) as (_, chunks):
        assert workshop.embedded == len([*chunks]) - 1  # the short one is known, and so are all summaries
    assert scores(workshop, "apple1. plum1.") == before


def test_a_section_that_begins_otherwise_has_another_summary(workshop: Workshop) -> None:
    question = "quince"
    assert workshop.reindex(SITE | {"other": {"d": f"quince quince {SITE['other']['d']}"}}).in_place
    (found,) = scores(workshop, question)["d"]
    assert [found] == cosine(workshop, question, [f"Title > d\nquince quince {words('plum', 43)}"])


def test_an_index_of_before_answers_by_its_own_vectors(workshop: Workshop) -> None:
    with psycopg.connect(workshop.store.url) as connection:
        table = chunk_table(workshop.live().id).as_string(connection)
        connection.execute(f"update {table} set summary = null, summary_hash = null")  # type: ignore[call-overload]
    assert {len(cosines) for cosines in scores(workshop, "apple1. apple399.").values()} > {1}


def test_a_dump_keeps_the_summaries(workshop: Workshop, store: Store, tmp_path: Path) -> None:
    dump(store, workshop.live(), tmp_path / "docs.dump")
    restored(store, "again", tmp_path / "docs.dump")
    question = "apple1. pear2. plum3."
    assert scores(workshop, question, "again") == scores(workshop, question)
    again = Workshop(store, "again")
    again.reindex(SITE)
    assert again.embedded == 0


def test_nothing_is_published_without_the_summaries(store: Store) -> None:
    workshop = Workshop(store)
    lock = workshop.lock()
    try:
        run = workshop.prepare(lock, SITE)
        with psycopg.connect(store.url) as connection:
            summaries = "select summary_hash from staged_chunk where tokens > 99"
            lost = connection.execute(f"delete from staged_vector where embed_hash in ({summaries})")
            assert lost.rowcount == 3
        with pytest.raises(VectorsMissing, match="3 staged chunks"):
            workshop.publish(lock, run)
        assert store.staged_counts(run)["embedded"] == 3 * 4 + 1
    finally:
        lock.release()
