"""Runs over announced changes: a closed service starts no further run."""

import os
import sys
import threading
from pathlib import Path

import pytest

from serve.changes.runner import ChangeRunner
from serve.settings import Settings

# A Python that records its run's collection. The first one reports that it is running, and never ends.
PYTHON = """#!/bin/sh
echo "$3" >> "$0.log"
[ "$3" = second ] || { echo > "$0.begun"; exec sleep 600; }
"""


class DueStore:
    def announced_collections(self) -> list[dict[str, object]]:
        return [{"collection": name, "due": True, "held": False} for name in ("first", "second")]


def test_run_that_fails_to_start_is_retried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "none"))
    asked = threading.Semaphore(0)

    class AskedStore(DueStore):
        def announced_collections(self) -> list[dict[str, object]]:
            asked.release()
            return super().announced_collections()

    runner = ChangeRunner(AskedStore(), Settings(database_url="", home=tmp_path))
    assert asked.acquire(timeout=60)
    runner.wake()
    assert asked.acquire(timeout=60)
    runner.close()


def test_no_run_starts_after_the_service_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = tmp_path / "python"
    python.write_text(PYTHON)
    python.chmod(0o755)
    os.mkfifo(f"{python}.begun")
    monkeypatch.setattr(sys, "executable", str(python))
    runner = ChangeRunner(DueStore(), Settings(database_url="", home=tmp_path))
    Path(f"{python}.begun").read_text()  # returns once the first run is running
    runner.close()
    for thread in threading.enumerate():
        if thread.name == "changes":
            thread.join()
    assert Path(f"{python}.log").read_text() == "first\n"
