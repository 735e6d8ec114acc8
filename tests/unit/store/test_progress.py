"""Progress is one changing line on a terminal and plain lines elsewhere, with an estimate of the end."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from pipelines.text.progress import WorkPace, describe_seconds

ROOT = Path(__file__).parents[3]
SCRIPT = """
from jobs.cli import Messages
from pipelines.text.progress import Passing
with Messages() as tell:
    tell(Passing("1 of 3 pages")); tell(Passing("2 of 3 pages")); tell("warning: slow"); tell(Passing("3 of 3 pages"))
"""
CLEAR = "\r\x1b[2K"


def test_temporary_messages_share_one_terminal_line_that_is_cleared():
    ours, theirs = pty.openpty()
    subprocess.run([sys.executable, "-c", SCRIPT], cwd=ROOT, stderr=theirs, check=True)
    os.write(theirs, b"END")
    shown = ""
    while not shown.endswith("END"):  # a terminal returns only the available output
        shown += os.read(ours, 10_000).decode()
    os.close(theirs)
    os.close(ours)
    assert shown.removesuffix("END") == (
        f"{CLEAR}1 of 3 pages{CLEAR}2 of 3 pages{CLEAR}warning: slow\r\n{CLEAR}3 of 3 pages{CLEAR}"
    )


def test_messages_elsewhere_are_lines_and_temporary_ones_rare():
    done = subprocess.run([sys.executable, "-c", SCRIPT], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stderr == "warning: slow\n"


def pace(*notes: tuple[float, float]) -> WorkPace:
    noted = WorkPace()
    for at_s, done in notes:
        noted.note(at_s, done)
    return noted


def test_remaining_time_is_estimated_from_the_later_half():
    """The clock may start at any value. A slow or late start does not affect the estimate."""
    for start in (0.0, 1e6):
        steady = pace(*((start + second, 2.0 * second) for second in range(11)))
        assert steady.seconds_left(100) == pytest.approx(40.0)
        late = pace((start, 0), (start + 50, 0), *((start + 50 + second, 2.0 * second) for second in range(11)))
        assert late.seconds_left(100) == pytest.approx(40.0)
        slow = pace(
            *((start + second, 1.0 * second) for second in range(10)),
            *((start + 9 + n, 9.0 + 5 * n) for n in range(1, 13)),
        )
        assert slow.seconds_left(169) == pytest.approx(20.0)


def test_stall_between_two_phases_does_not_distort_the_estimate():
    """50 per second for 20 s, nothing for 8 s, then 50 per second again: the estimate is right within a third."""
    working = [(2.0 * n, 100.0 * n) for n in range(1, 11)]
    stalled = [(20 + 2.0 * n, 1000.0) for n in range(1, 5)]
    left = pace(*working, *stalled, (30.0, 1100.0)).seconds_left(2000)
    assert left is not None and 30 + left == pytest.approx(30 + 18, rel=1 / 3)


def test_no_time_is_estimated_too_early_and_none_is_left_at_the_end():
    assert pace().seconds_left(10) is None
    assert pace((0, 1), (1, 2)).seconds_left(100) is None
    assert pace(*((second, second / 10) for second in range(10))).seconds_left(100) is None
    assert pace((0, 10), (1, 10), (2, 10), (3, 10)).seconds_left(100) is None  # no progress
    assert pace((0, 10)).seconds_left(10) == 0.0


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.2, "1 s"), (99, "99 s"), (100, "2 min"), (3599, "1 h 0 min"), (7800, "2 h 10 min")]
)
def test_durations_are_formatted_for_people(seconds, words):
    assert describe_seconds(seconds) == words


@pytest.mark.parametrize(("seconds", "words"), [(99.4, "99 s"), (99.6, "2 min"), (100, "2 min")])
def test_rounding_does_not_change_the_unit_back(seconds, words):
    assert describe_seconds(seconds) == words
