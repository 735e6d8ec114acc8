"""Locks a collection and records the run around every change of an index.

This module knows no Ray and no command line; the store implements the lock.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any

from pipelines.logs import as_began, with_ids
from pipelines.store import CollectionBusy, RunLock, Store, StoreUnavailable, run_began
from pipelines.text.progress import describe_wait


@contextmanager
def hold_collection(
    store: Store, name: str, wait: bool = False, progress: Callable[[str], None] | None = None
) -> Iterator[RunLock]:
    """Yield the collection's lock. Raises CollectionBusy at once if another run has it, unless `wait`.

    While waiting, it tells `progress` once which run has the lock.
    """
    lock = RunLock(store, name)
    announced = False
    while not lock.try_acquire():
        if not wait:
            raise CollectionBusy(
                f"{lock.holder()} is working on collection {name!r}: try again later, or wait for it with `--wait`"
            )
        if progress and not announced:
            progress(describe_wait(f"{lock.holder()} on collection {name!r}"))
        announced = True
        time.sleep(1.0)
    try:
        yield lock
    finally:
        lock.release()


def hold_known(
    store: Store, name: str, wait: bool = False, progress: Callable[[str], None] | None = None
) -> AbstractContextManager[RunLock]:
    """Like `hold_collection`, for an existing collection. Raises NoSuchCollection."""
    store.find_collection(name)
    return hold_collection(store, name, wait, progress)


class RunRecord:
    """The record of a run: its id, its counts, and a remark that needs attention."""

    def __init__(self, run: int) -> None:
        self.run = run
        self.counts: dict[str, Any] = {}
        self.remark: str | None = None


@contextmanager
def record_run(lock: RunLock, kind: str, settings: Mapping[str, Any] | None) -> Iterator[RunRecord]:
    """Begin a run of `kind` and record how it ends: done, interrupted by a person, or failed with the body's error."""
    record = RunRecord(lock.begin(kind, settings))
    try:
        with with_ids(run=record.run, collection=lock.collection, began=as_began(run_began(lock.store, record.run))):
            yield record
    except BaseException as error:
        interrupted = isinstance(error, KeyboardInterrupt | SystemExit)  # Ctrl-C, SIGTERM
        said = None if interrupted else f"{type(error).__name__}: {error}"
        # A person who interrupts a run should not wait for a database, and a run that lost the database has waited
        # enough.
        wait = not interrupted and not isinstance(error, StoreUnavailable)
        with suppress(StoreUnavailable):  # the next run will mark this one as abandoned
            lock.finish(record.run, "interrupted" if interrupted else "failed", record.counts, said, wait)
        raise
    lock.finish(record.run, "done", record.counts, record.remark)
