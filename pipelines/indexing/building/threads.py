"""Draws items from iterators in threads that run at low priority. Knows no pages."""

import os
import queue
import sys
import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Generic, TypeVar

T = TypeVar("T")

# Interval at which each side checks whether the other has ended.
_LOOK_S = 0.05
# At the end, a thread may still be busy with one item, such as a slice of texts in the encoder.
_END_S = 5.0
# Tells a drawing thread to end, even while it waits for items that another thread draws.
_THREAD = threading.local()


class ThreadedIterator(Generic[T]):
    """Iterates over several iterators, each in a thread that is at most `ahead` items ahead (0: no limit).

    Iterate over it within `with`: the end of the block ends the threads, and an iterator's error is raised where its
    items are taken. With `drop_rest`, iteration ends with the last iterator, and items not taken by then are dropped,
    but no error. The threads and all that they start have at least this `niceness`; only on Linux does it apply to
    single threads. A thread that is still busy with an item `end_s` seconds after the end of the block is abandoned.
    """

    def __init__(
        self,
        sources: Sequence[Generator[T]],
        ahead: int = 0,
        drop_rest: bool = False,
        niceness: int = 0,
        end_s: float = _END_S,
    ) -> None:
        self._items: queue.Queue[tuple[T] | BaseException | None] = queue.Queue(ahead)  # None: a thread has ended
        self._ended = 0
        self._error: BaseException | None = None
        self._stopped, self._drop_rest, self._niceness, self._end_s = threading.Event(), drop_rest, niceness, end_s
        self._threads = [threading.Thread(target=self._draw, args=[source], daemon=True) for source in sources]

    def __enter__(self) -> "ThreadedIterator[T]":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join(self._end_s)

    def __iter__(self) -> Iterator[T]:
        mine: threading.Event | None = getattr(_THREAD, "stopped", None)
        while self._has_more() and not (mine and mine.is_set()):
            if taken := self._take(_LOOK_S):
                yield taken[0]

    def together(self) -> Iterator[list[T]]:
        """Yield the items that wait, at least one, in lists."""
        for item in self:
            items = [item]
            while taken := self._take(0):
                items.append(taken[0])
            yield items

    def _take(self, wait_s: float) -> tuple[T] | None:
        """Return the next item, None if there is none within this time; raise an iterator's error."""
        try:
            item = self._items.get(timeout=wait_s)
        except queue.Empty:
            return None
        if isinstance(item, BaseException):
            raise item
        self._ended += item is None
        return item

    def _has_more(self) -> bool:
        if not self._drop_rest:
            return self._ended < len(self._threads)
        if any(thread.is_alive() for thread in self._threads):
            return True
        if self._error:  # it may be among the dropped items
            raise self._error
        return False

    def _draw(self, source: Generator[T]) -> None:
        _THREAD.stopped = self._stopped
        try:
            with closing(source):
                give_way(self._niceness)
                for item in source:
                    self._put((item,))
                    if self._stopped.is_set():
                        return
        except BaseException as error:  # raised where the items are taken
            self._error = error
            self._put(error)
        finally:
            self._put(None)

    def _put(self, item: tuple[T] | BaseException | None) -> None:
        while not self._stopped.is_set():
            with suppress(queue.Full):
                self._items.put(item, timeout=_LOOK_S)
                break


def give_way(niceness: int) -> None:
    """Lower the priority of this thread, and of processes that it starts."""
    if sys.platform == "linux":
        _be_nice(threading.get_native_id(), niceness)


def give_way_whole(niceness: int) -> None:
    """Lower the priority of all threads of this process, and of processes that they start."""
    threads = Path("/proc/self/task")
    for thread in [int(path.name) for path in threads.iterdir()] if threads.exists() else [0]:
        with suppress(ProcessLookupError):  # it has just ended
            _be_nice(thread, niceness)


def _be_nice(thread: int, niceness: int) -> None:
    os.setpriority(os.PRIO_PROCESS, thread, max(niceness, os.getpriority(os.PRIO_PROCESS, thread)))
