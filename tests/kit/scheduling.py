"""Distributes test files to the workers of pytest-xdist.

Files that share Ray or Serve go to one worker. The slowest come first, so that the workers end together.
"""

import functools
from collections.abc import Sequence
from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

ROOT = Path(__file__).parents[2]
# The fixtures that cost most to start: only one worker starts each.
SHARED = ("service", "local_ray")


class FileScheduling(LoadScopeScheduling):
    """Send each group of files to one worker, in the order of collection."""

    def __init__(self, config: pytest.Config, log: Producer) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid.partition("::")[0])


@functools.cache
def group_of(file: str) -> str:
    """Return the first shared fixture that the file names, or the file itself."""
    if file.startswith("tests/unit/"):
        return file
    text = (ROOT / file).read_text()
    return next((name for name in SHARED if f"{name}: " in text or f'"{name}"' in text), file)


def longest_first(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Sort tests with shared fixtures first, then slow ones, then the others."""

    def place(item: pytest.Item) -> int:
        file = item.nodeid.partition("::")[0]
        marked = item.get_closest_marker("slow") or item.get_closest_marker("exhaustive")
        return 0 if group_of(file) in SHARED else 1 if marked else 2

    return sorted(items, key=place)
