"""Impossible memory or processes for a build are refused before any work, not by Postgres at its end."""

import pytest

from pipelines.store.publish import BadResources, BuildResources


@pytest.mark.parametrize("memory", ["auto", "2GB", "64MB", "512 MB", "65536", "1TB"])
def test_sizes_of_postgres_are_taken(memory: str) -> None:
    assert BuildResources(memory, 0).maintenance_work_mem == memory


@pytest.mark.parametrize(
    ("memory", "workers"), [("lots", None), ("-1GB", None), ("", None), ("2gb", None), ("1GB", -4)]
)
def test_impossible_resources_are_named(memory: str, workers: int | None) -> None:
    with pytest.raises(BadResources, match=repr(workers or memory)):
        BuildResources(memory, workers)
