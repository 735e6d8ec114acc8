"""Locks files, and reads the states of files, that other processes use or remove at any time."""

import fcntl
import os
from pathlib import Path
from typing import IO, Any


def try_lock(file: IO[Any], *, shared: bool = False) -> bool:
    """Take the lock of `file`, or a shared one; return False if others have it.

    The kernel releases it when the file is closed or its process ends.
    """
    try:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def state_of(path: Path) -> os.stat_result | None:
    """Return the state of a file, None if it no longer exists: others may remove it after its folder was listed."""
    try:
        return path.stat()
    except FileNotFoundError:
        return None
