"""`raydex default`: one collection of a database answers questions without a collection's name."""

import pytest
from kit.reindexing import Jobs
from kit.workshop import Workshop, small_site

from pipelines.answering.retrieval.live import CollectionNotNamed, choose_collection
from pipelines.store import Store


def test_default_is_set_changed_printed_and_cleared(jobs: Jobs, store: Store) -> None:
    for name in ("docs", "tune"):
        Workshop(store, name).reindex(small_site(1))
    with pytest.raises(CollectionNotNamed):
        choose_collection(store.collections())
    for name in ("docs", "tune"):
        assert jobs.run("default", name).summary == {"default": name}
        assert choose_collection(store.collections()) == name
    assert jobs.run("default").summary == {"default": "tune"}
    assert jobs.run("default", "--none").summary == {"default": None}
    assert jobs.run("default").summary == {"default": None}


def test_unknown_name_changes_nothing(jobs: Jobs, store: Store) -> None:
    Workshop(store, "docs").reindex(small_site(1))
    jobs.run("default", "docs")
    wrong = jobs.run("default", "dcos")
    said = "raydex default: there is no collection 'dcos'; there are: docs; did you mean docs?"
    assert (wrong.code, wrong.messages.strip()) == (2, said)
    assert jobs.run("default").summary == {"default": "docs"}
    assert jobs.run("default", "docs", "--none").code == 2
