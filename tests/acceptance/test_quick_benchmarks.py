"""Every benchmark still runs: each with little data, in a process of its own."""

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.__main__ import BENCHMARKS, SKIPPED, Benchmark

pytestmark = [pytest.mark.exhaustive, pytest.mark.timeout(3_600)]

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("benchmark", BENCHMARKS, ids=lambda one: one.table)
def test_quick_benchmark_runs_to_its_end(benchmark: Benchmark) -> None:
    command = [sys.executable, "-m", f"benchmarks.{benchmark.module}", *benchmark.flags, "--quick"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    lines = ended.stderr.strip().splitlines()
    if ended.returncode == SKIPPED:
        pytest.skip(lines[-1])
    assert ended.returncode == 0 and "Measured by" in ended.stdout, "\n".join(lines[-40:])
