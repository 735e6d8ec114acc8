"""Kills processes and waits for the consequences, and simulates a full disk for this process."""

import json
import os
import random
import resource
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def alive(pid: int) -> bool:
    """Return whether the process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def marked(mark: str, command: str = "") -> list[int]:
    """Return the living processes with `mark` (NAME=value) in their environment and `command` in their command line."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if mark.encode() in (entry / "environ").read_bytes().split(b"\0"):
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                if command in line and alive(int(entry.name)):
                    found.append(int(entry.name))
    return found


def kill_9(*pids: int) -> None:
    """Send SIGKILL and wait until all processes are gone."""
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    eventually(lambda: not any(map(alive, pids)), f"{pids} are gone")


def postmaster(home: Path) -> int:
    """Return the pid of the embedded Postgres under `home`."""
    return int((home / "postgres" / "postmaster.pid").read_text().split("\n")[0])


def keeper(home: Path) -> int:
    """Return the pid of the process that owns the embedded Postgres under `home`, its parent."""
    return int(Path(f"/proc/{postmaster(home)}/stat").read_text().rsplit(")", 1)[1].split()[1])


def is_kept(home: Path) -> bool:
    """Return whether the keeper that recorded the URL owns the server. Another keeper would restart it."""
    try:
        return int(json.loads((home / "postgres.json").read_text())["keeper"]) == keeper(home)
    except (OSError, ValueError):
        return False


def keep_down(home: Path, seconds: float) -> None:
    """Kill the embedded Postgres under `home`, and make its keeper restart it only after `seconds`."""
    owner = keeper(home)
    os.kill(owner, signal.SIGSTOP)
    try:
        os.kill(postmaster(home), signal.SIGKILL)
        time.sleep(seconds)
    finally:
        os.kill(owner, signal.SIGCONT)


def eventually(holds: Callable[[], bool], what: str, within_s: float = 120.0) -> float:
    """Wait until `holds` returns true, and return the seconds that it took."""
    began = time.monotonic()
    while not holds():
        assert time.monotonic() - began < within_s, f"not within {within_s:g} s: {what}"
        time.sleep(0.05)
    return time.monotonic() - began


def kill_seed() -> int:
    """Return RAYDEX_KILL_SEED, which repeats the kill times of an earlier run, or a random number."""
    return int(os.environ.get("RAYDEX_KILL_SEED") or random.randrange(10**6))


@contextmanager
def full_disk(after_bytes: int) -> Iterator[None]:
    """Limit every file of this process to that many bytes, so that writing fails as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (after_bytes, hard))  # Python ignores the signal that comes with it
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
