"""Distributes test files to the workers of pytest-xdist.

Tests that use the session's Ray go to one worker and run first, so that Ray stops as soon as they are done: an idle Ray
takes a sixth of a CPU. The slowest other files come next, so that the workers finish together. Files that load torch
also go to one worker, because loading it takes a process eight seconds. So do the tests in unit/house, which parse
every file of the project.
"""

import functools
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

ROOT = Path(__file__).parents[2]
RAY, TORCH, HOUSE = "ray", "torch", "tests/unit/house/"
USES = re.compile(r"^(?:async )?def (\w+)\([^)]*\b(?:local_ray|service: Service)\b", re.MULTILINE)
LOADS_TORCH = re.compile(r'\b(?:torch|tiny_model|TextClassifier)\b|device="cpu"')


class FileScheduling(LoadScopeScheduling):
    """Send each group of files to one worker, in the order of collection."""

    def __init__(self, config: pytest.Config, log: Producer) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid.partition("[")[0])


@functools.cache
def group_of(test: str) -> str:
    """Return RAY for a test that uses the session's Ray or Serve, directly or by a fixture of its file, else its file.

    Files that load torch are one group. So are the tests in unit/house.
    """
    file, _, name = test.partition("::")
    using = set() if file.startswith("tests/unit/") else users_of_ray(file)
    if name in using or any(not other.startswith("test_") for other in using):
        return RAY
    if file.startswith(HOUSE):
        return HOUSE
    return TORCH if names_torch(file) else file


@functools.cache
def users_of_ray(file: str) -> set[str]:
    """Return the tests and fixtures of a file that use the session's Ray or Serve."""
    return set(USES.findall((ROOT / file).read_text()))


@functools.cache
def names_torch(file: str) -> bool:
    """Return whether a file mentions torch, a helper that loads it, or its scikit-learn counterpart."""
    return bool(LOADS_TORCH.search((ROOT / file).read_text()))


def uses_ray(item: pytest.Item | None) -> bool:
    """Return whether a test belongs to the group of the session's Ray."""
    return item is not None and group_of(item.nodeid.partition("[")[0]) == RAY


def longest_first(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Sort tests that use the session's Ray first, then slow ones, then the others, each grouped by file."""

    def place(item: pytest.Item) -> tuple[int, Path]:
        marked = item.get_closest_marker("slow") or item.get_closest_marker("exhaustive")
        return 0 if uses_ray(item) else 1 if marked else 2, item.path

    return sorted(items, key=place)


def rotated_folders(worker: str) -> list[str]:
    """Return the test folders in a different order for each of three workers.

    Pytest rewrites a file's assertions and caches the result for the workers that read the file later.
    """
    folders = sorted({path.parent.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("test_*.py")})
    at = int(worker.removeprefix("gw")) * len(folders) // 3
    return folders[at:] + folders[:at]


def spare_reports(config: pytest.Config) -> None:
    """Send only the outcome of a passing test: two messages instead of six, half a millisecond each."""
    for worker in [one for one in config.pluginmanager.get_plugins() if hasattr(one, "sendevent")]:
        worker.sendevent = functools.partial(_send, worker.sendevent)


def _send(send: Callable[..., None], name: str, **told: Any) -> None:
    report = told.get("data", {})
    passed = report.get("outcome") == "passed" and report.get("when") in ("setup", "teardown")
    if name not in ("logstart", "logfinish") and not passed:
        send(name, **told)
