"""Reads the states of files that other processes may remove at any time."""

import os
from pathlib import Path


def state_of(path: Path) -> os.stat_result | None:
    """Return the state of a file, None if it no longer exists: others may remove it after its folder was listed."""
    try:
        return path.stat()
    except FileNotFoundError:
        return None
