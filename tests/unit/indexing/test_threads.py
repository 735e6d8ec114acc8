"""Threads that draw from iterators: order, errors, ends, and leftovers."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from pathlib import Path

import pytest

from pipelines.indexing.building.threads import ThreadedIterator


def numbers(most: int, drawn: list[int] | None = None) -> Generator[int]:
    for number in range(most):
        if drawn is not None:
            drawn.append(number)
        yield number


def test_items_arrive_in_order_until_the_end() -> None:
    with ThreadedIterator([numbers(5)], ahead=1) as items:
        assert list(items) == [0, 1, 2, 3, 4]
    with ThreadedIterator([numbers(3), numbers(3)]) as items:
        assert sorted(items) == [0, 0, 1, 1, 2, 2]


def test_error_is_raised_to_the_consumer() -> None:
    def fails() -> Generator[int]:
        yield 1
        raise ValueError("broken page")

    with ThreadedIterator([fails()]) as items, pytest.raises(ValueError, match="broken page"):
        list(items)


def test_thread_that_cannot_begin_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: int) -> None:
        raise PermissionError("priorities can't be changed here")

    monkeypatch.setattr("pipelines.indexing.building.threads.give_way", refused)
    source = numbers(3)
    with ThreadedIterator([source]) as items:
        items._threads[0].join(10)
        assert not items._items.empty()  # else the next line would wait forever
        with pytest.raises(PermissionError, match="can't be changed here"):
            list(items)
    assert source.gi_frame is None  # closed


def test_nothing_is_drawn_beyond_the_limit_or_after_the_end() -> None:
    drawn: list[int] = []
    source = numbers(100, drawn)
    with ThreadedIterator([source], ahead=2) as items:
        assert next(iter(items)) == 0
        time.sleep(0.2)
        assert drawn == [0, 1, 2, 3]
    assert source.gi_frame is None  # closed
    assert len(drawn) == 4


def test_items_that_wait_are_taken_together_and_errors_still_arrive() -> None:
    taken = threading.Event()

    def comes_in_two_parts() -> Generator[int]:
        yield from (1, 2, 3)
        taken.wait(10)
        yield from (4, 5)
        raise ValueError("broken page")

    with ThreadedIterator([comes_in_two_parts()]) as items:
        while items._items.qsize() < 3:
            time.sleep(0.01)
        lists = items.together()
        assert next(lists) == [1, 2, 3]
        taken.set()
        with pytest.raises(ValueError, match="broken page"):
            list(lists)


def test_items_waiting_at_the_end_of_the_sources_can_be_dropped() -> None:
    with ThreadedIterator([numbers(5)], drop_rest=True) as items:
        while any(thread.is_alive() for thread in items._threads):
            time.sleep(0.01)
        assert list(items) == []


def test_error_is_raised_even_if_the_rest_is_dropped() -> None:
    def breaks() -> Generator[int]:
        yield 1
        raise ValueError("broken source")

    with ThreadedIterator([breaks()], drop_rest=True) as items:
        items._threads[0].join(10)
        with pytest.raises(ValueError, match="broken source"):
            list(items)


def test_thread_ends_while_waiting_for_one_that_does_not() -> None:
    """This happens in an interrupted run whose crawler waits for an unresponsive site."""
    over = threading.Event()

    def silent() -> Generator[int]:
        over.wait(60)
        yield 1

    with ThreadedIterator([silent()], end_s=0.1) as first:
        with ThreadedIterator([(item for item in first)], end_s=60) as second:
            pass
        assert not second._threads[0].is_alive() and first._threads[0].is_alive()
    over.set()


@pytest.mark.skipif(not hasattr(os, "getpriority"), reason="no niceness here")
def test_thread_runs_at_low_priority_and_its_owner_does_not() -> None:
    def mine() -> int:
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    before = mine()
    with ThreadedIterator([(mine() for _ in range(1))], niceness=15) as items:
        assert list(items) == [max(15, before)]
    assert mine() == before


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads have no niceness of their own here")
def test_low_priority_applies_to_all_threads_and_child_processes() -> None:
    code = """
import os, subprocess, threading
from pipelines.indexing.building.threads import give_way_whole
over, numbers = threading.Event(), []
threading.Thread(target=lambda: (numbers.append(threading.get_native_id()), over.wait())).start()
give_way_whole(15)
give_way_whole(5)  # never back
child = subprocess.run(["nice"], capture_output=True, text=True).stdout
print(*(os.getpriority(os.PRIO_PROCESS, each) for each in (0, *numbers)), child)
over.set()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {max(15, int(each)) for each in done.stdout.split()} == {max(15, os.getpriority(os.PRIO_PROCESS, 0))}
