"""kill -9 in every step of one night: the next command resumes it, and it ends like an undisturbed night."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from kit.nights import Nights
from kit.tiny_model import tiny_model

pytestmark = [pytest.mark.exhaustive, pytest.mark.timeout(900)]

STEPS = ["index", "judge", "publish", "forget", "prune", "tidy", "dump", "try restore"]


def test_night_killed_in_any_step_resumes_and_finishes(jobs, store, tmp_path, monkeypatch):
    monkeypatch.setenv("RAYDEX_HOME", str(tmp_path / "home"))
    nights = Nights(tmp_path, jobs)
    nights()
    (tmp_path / "dumps").mkdir()
    nights.model = "hash:128"
    nights.night |= {"prune": 0, "retention_days": 30, "dump": {"folder": "dumps"}}
    before = 0
    for number in range(len(STEPS)):
        begun = kill_from(number, nights.write())
        assert begun[0] >= before and begun == list(range(begun[0], begun[-1] + 1))  # no step is repeated
        before = begun[-1]
    result = nights()
    assert (result.code, result.summary["verdict"]) == (0, "published")
    assert list(result.summary["steps"]) == STEPS and "36 chunks came back" in result.summary["steps"]["try restore"]
    assert [path.name[-10:] for path in (tmp_path / "dumps").iterdir()] == ["-run2.dump"]
    assert not [path for path in (tmp_path / "home").iterdir() if "scratch" in path.name or "dump" in path.name]
    assert [index["state"] for index in store.status("docs")["indexes"]] == ["live"]


def kill_from(number: int, file: Path) -> list[int]:
    """Start a night and kill it once it begins this step or a later one, and return the steps that it began."""
    begun: list[int] = []

    def is_there(line: str) -> bool:
        if line.startswith("step "):
            begun.append(STEPS.index(line.removeprefix("step ").strip()))
        return bool(begun) and begun[-1] >= number

    kill_when(is_there, file)
    return begun


def kill_when(is_there: Callable[[str], bool], file: Path) -> None:
    """Start a night and kill it once it writes a matching line."""
    command = [sys.executable, "-m", "jobs.nightly", str(file)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as night:
        assert night.stderr
        for line in night.stderr:
            if is_there(line):
                os.kill(night.pid, signal.SIGKILL)
    assert night.returncode == -signal.SIGKILL


@pytest.mark.parametrize("old", [False, True])
def test_night_killed_while_training_resumes_and_keeps_the_new_model(jobs, store, tmp_path, monkeypatch, old):
    pytest.importorskip("accelerate")
    pytest.importorskip("datasets")
    monkeypatch.setenv("RAYDEX_HOME", str(tmp_path / "home"))
    nights = Nights(tmp_path, jobs)
    plan = {"model": str(tiny_model(tmp_path)), "device": "cpu", "questions": 6, "held_out": 4, "negatives": 2,
            "depth": 5, "k": 2, "max_tokens": 32}  # fmt: skip
    train = {"kind": "reranker", "dataset": "rows.jsonl", "output": "models/mine", "plan": plan, "accept": True}
    nights.night |= {"train": [train | {"days": 0}], "may_fall": {"mrr": 1}}
    models, before = tmp_path / "models", ""
    if old:
        assert nights().code == 0
        before = (models / "mine" / "card.json").read_text()
    for said in ("step train models/mine", "questions mined", "steps; judging", "asking the candidate index"):
        kill_when(lambda line, said=said: said in line, nights.write())
        assert (models / "mine").exists() == old and (not old or (models / "mine" / "card.json").read_text() == before)
    assert {path.name for path in models.iterdir()} == {"mine.new", *(["mine"] if old else [])}
    result = nights()
    assert result.code == 0 and result.summary["steps"]["train models/mine"].endswith("is new"), result.messages
    assert "continuing the night of run" in result.messages and "step index" not in result.messages
    assert [path.name for path in models.iterdir()] == ["mine"]
    assert (models / "mine" / "card.json").read_text() != before
