"""Checks this machine: disk, memory and shared memory, and the port of the service."""

import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil

from pipelines.diagnosis.check import Finding, failed, fine, warning
from pipelines.files.container_memory import CGROUP, container_memory
from pipelines.ray_place import why_unwritable

GIB = 1 << 30
# An index of 13,000 chunks of 384 dimensions takes 0.1 GiB with its pages, a model's export 0.1 GiB, Ray's logs some.
SMALL_DISK, NO_DISK = 2 * GIB, GIB // 4
RAYS_LIMIT = 0.95  # Ray 2.60 stores no object on a disk that is fuller
# The peak of `raydex demo` with the embedded Postgres, Ray and one embedding model, on this project's documentation.
DEMO_MEMORY = 3 * GIB
SMALL_SHM = GIB  # if smaller, the embedded Postgres and Ray's object store don't use shared memory


def check_disk(home: Path) -> Iterator[Finding]:
    """Check the free space for the data and for Ray."""
    place = next(folder for folder in (home, *home.parents) if folder.exists())
    free = shutil.disk_usage(place).free
    said = f"{free / GIB:.1f} GiB free for {home}"
    if not os.access(place, os.W_OK):
        yield failed(f"{place} cannot be written", "choose a folder of your own: `export RAYDEX_HOME=/path`")
    elif free < NO_DISK:
        yield failed(said, "free space, or name a folder on another disk: `export RAYDEX_HOME=/path`")
    elif free < SMALL_DISK:
        yield warning(said, "a large site needs more: free space, or `raydex prune` deletes retired indexes")
    else:
        yield fine(said)
    temporary = Path(tempfile.gettempdir())
    usage = shutil.disk_usage(temporary)
    if usage.used / usage.total > RAYS_LIMIT:
        share = f"{usage.used / usage.total:.0%}"
        yield warning(f"the disk of {temporary} is {share} full: Ray stores nothing beyond 95%", "free space there")


def check_memory(here: int | None = None, cgroup: Path = CGROUP) -> Iterator[Finding]:
    """Check the memory; `here` are the bytes available on this machine without swapping (None: measure)."""
    here = psutil.virtual_memory().available if here is None else here
    limit = container_memory(cgroup)
    free = here if limit is None else min(here, limit.left)
    said = f"{free / GIB:.1f} GiB of memory available"
    if free < DEMO_MEMORY:
        yield warning(said, f"a run with Ray and a model needs up to {DEMO_MEMORY / GIB:.0f} GiB: end other programs")
    else:
        yield fine(said)


def check_shared_memory(folder: Path = Path("/dev/shm")) -> Iterator[Finding]:
    """Check the size of shared memory, which is small in containers."""
    if folder.exists():
        size = shutil.disk_usage(folder).total
        if problem := why_unwritable(folder):
            yield warning(
                f"{problem}: Ray keeps its objects on disk instead, which is slower",
                f"`mount -o remount,rw,mode=1777 {folder}` as root",
            )
        elif size < SMALL_SHM:
            yield warning(
                f"{folder} has {size / GIB:.2f} GiB: Ray keeps its objects on disk instead, which is slower",
                "start the container with `--shm-size=2g`",
            )
        else:
            yield fine(f"{folder} has {size / GIB:.1f} GiB")


def check_port(port: int, services: list[str]) -> Iterator[Finding]:
    """Check whether the service runs, or could run."""
    if services:
        yield fine(f"`raydex serve` runs at {', '.join(services)}")
        return
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            other = f"`raydex serve --port {port + 1 if port < 65_535 else 8000}` uses another port"
            yield warning(f"port {port} cannot be used: {error.strerror or error}", other)
            return
    yield fine(f"`raydex serve` is not running; port {port} is free")
