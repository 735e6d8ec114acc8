"""Finds where a Ray of this machine can work: a folder for its sockets and logs, one for its objects.

By itself Ray takes /tmp/ray, or `ray` in the folder that RAY_TMPDIR or TMPDIR names, and ends without a reason where
that can't be used. Imports no Ray; tries each folder by what Ray does there.
"""

import contextlib
import os
import resource
import secrets
import shutil
import socket
import stat
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LONGEST_SOCKET = 103 if sys.platform == "darwin" else 107  # bytes of the whole path of one
SOCKET = "session_2026-12-31_23-59-59_123456_4194304/sockets/plasma_store.10"
OF_LINUX = "TMPDIR"  # Ray reads it there alone
SHARED_MEMORY = Path("/dev/shm")
LEAST_FREE = 64 << 20  # chosen: the folder of a head's session had 9 MB after three jobs
# A raylet with one worker had 90 files open, and Ray started with a limit of 128; more workers need more.
LEAST_OPEN_FILES = 256
LEAST_OBJECTS, MOST_OBJECTS_ON_DISK = 80 << 20, 1 << 30  # bytes; Ray refuses less than 75 MiB
LOGS_TOLD = ("raylet.err", "gcs_server.err", "raylet.out", "gcs_server.out", "dashboard.err", "runtime_env_agent.err")


class NoPlaceForRay(OSError):
    """No folder of this machine can be used by a Ray, or it may not open enough files."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(f"{problem}: {remedy}")
        self.problem, self.remedy = problem, remedy


@dataclass(frozen=True, slots=True)
class RayPlace:
    """Where a Ray works; `objects` is None where shared memory can be used.

    `warnings` say why what the user named, or what is fast, could not be taken.
    """

    folder: Path
    objects: Path | None
    warnings: tuple[str, ...]

    def options(self) -> dict[str, Any]:
        """Return the options of `ray.init`."""
        if self.objects is None:
            return {"_temp_dir": str(self.folder)}
        room = min(MOST_OBJECTS_ON_DISK, shutil.disk_usage(self.objects).free // 2)
        return {
            "_temp_dir": str(self.folder),
            "_plasma_directory": str(self.objects),
            "object_store_memory": max(LEAST_OBJECTS, room),
        }


def find_place(given: Mapping[str, str], shared_memory: Path = SHARED_MEMORY) -> RayPlace:
    """Return where a Ray can work by the variables `given`. Raises NoPlaceForRay."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)  # Ray raises the soft limit to the hard one
    if most != resource.RLIM_INFINITY and most < LEAST_OPEN_FILES:
        raise NoPlaceForRay(
            f"a process may open {most} files", f"Ray needs {LEAST_OPEN_FILES}: raise the hard limit of `ulimit -Hn`"
        )
    passed_over: list[str] = []
    for folder in folders_for_ray(given):
        if problem := why_unusable(folder):
            passed_over.append(problem)
            continue
        named = folder_named(given)
        warnings = [f"{passed_over[0]}: Ray works in {folder}"] if named and folder != named else []
        objects = None
        if sys.platform == "linux" and (problem := why_unwritable(shared_memory)):
            warnings.append(f"{problem}: Ray keeps its objects in {folder}, which is slower")
            objects = folder
        return RayPlace(folder, objects, tuple(warnings))
    raise NoPlaceForRay(
        f"no folder can be used: {'; '.join(passed_over)}",
        f"let RAY_TMPDIR name one of at most {longest_path()} bytes, on a disk with {LEAST_FREE >> 20} MiB free",
    )


def folders_for_ray(given: Mapping[str, str]) -> Iterator[Path]:
    """Yield the folders that a Ray may work in, the first one first: that which Ray itself would take."""
    if named := folder_named(given):
        yield named
    yield Path("/tmp/ray")
    for above in ("/tmp", "/var/tmp"):
        yield Path(above, f"ray-{os.getuid()}")


def folder_named(given: Mapping[str, str]) -> Path | None:
    """Return the folder of Ray that variables name."""
    above = given.get("RAY_TMPDIR") or (given.get(OF_LINUX) if sys.platform == "linux" else None)
    return Path(above).expanduser().absolute() / "ray" if above else None


def longest_path() -> int:
    """Return the bytes that the path of RAY_TMPDIR may have."""
    return LONGEST_SOCKET - len(f"/ray/{SOCKET}")


def why_unusable(folder: Path) -> str:
    """Return why a Ray can't work in a folder, "" if it can; the folder is made."""
    if len(os.fsencode(folder / SOCKET)) > LONGEST_SOCKET:
        return f"{folder} is too long a path for Ray's sockets ({len(os.fsencode(folder))} bytes)"
    try:
        folder.mkdir(mode=0o700, parents=True)
        if folder.name == "ray":  # the name that every Ray of this machine takes: others may make folders beside ours
            folder.chmod(0o1777)
    except FileExistsError:
        pass
    except OSError as error:
        return f"{folder} can't be made ({error.strerror})"
    if problem := why_unwritable(folder):
        return problem
    found = folder.stat()
    if found.st_uid not in (0, os.geteuid()) and not found.st_mode & stat.S_ISVTX:
        return f"{folder} belongs to another account"  # who could replace what lies there
    if (free := shutil.disk_usage(folder).free) < LEAST_FREE:
        return f"{folder} has {free >> 20} MiB free"
    return why_no_socket(folder)


def why_unwritable(folder: Path) -> str:
    """Return why no file can be made in a folder, "" if one can."""
    try:
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(b"\0" * 4096)
            probe.flush()
    except OSError as error:
        return f"{folder} can't be written ({error.strerror})"
    return ""


def why_no_socket(folder: Path) -> str:
    """Return why a Ray can't listen in a folder, "" if it can: some file systems have no sockets."""
    path = folder / secrets.token_hex(8)
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.bind(str(path))
        except OSError as error:
            return f"{folder} takes no sockets ({error.strerror})"
        finally:
            with contextlib.suppress(OSError):
                path.unlink()
    return ""


def first_words(folder: Path, pid: int) -> str:
    """Return the first line of trouble that a Ray said which process `pid` started, "" if none did."""
    with contextlib.suppress(OSError, ValueError):
        newest = max(folder.glob(f"session_2*_{pid}"))
        for log in (newest / "logs" / name for name in LOGS_TOLD):
            lines = log.read_text(errors="replace").splitlines() if log.is_file() else []
            if said := next(filter(None, map(trouble_in, lines)), ""):
                return f"{log.name}: {said[:300]}"
    return ""


def trouble_in(line: str) -> str:
    """Return what a line of a log says, without time and what Ray says of each failed check; "" if it is no trouble.

    Ray's lines begin with `[2026-12-31 23:59:59,123 C 42 42] (raylet) file.cc:7: `, the letter being the severity.
    """
    head, closed, rest = line.partition("] ")
    words = head.split()
    if not (line.startswith("[2") and closed and len(words) > 2):
        return line.strip()
    if words[2] not in ("C", "E", "F"):
        return ""
    return rest.partition("Check failed: ")[2].strip() or rest.partition(": ")[2].strip() or rest.strip()
