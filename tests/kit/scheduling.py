"""Distributes test files to the workers of pytest-xdist.

Files that use the session's Ray go to one worker, first of all, so that it ends when the last of them is done: a Ray
that does nothing costs a sixth of a processor. The slowest of the others come next, so that the workers end together.
"""

import functools
from collections.abc import Sequence
from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

ROOT = Path(__file__).parents[2]
RAY = "ray"


class FileScheduling(LoadScopeScheduling):
    """Send each group of files to one worker, in the order of collection."""

    def __init__(self, config: pytest.Config, log: Producer) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid.partition("::")[0])


@functools.cache
def group_of(file: str) -> str:
    """Return RAY for a file whose tests use the session's Ray or Serve, else the file itself."""
    if file.startswith("tests/unit/"):
        return file
    text = (ROOT / file).read_text()
    return RAY if "local_ray" in text or "kit.cluster import Service" in text else file


def uses_ray(item: pytest.Item | None) -> bool:
    """Return whether a test is of the group of the session's Ray."""
    return item is not None and group_of(item.nodeid.partition("::")[0]) == RAY


def longest_first(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Sort tests that use the session's Ray first, then slow ones, then the others."""

    def place(item: pytest.Item) -> int:
        marked = item.get_closest_marker("slow") or item.get_closest_marker("exhaustive")
        return 0 if uses_ray(item) else 1 if marked else 2

    return sorted(items, key=place)
