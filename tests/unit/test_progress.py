"""Progress is one changing line on a terminal and plain lines elsewhere, and says when the end is expected."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from pipelines.progress import describe_seconds, seconds_left

ROOT = Path(__file__).parents[2]
SCRIPT = """
from jobs.cli import Messages
from pipelines.progress import Passing
with Messages() as tell:
    tell(Passing("1 of 3 pages")); tell(Passing("2 of 3 pages")); tell("warning: slow"); tell(Passing("3 of 3 pages"))
"""
CLEAR = "\r\x1b[2K"


def test_on_a_terminal_passing_messages_share_a_line_and_the_last_one_is_cleared():
    ours, theirs = pty.openpty()
    subprocess.run([sys.executable, "-c", SCRIPT], cwd=ROOT, stderr=theirs, check=True)
    os.close(theirs)
    shown = os.read(ours, 10_000).decode()
    os.close(ours)
    assert shown == (f"{CLEAR}1 of 3 pages{CLEAR}2 of 3 pages{CLEAR}warning: slow\r\n{CLEAR}3 of 3 pages{CLEAR}")


def test_elsewhere_messages_are_lines_and_passing_ones_are_rare():
    done = subprocess.run([sys.executable, "-c", SCRIPT], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stderr == "warning: slow\n"


@pytest.mark.parametrize(
    ("done", "total", "left"), [(0, 100, None), (1, 100, None), (2, 100, 490.0), (50, 100, 10.0), (100, 100, 0.0)]
)
def test_the_rest_takes_as_long_as_the_pace_so_far(done, total, left):
    assert seconds_left(done, total, 10.0) == left


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.2, "1 s"), (99, "99 s"), (100, "2 min"), (3599, "1 h 0 min"), (7800, "2 h 10 min")]
)
def test_durations_are_said_as_a_person_says_them(seconds, words):
    assert describe_seconds(seconds) == words
