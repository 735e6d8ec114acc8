"""On a machine that has just started, no code assumes that the monotonic clock has run for hours."""

import inspect
import pickle
import time

from serve.guard.keys import KeyCache


def test_unit_tests_run_on_a_clock_that_just_started():
    """tests/unit/conftest.py sets this clock for all of them, including defaults that were bound at import."""
    assert 1.0 <= time.monotonic() < 60.0
    assert inspect.signature(KeyCache).parameters["clock"].default is time.monotonic
    assert pickle.loads(pickle.dumps(time.monotonic)) is time.monotonic
