"""A machine that was started a second ago: nothing takes its monotonic clock for one that has run for hours."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
# What reads the clock at intervals: inbox, limits, sessions, keys, the recorder, retrieval, awaited bodies.
DEPENDENT = (
    "tests/unit/serve/test_chat_inbox.py",
    "tests/unit/serve/test_public.py",
    "tests/unit/serve/test_sessions.py",
    "tests/unit/serve/test_keys.py",
    "tests/unit/serve/test_recorder.py",
    "tests/unit/answering/test_retriever.py",
    "tests/unit/serve/test_bodies.py",
)
# A plugin of the inner run: `time.monotonic` begins at 1 s before anything of ours is imported.
PLUGIN = """
import time
_clock, _began = time.monotonic, time.monotonic()
time.monotonic = lambda: _clock() - _began + 1.0
"""


@pytest.mark.slow
def test_what_depends_on_the_clock_works_on_a_machine_that_has_just_started(tmp_path):
    (tmp_path / "young_clock.py").write_text(PLUGIN)
    files = [name for name in DEPENDENT if (ROOT / name).exists()]
    assert files == list(DEPENDENT)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "young_clock", "-p", "no:cacheprovider", *files]
    path = f"{tmp_path}:{ROOT}"
    done = subprocess.run(
        command,
        check=False,
        cwd=ROOT,
        env={"PYTHONPATH": path, "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-4000:]
