"""Finds where Ray can work on this machine: a folder for sockets and logs, and one for its objects.

By default, Ray uses /tmp/ray, or the folder `ray` under RAY_TMPDIR or TMPDIR. If that can't be used, Ray ends without a
reason. This module does not import Ray. It tests each folder by doing what Ray does there.
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

from pipelines.text.counts import counted

LONGEST_SOCKET = 103 if sys.platform == "darwin" else 107  # bytes of a socket's whole path
SOCKET = "session_2026-12-31_23-59-59_123456_4194304/sockets/plasma_store.10"
OF_LINUX = "TMPDIR"  # Ray reads it on Linux only
SHARED_MEMORY = Path("/dev/shm")
LEAST_FREE = 64 << 20  # chosen: a head's session folder had 9 MB after three jobs
# A raylet with one worker had 90 open files, and Ray started with a limit of 128; more workers need more.
LEAST_OPEN_FILES = 256
LEAST_OBJECTS, MOST_OBJECTS_ON_DISK = 80 << 20, 1 << 30  # bytes; Ray refuses less than 75 MiB
LOGS_TOLD = ("raylet.err", "gcs_server.err", "raylet.out", "gcs_server.out", "dashboard.err", "runtime_env_agent.err")


class NoPlaceForRay(OSError):
    """Ray can use no folder of this machine, or its processes may not open enough files."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(f"{problem}: {remedy}")
        self.problem, self.remedy = problem, remedy


@dataclass(frozen=True, slots=True)
class RayPlace:
    """The folder where Ray works; `objects` is None if shared memory can be used.

    `warnings` say why the folder that the user named, or shared memory, could not be used.
    """

    folder: Path
    objects: Path | None
    warnings: tuple[str, ...]

    def options(self) -> dict[str, Any]:
        """Return the options for `ray.init`."""
        if self.objects is None:
            return {"_temp_dir": str(self.folder)}
        room = min(MOST_OBJECTS_ON_DISK, shutil.disk_usage(self.objects).free // 2)
        return {
            "_temp_dir": str(self.folder),
            "_plasma_directory": str(self.objects),
            "object_store_memory": max(LEAST_OBJECTS, room),
        }


def find_place(given: Mapping[str, str], shared_memory: Path = SHARED_MEMORY) -> RayPlace:
    """Return where Ray can work, given the environment variables `given`. Raises NoPlaceForRay."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)  # Ray raises the soft limit to the hard one
    if most != resource.RLIM_INFINITY and most < LEAST_OPEN_FILES:
        raise NoPlaceForRay(
            f"a process may open {counted(most, 'file')}",
            f"Ray needs {LEAST_OPEN_FILES}: raise the hard limit of `ulimit -Hn`",
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
        f"let RAY_TMPDIR name one of at most {counted(longest_path(), 'byte')}, on a disk with {LEAST_FREE >> 20} "
        "MiB free",
    )


def folders_for_ray(given: Mapping[str, str]) -> Iterator[Path]:
    """Yield the folders to try, starting with the one that Ray itself would choose."""
    if named := folder_named(given):
        yield named
    yield Path("/tmp/ray")
    for above in ("/tmp", "/var/tmp"):
        yield Path(above, f"ray-{os.getuid()}")


def folder_named(given: Mapping[str, str]) -> Path | None:
    """Return the folder for Ray that the variables name, or None."""
    above = given.get("RAY_TMPDIR") or (given.get(OF_LINUX) if sys.platform == "linux" else None)
    return Path(above).expanduser().absolute() / "ray" if above else None


def longest_path() -> int:
    """Return the most bytes that RAY_TMPDIR's path may have."""
    return LONGEST_SOCKET - len(f"/ray/{SOCKET}")


def why_unusable(folder: Path) -> str:
    """Return why Ray can't work in a folder, "" if it can. Creates the folder."""
    if len(os.fsencode(folder / SOCKET)) > LONGEST_SOCKET:
        return f"{folder} is too long a path for Ray's sockets ({counted(len(os.fsencode(folder)), 'byte')})"
    try:
        folder.mkdir(mode=0o700, parents=True)
        # every Ray on this machine uses this name, so other accounts may create folders in it too
        if folder.name == "ray":
            folder.chmod(0o1777)
    except FileExistsError:
        pass
    except OSError as error:
        return f"{folder} can't be made ({error.strerror})"
    if problem := why_unwritable(folder):
        return problem
    found = folder.stat()
    if found.st_uid not in (0, os.geteuid()) and not found.st_mode & stat.S_ISVTX:
        return f"{folder} belongs to another account"  # that account could replace the files there
    if (free := shutil.disk_usage(folder).free) < LEAST_FREE:
        return f"{folder} has {free >> 20} MiB free"
    return why_no_socket(folder)


def why_unwritable(folder: Path) -> str:
    """Return why no file can be created in a folder, "" if one can."""
    try:
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(b"\0" * 4096)
            probe.flush()
    except OSError as error:
        return f"{folder} can't be written ({error.strerror})"
    return ""


def why_no_socket(folder: Path) -> str:
    """Return why Ray can't listen on a socket in a folder, "" if it can; some file systems have no sockets."""
    path = folder / secrets.token_hex(8)
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.bind(str(path))
        except OSError as error:
            return f"{folder} doesn't support sockets ({error.strerror})"
        finally:
            with contextlib.suppress(OSError):
                path.unlink()
    return ""


def first_words(folder: Path, pid: int) -> str:
    """Return the first problem in the logs of the Ray that process `pid` started, "" if there is none."""
    with contextlib.suppress(OSError, ValueError):
        newest = max(folder.glob(f"session_2*_{pid}"))
        for log in (newest / "logs" / name for name in LOGS_TOLD):
            lines = log.read_text(errors="replace").splitlines() if log.is_file() else []
            if said := next(filter(None, map(trouble_in, lines)), ""):
                return f"{log.name}: {said[:300]}"
    return ""


def trouble_in(line: str) -> str:
    """Return the message of a log line, without its time and Ray's prefix for failed checks; "" if it reports no
    problem.

    Ray's lines begin with `[2026-12-31 23:59:59,123 C 42 42] (raylet) file.cc:7: `; the letter is the severity.
    """
    head, closed, rest = line.partition("] ")
    words = head.split()
    if not (line.startswith("[2") and closed and len(words) > 2):
        return line.strip()
    if words[2] not in ("C", "E", "F"):
        return ""
    return rest.partition("Check failed: ")[2].strip() or rest.partition(": ")[2].strip() or rest.strip()
