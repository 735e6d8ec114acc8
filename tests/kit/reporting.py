"""Prints tables at the end of a test run, including those from workers of pytest-xdist."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

TABLES = pytest.StashKey[list[str]]()
SENT = "tables"


def leave_table(config: pytest.Config, title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Register this table to be printed at the end of the run."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in [head, *rows]]
    config.stash.setdefault(TABLES, []).append("\n".join(["", title, *lines]))


def table(title: str, head: Sequence[str]) -> Any:
    """Return a fixture with the rows of a table, which is printed after the module's tests."""

    @pytest.fixture(scope="module")
    def rows(request: pytest.FixtureRequest) -> Iterator[list[Sequence[str]]]:
        yield (rows := [])
        leave_table(request.config, title, head, rows)

    return rows


class Tables:
    """A plugin: a worker sends its tables with its results, and the main process prints them."""

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput[SENT] = session.config.stash.get(TABLES, [])

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: object) -> None:
        sent = getattr(node, "workeroutput", {}).get(SENT, [])
        node.config.stash.setdefault(TABLES, []).extend(sent)  # type: ignore[attr-defined]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
        for table in config.stash.get(TABLES, []):
            terminalreporter.write_line(table)
