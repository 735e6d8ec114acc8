"""Copies of a collection: its pages under another name, which never change the live index."""

import pytest
from kit.workshop import Workshop, small_site

from pipelines.answering.retrieval.live import CollectionNotNamed, LiveIndexes
from pipelines.embedding.load import load_embedder
from pipelines.indexing.lock import hold_collection
from pipelines.lexical import LexicalIndex
from pipelines.store import NoLiveIndex, Store, copy_name

LONG = {
    path: {anchor: " ".join(f"{text} Sentence {n} of it." for n in range(8)) for anchor, text in sections.items()}
    for path, sections in small_site(3).items()
}


def copied(store: Store, workshop: Workshop, **settings: int) -> Workshop:
    """Create a copy of the workshop's collection, indexed with other settings from the copied pages."""
    copy = Workshop(store, copy_name(workshop.name, "a" * 32), **settings)
    with hold_collection(store, copy.name) as lock:
        run = lock.begin("experiment", {})
        store.copy_pages(workshop.name, copy.name, run)
        copy.stage(run)
        copy.publish(lock, run)
        lock.finish(run, "done", {}, None)
    return copy


def test_copy_is_indexed_and_dropped_without_changing_its_collection(store):
    workshop = Workshop(store)
    workshop.reindex(LONG)
    before, live = workshop.texts(), workshop.live()
    copy = copied(store, workshop, chunk_size=32)
    assert copy.texts().keys() == before.keys()
    assert copy.texts() != before
    assert (workshop.texts(), workshop.live(), store.copies("docs")) == (before, live, [copy.name])
    index = copy.live().id
    assert store.drop_copy(copy.name) == [index]
    with pytest.raises(NoLiveIndex):
        copy.live()
    with pytest.raises(ValueError, match="not a copy"):
        store.drop_copy("docs")
    assert (workshop.texts(), workshop.live(), store.copies("docs")) == (before, live, [])


def test_copy_follows_the_pages_of_its_collection(store):
    workshop = Workshop(store)
    workshop.reindex(small_site(4))
    copied(store, workshop)
    site = dict(small_site(4))
    site["p00"] = {"s0": "Something else altogether."}
    site["p01"] = "gone"
    workshop.reindex(site)
    copy = copied(store, workshop)
    assert copy.texts() == workshop.texts()


def test_only_collection_is_still_the_default_if_it_has_copies(store, tmp_path):
    workshop = Workshop(store)
    workshop.reindex(small_site(2))
    copied(store, workshop)
    servings = LiveIndexes(store, load_embedder, lambda index: LexicalIndex(tmp_path / str(index.id)), "", 1.0)
    try:
        assert servings.name(None) == "docs"
        Workshop(store, "other").reindex(small_site(1))
        with pytest.raises(CollectionNotNamed) as error:
            servings.name(None)
        assert error.value.names == ("docs", "other")
    finally:
        servings.close()
