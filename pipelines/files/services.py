"""Announces running services in their home folder, so that commands find them.

`announce` writes a file under `<home>/services` and locks it while the service runs. `find_services` reads the files
that are locked. The kernel releases a lock when its process ends, so a killed service is never found. This module knows
neither HTTP nor the purpose of a service.
"""

import fcntl
import json
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from pipelines.files.shared_files import state_of, try_lock
from pipelines.text.parsing import parse_json

FOLDER = "services"


@dataclass(frozen=True, slots=True)
class RunningService:
    """A running service: its URL, its process, and its own collection ("": the database's default)."""

    url: str
    pid: int
    started: float  # seconds since the epoch
    collection: str = ""


@contextmanager
def announce(home: Path, url: str, collection: str = "") -> Iterator[None]:
    """Let `find_services` find this process's service at `url`, until the block ends or the process dies."""
    folder = home / FOLDER
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    _remove_leftovers(folder)
    service = RunningService(url, os.getpid(), time.time(), collection)
    with tempfile.NamedTemporaryFile("w", dir=folder, suffix=".json") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # before anything is written: a file with content and no lock is a leftover
        json.dump(asdict(service), file)
        file.flush()
        yield


def find_services(home: Path) -> list[RunningService]:
    """Return the services that run on this machine from `home`, last started first."""
    found = [service for path in (home / FOLDER).glob("*.json") if (service := _read(path))]
    return sorted(found, key=lambda service: service.started, reverse=True)


def _read(path: Path) -> RunningService | None:
    """Return the service that a file announces; None if it has ended or is still starting."""
    try:
        with path.open() as file:
            return None if try_lock(file, shared=True) else RunningService(**parse_json(file.read()))
    except (OSError, ValueError, TypeError):
        return None


def _remove_leftovers(folder: Path) -> None:
    """Remove the files of killed services."""
    for path in folder.glob("*.json"):
        state = state_of(path)  # None: another process has removed the file
        if state and state.st_size and _read(path) is None:
            path.unlink(missing_ok=True)
