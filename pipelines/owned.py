"""Runs a program in a child process that ends with its owner, even if the owner is killed."""

import os
import select
import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import TextIO


def run_owned(command: Sequence[str]) -> tuple[int, str]:
    """Run a program that calls `end_with_owner`; return its exit code and its standard error."""
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,  # stays open as long as this process lives
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    ) as process:
        assert process.stderr
        try:
            said = process.stderr.read()
            return process.wait(), said
        except BaseException:  # Ctrl-C
            process.kill()
            raise


def end_with_owner(stream: TextIO = sys.stdin) -> None:
    """End this process as soon as its owner closes the other end of `stream`, or is gone. Returns at once."""
    threading.Thread(target=_watch, args=(stream, os.getppid()), daemon=True).start()


def _watch(stream: TextIO, owner: int) -> None:
    while os.getppid() == owner:
        if select.select([stream], [], [], 1.0)[0] and not stream.readline():
            break
    os._exit(1)
