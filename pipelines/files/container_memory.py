"""Reads the memory limit of this machine's container from control groups, version 2 or 1."""

from pathlib import Path
from typing import NamedTuple

CGROUP = Path("/sys/fs/cgroup")
# The files with the limit and the use of a container: version 2, and version 1.
_FILES = (("memory.max", "memory.current"), ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"))


class ContainerMemory(NamedTuple):
    """The bytes that a container may use, and how many of them are left."""

    limit: int
    left: int


def container_memory(cgroup: Path = CGROUP) -> ContainerMemory | None:
    """Return the lowest memory limit of the container, None if there is no limit.

    Version 1 writes a number near 2**63 for no limit: callers compare the limit with the machine's memory.
    """
    limits = [(_number(cgroup / most), _number(cgroup / used)) for most, used in _FILES]
    found = [ContainerMemory(most, max(0, most - (used or 0))) for most, used in limits if most is not None]
    return min(found, default=None)


def _number(path: Path) -> int | None:
    """Return the number in a file, None if there is no such file or it contains "max"."""
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None
