"""Holding a collection: the lock and the run record around every verb that changes an index."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from jobs.environment import say
from pipelines.store import CollectionBusy, RunLock, Store


@contextmanager
def held(store: Store, name: str, wait: bool = False) -> Iterator[RunLock]:
    """The collection's lock. Raises CollectionBusy at once if another run has it, unless `wait`."""
    lock = RunLock(store, name)
    announced = False
    while not lock.try_acquire():
        if not wait:
            raise CollectionBusy(f"{lock.holder()} is at work on collection {name!r}: try later, or use --wait")
        if not announced:
            say(f"waiting for {lock.holder()} on collection {name!r}")
            announced = True
        time.sleep(1.0)
    try:
        yield lock
    finally:
        lock.release()


@contextmanager
def recorded(lock: RunLock, kind: str, settings: Mapping[str, Any] | None) -> Iterator["Record"]:
    """A run of `kind`, recorded as failed with its error if the body raises."""
    record = Record(lock.begin(kind, settings))
    try:
        yield record
    except BaseException as error:
        lock.finish(record.run, "failed", record.counts, f"{type(error).__name__}: {error}")
        raise
    lock.finish(record.run, "done", record.counts, record.remark)


class Record:
    """What is written down of a run: its id, counts, and a remark that is worth a look."""

    def __init__(self, run: int) -> None:
        self.run = run
        self.counts: dict[str, Any] = {}
        self.remark: str | None = None
