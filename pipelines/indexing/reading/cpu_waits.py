"""Tells how long processes are ready to run while others use the CPUs. Only Linux counts this."""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

# A process starves if it waits this many times as long as it runs.
STARVED = 4.0


def cpu_times(pid: int) -> tuple[float, float]:
    """Return how many seconds the threads of a process have run, and waited for a CPU; zeros if that is not known."""
    ran = waited = 0
    for times in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with suppress(OSError, ValueError):
            run_ns, wait_ns, *_ = map(int, times.read_text().split())
            ran, waited = ran + run_ns, waited + wait_ns
    return ran / 1e9, waited / 1e9


class CpuWaits:
    """Watches whether processes get a CPU; `pids` returns their ids, by default this process's."""

    def __init__(self, pids: Callable[[], Sequence[int]] = lambda: [os.getpid()]) -> None:
        self._pids = pids
        self._before = self._times()

    def starves(self) -> bool:
        """Return whether the processes mostly waited for a CPU since the last call, or since the start."""
        before, self._before = self._before, self._times()
        known = before.keys() & self._before.keys()
        ran, waited = (sum(self._before[pid][n] - before[pid][n] for pid in known) for n in (0, 1))
        return waited > STARVED * ran and waited > 0

    def _times(self) -> dict[int, tuple[float, float]]:
        return {pid: cpu_times(pid) for pid in self._pids()}
