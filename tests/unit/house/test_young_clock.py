"""A machine that was started a second ago: nothing takes its monotonic clock for one that has run for hours."""

import inspect
import pickle
import time

from serve.guard.keys import KeyCache


def test_unit_tests_run_on_a_clock_that_just_started():
    """All of them, as tests/unit/conftest.py sets it; a default that was bound at import is that clock too."""
    assert 1.0 <= time.monotonic() < 60.0
    assert inspect.signature(KeyCache).parameters["clock"].default is time.monotonic
    assert pickle.loads(pickle.dumps(time.monotonic)) is time.monotonic
