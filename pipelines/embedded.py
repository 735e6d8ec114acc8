"""Runs the embedded Postgres while at least one process uses it.

`run_postgres(home)` yields a database URL. If no server answers, it starts the server's keeper (`keeper.py`). It takes
a shared file lock while the URL is in use, and starts a new keeper if the old one dies. The kernel releases a lock when
its process ends, so a killed user leaves no server behind, and nothing relies on a stale pid. This module knows nothing
of collections, indexes or Ray.
"""

import contextlib
import fcntl
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from pipelines.files.atomic_files import keep_private
from pipelines.files.shared_files import try_lock
from pipelines.keeper import STOP_TIMEOUT_S, read_url
from pipelines.store import can_connect

START_TIMEOUT_S = 60.0
# If less space is left, the full disk is why the server did not start: a file of its write-ahead log has 16 MiB.
LEAST_SPACE_MIB = 16
# Each user checks this often that the keeper lives; a check is one system call.
WATCH_S = 1.0


class EmbeddedPostgresFailed(RuntimeError):
    """The embedded server could not be started; the message ends with the last lines of its log."""


@contextlib.contextmanager
def run_postgres(home: Path) -> Iterator[str]:
    """Yield the URL of the Postgres whose data is under `home`, starting it if it is not running.

    The URL's role owns the database but is not a superuser. The server stops by itself soon after its last user ends,
    even if that user was killed. Raises EmbeddedPostgresFailed.
    """
    home = home.expanduser().absolute()
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    keep_private(home)
    with (home / "postgres.users").open("w") as users:
        fcntl.flock(users, fcntl.LOCK_SH)  # waits while a keeper without users stops its server
        url = _find(home) or _start(home)
        with _watch(home):
            yield url


def open_database(url: str, home: Path) -> contextlib.AbstractContextManager[str]:
    """Yield `url`, or the URL of the Postgres under `home` if `url` is "". Raises EmbeddedPostgresFailed."""
    return contextlib.nullcontext(url) if url else run_postgres(home)


@contextlib.contextmanager
def run_scratch_postgres(home: Path) -> Iterator[str]:
    """Yield the URL of a new Postgres with its data in `home`, and delete the data when the body ends.

    Data left by a killed process is deleted before the next start. Raises EmbeddedPostgresFailed.
    """
    _remove(home)
    try:
        with run_postgres(home) as url:
            yield url
    finally:
        _remove(home)


def _remove(home: Path) -> None:
    deadline = time.monotonic() + STOP_TIMEOUT_S
    while home.exists() and _is_kept(home) and time.monotonic() < deadline:  # the keeper stops by itself
        time.sleep(0.05)
    shutil.rmtree(home, ignore_errors=True)


@contextlib.contextmanager
def _watch(home: Path) -> Iterator[None]:
    """While the body runs, start a new keeper within seconds after one dies."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(WATCH_S):
            # tried again later; the caller's queries show the error
            with contextlib.suppress(EmbeddedPostgresFailed, OSError):
                if not _is_kept(home):
                    _start(home)

    thread = threading.Thread(target=watch, name="watch-postgres", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(WATCH_S)


def _is_kept(home: Path) -> bool:
    """Return whether a keeper runs, which shows in its lock."""
    with (home / "postgres.keeper").open("a") as lock:
        return not try_lock(lock, shared=True)


def _find(home: Path) -> str | None:
    """Return the URL of a server that answers now, or None."""
    url = read_url(home)
    return url if url and can_connect(url) else None


def _start(home: Path) -> str:
    """Start a keeper and return the URL of its server. Raises EmbeddedPostgresFailed."""
    log = home / "postgres.log"  # the server logs statements there, which contain questions
    log.touch(mode=0o600)
    keep_private(log)
    with log.open("a") as output:
        before = output.tell()
        keeper = subprocess.Popen(
            [sys.executable, "-m", "pipelines.keeper", str(home)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,  # so that Ctrl-C in a user's terminal does not stop the server
            cwd=home,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        if url := _find(home):
            return url
        if keeper.poll():
            break
        time.sleep(0.05)
    raise EmbeddedPostgresFailed(_why_not_started(home, log, before))


def _why_not_started(home: Path, log: Path, before: int) -> str:
    """Return why no server runs, with the last lines that its log gained after the first `before` bytes."""
    left = shutil.disk_usage(home).free >> 20
    reason = f": its disk is full ({left} MiB left), free space there and do the same again"
    tail = log.read_bytes()[before:].decode(errors="replace").splitlines()[-15:]
    shown = f"the end of {log}:" if tail else f"{log} says nothing about it; if the machine is busy, try again"
    return "\n".join(
        [f"embedded Postgres under {home} did not start{reason * (left < LEAST_SPACE_MIB)}; {shown}", *tail]
    )
