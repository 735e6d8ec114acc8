"""kill -9 in every step of one night: the next command goes on with it, and it ends as an undisturbed one."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from kit.nights import Nights

pytestmark = [pytest.mark.exhaustive, pytest.mark.timeout(900)]

STEPS = ["index", "judge", "publish", "forget", "prune", "tidy", "dump", "try restore"]


def test_a_night_that_is_killed_in_each_step_goes_on_to_its_end(jobs, store, tmp_path, monkeypatch):
    monkeypatch.setenv("RAYDEX_HOME", str(tmp_path / "home"))
    nights = Nights(tmp_path, jobs)
    nights()
    (tmp_path / "dumps").mkdir()
    nights.model = "hash:128"
    nights.night |= {"prune": 0, "retention_days": 30, "dump": {"folder": "dumps"}}
    before = 0
    for number in range(len(STEPS)):
        begun = kill_from(number, nights.write())
        assert begun[0] >= before and begun == list(range(begun[0], begun[-1] + 1))  # no step is done again
        before = begun[-1]
    result = nights()
    assert (result.code, result.summary["verdict"]) == (0, "published")
    assert list(result.summary["steps"]) == STEPS and "36 chunks came back" in result.summary["steps"]["try restore"]
    assert [path.name[-10:] for path in (tmp_path / "dumps").iterdir()] == ["-run2.dump"]
    assert [index["state"] for index in store.status("docs")["indexes"]] == ["live"]


def kill_from(number: int, file: Path) -> list[int]:
    """Start a night and kill it once it begins the step of this number or a later one; return those that it began."""
    command = [sys.executable, "-m", "jobs.nightly", str(file)]
    begun: list[int] = []
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as night:
        assert night.stderr
        for line in night.stderr:
            if line.startswith("step "):
                begun.append(STEPS.index(line.removeprefix("step ").strip()))
                if begun[-1] >= number:
                    os.kill(night.pid, signal.SIGKILL)
    assert night.returncode == -signal.SIGKILL
    return begun
