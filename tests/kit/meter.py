"""Measures the cost of a run while it is running: CPU time and memory of its processes by role.

with Meter({"driver": run.pid, "Postgres": postmaster}, nodes=[...]) as meter:
    ...
meter.cpu_s["crawler"], meter.samples[-1].memory["Postgres"]
"""

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import psutil

LOOK_S = 1.0
# Substring of a command line, and the role of such a process in a run. The first match counts.
ROLES = {
    "crawling.spider": "crawler",
    "EmbedTexts": "embedding",
    "raylet/raylet": "raylet",
    "gcs_server": "GCS",
    "ray::": "tasks",
    "default_worker": "tasks",
}


@dataclass(frozen=True)
class Sample:
    """One sample: seconds since the start, bytes by role (PSS: shared pages count proportionally)."""

    at: float
    memory: Mapping[str, int]


@dataclass
class Meter:
    """Samples the processes below `roots` every second. A process gets its root's role if ROLES has none."""

    roots: Mapping[str, int]
    memory_every_s: float = 10.0
    samples: list[Sample] = field(default_factory=list)
    _cpu: dict[tuple[str, int, float], float] = field(default_factory=dict)
    _over: threading.Event = field(default_factory=threading.Event)

    @property
    def cpu_s(self) -> Counter[str]:
        """CPU seconds so far by role."""
        seconds = Counter[str]()
        for (role, *_), spent in list(self._cpu.items()):
            seconds[role] += spent
        return seconds

    def __enter__(self) -> "Meter":
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        began, last = time.monotonic(), -self.memory_every_s
        before = {
            (process.pid, process.create_time()): sum(process.cpu_times()[:2]) for _, process in self._processes()
        }
        while not self._over.wait(LOOK_S):
            now, memory = time.monotonic() - began, Counter[str]()
            weigh = now - last >= self.memory_every_s
            for role, process in self._processes():
                with contextlib.suppress(psutil.Error):
                    key = (process.pid, process.create_time())
                    self._cpu[role, *key] = sum(process.cpu_times()[:2]) - before.get(key, 0.0)
                    memory[role] += process.memory_full_info().pss if weigh else 0
            if weigh:
                last = now
                self.samples.append(Sample(now, memory))

    def _processes(self) -> Iterator[tuple[str, psutil.Process]]:
        for name, pid in self.roots.items():
            with contextlib.suppress(psutil.Error):
                root = psutil.Process(pid)
                for process in (root, *root.children(recursive=True)):
                    with contextlib.suppress(psutil.Error):
                        line = " ".join(process.cmdline())
                        yield next((role for part, role in ROLES.items() if part in line), name), process
