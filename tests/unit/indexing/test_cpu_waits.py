"""Waiting for a CPU is told apart from waiting for something else, and costs no process its life."""

import os
import subprocess
import sys
import time
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from pipelines.indexing.reading import child_process, cpu_waits
from pipelines.indexing.reading.child_process import Child, ChildTimeout
from pipelines.indexing.reading.cpu_waits import CpuWaits, cpu_times
from tests.kit.processes import eventually

counted = pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="the system does not count waits")
BURN = "import os; os.sched_setaffinity(0, [{cpu}]); os.nice({niceness}); print(1, flush=True)\nwhile True: pass"


def burner(stack: ExitStack, niceness: int) -> int:
    """Start a process that keeps one CPU busy, until the end of the stack; return its id."""
    code = BURN.format(cpu=min(os.sched_getaffinity(0)), niceness=niceness)
    process = stack.enter_context(subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE))
    stack.callback(process.kill)
    assert process.stdout and process.stdout.readline()
    return process.pid


@counted
def test_process_starves_next_to_others_of_higher_priority():
    with ExitStack() as stack:
        low = burner(stack, 19)
        for _ in range(2):
            burner(stack, 0)
        waits = CpuWaits(lambda: [low])
        eventually(waits.starves, "the process mostly waits for its CPU")


def test_process_that_sleeps_or_is_gone_does_not_starve():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        waits = CpuWaits(lambda: [process.pid])
        process.communicate(b"\n")
    assert not waits.starves()
    assert cpu_times(process.pid) == (0.0, 0.0)


@pytest.mark.parametrize(("ran", "waited", "starves"), [(1.0, 10.0, True), (1.0, 2.0, False), (0.0, 0.0, False)])
def test_starving_means_to_wait_far_longer_than_to_run(monkeypatch, ran, waited, starves):
    seen = iter([(5.0, 7.0), (5.0 + ran, 7.0 + waited)])
    monkeypatch.setattr(cpu_waits, "cpu_times", lambda _: next(seen))
    assert CpuWaits(lambda: [1]).starves() is starves


@pytest.mark.parametrize("others_have_the_cpus", [True, False])
def test_child_that_gets_no_cpu_is_not_replaced(monkeypatch, others_have_the_cpus):
    """The call takes 1 s, and its limit is 0.3 s without the time that the child waits for a CPU."""
    waited = time.monotonic if others_have_the_cpus else lambda: 0.0
    monkeypatch.setattr(child_process, "cpu_times", lambda _: (0.0, waited()))
    monkeypatch.setattr(child_process, "_LOOK_S", 0.05)
    with closing(Child()) as child:
        pid = child(os.getpgid, 0, 5) and child.pid
        if others_have_the_cpus:
            assert child(time.sleep, 1.0, 0.02) is None
            assert child.pid == pid
        else:
            with pytest.raises(ChildTimeout):
                child(time.sleep, 1.0, 0.02)
