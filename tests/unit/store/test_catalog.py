"""A wrong name of a collection is answered with the collections that a person knows."""

from pipelines.store.collections.catalog import NoSuchCollection


def test_copies_are_not_listed_or_suggested():
    assert str(NoSuchCollection("dosc", ["docs", "docs@0123456789ab"])).endswith("there are: docs; did you mean docs?")
    assert "`raydex index` makes the first one" in str(NoSuchCollection("x", ["docs@0123456789ab"]))
