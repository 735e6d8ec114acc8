"""Locks on open files, which the kernel releases with the process that holds them."""

import fcntl
from typing import IO, Any


def try_lock(file: IO[Any], *, shared: bool = False) -> bool:
    """Take the lock of `file`, or a shared one, until it is closed; return whether it is taken, or others hold it."""
    try:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
