"""Starts the runs that index announced changes, each in a separate process.

If another run holds a collection, its changes wait. Announcements are stored in the database, so after a crash the next
service continues with them.
"""

import logging
import os
import subprocess
import sys
import threading
from pathlib import Path

from pipelines.store import Store, StoreUnavailable, UnusableDatabase
from serve.settings import Settings

log = logging.getLogger(__name__)

PROJECT_ROOT = Path(__file__).resolve().parents[2]
# How often to check whether a locked collection is free, and for changes recorded by other replicas.
BUSY_S, IDLE_S = 1.0, 30.0
END_S = 5.0
BUSY = 75  # exit code: another run has locked the collection in the meantime
LAST_WORDS = 500  # maximum characters of a failed run's output to log


class ChangeRunner:
    """Indexes announced changes, one run at a time. Thread-safe; `close` ends the run in progress."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._environment = {"DATABASE_URL": settings.database_url, "RAYDEX_HOME": str(settings.home)}
        self._awake, self._closing, self._starting = threading.Event(), threading.Event(), threading.Lock()
        self._child: subprocess.Popen[str] | None = None
        self._thread = threading.Thread(target=self._work, name="changes", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Check for changes at once."""
        self._awake.set()

    def close(self) -> None:
        """End the run in progress; the next service continues it."""
        with self._starting:  # a run either starts before this and is ended, or does not start
            self._closing.set()
        self._awake.set()
        if child := self._child:
            child.terminate()
        self._thread.join(END_S)

    def _work(self) -> None:
        while not self._closing.is_set():
            more = False
            try:
                due = [row for row in self._store.announced_collections() if row["due"]]
                more = any([row["held"] or self._run(row["collection"]) for row in due])
            except StoreUnavailable:
                pass
            except (OSError, UnusableDatabase) as error:  # for example, no memory for a process
                log.warning("announced changes wait: %s", error)
            self._awake.wait(BUSY_S if more else IDLE_S)
            self._awake.clear()

    def _run(self, collection: str) -> bool:
        """Index a collection's announced changes; return whether to check again soon."""
        command = [sys.executable, "-m", "jobs.reindex", collection, "--announced", "--no-ray"]
        with self._starting:
            if self._closing.is_set():
                return True
            self._child = subprocess.Popen(
                command, cwd=PROJECT_ROOT, env={**os.environ, **self._environment}, text=True, errors="replace",
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            )  # fmt: skip
        _, said = self._child.communicate()
        code, self._child = self._child.returncode, None
        if code in (0, BUSY) or self._closing.is_set():
            return True
        log.warning("`raydex index %s --announced` ended with %d: %s", collection, code, said[-LAST_WORDS:].strip())
        return False
