"""Sets the monotonic clock back, as on a machine that was started a second ago: nothing may take it for hours old.

Import it before anything that takes `time.monotonic` as a default.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

_clock = time.monotonic
_set = SimpleNamespace(back_s=0.0)


def monotonic() -> float:
    return _clock() - _set.back_s


monotonic.__module__, time.monotonic = "time", monotonic  # so that it is pickled as what it stands for


@contextmanager
def just_started() -> Iterator[None]:
    """Let the clock say one second at first."""
    _set.back_s = _clock() - 1.0
    yield
    _set.back_s = 0.0
