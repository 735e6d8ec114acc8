"""Sets the monotonic clock back to one second after boot, because no code may assume an older clock.

Import it before any module that uses `time.monotonic` as a default.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

_clock = time.monotonic
_set = SimpleNamespace(back_s=0.0)


def monotonic() -> float:
    return _clock() - _set.back_s


monotonic.__module__, time.monotonic = "time", monotonic  # so that it is pickled as the function that it replaces


@contextmanager
def just_started() -> Iterator[None]:
    """Make the clock start at one second."""
    _set.back_s = _clock() - 1.0
    yield
    _set.back_s = 0.0
