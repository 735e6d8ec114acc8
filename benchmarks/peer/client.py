"""Starts a library in its own process and environment, calls it over pipes, and measures its memory."""

import contextlib
import json
import subprocess
import sys
import sysconfig
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

import psutil

HERE = Path(__file__).parent
SAMPLE_S = 0.5


class WorkerFailed(RuntimeError):
    """A worker died, or a call to it failed. The message has its traceback or its last lines."""


class Worker:
    """A script in this folder that runs under `python` and answers calls (see worker.py)."""

    def __init__(self, python: Path, script: Path) -> None:
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115
        command = [str(python), "-W", "ignore", str(script)]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": self._log, "text": True}
        self._process = subprocess.Popen(command, **pipes)

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.stdin.close()  # type: ignore[union-attr]
        if error is not None:
            self._process.kill()
        self._process.wait()
        self._process.stdout.close()  # type: ignore[union-attr]
        self._log.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    def call(self, do: str, **arguments: Any) -> Any:
        """Return the result of a call. Raises WorkerFailed."""
        with contextlib.suppress(BrokenPipeError):  # its log says why
            print(json.dumps({"do": do, **arguments}), file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()  # type: ignore[union-attr]
        if not line:
            self._log.seek(0)
            raise WorkerFailed("".join(self._log.readlines()[-20:]))
        reply = json.loads(line)
        if "error" in reply:
            raise WorkerFailed(reply["error"])
        return reply["result"]

    def memory(self) -> float:
        """Return its current memory in MB."""
        return tree_memory(self.pid)


def make_environment(folder: Path, requirements: Path) -> Path:
    """Return the Python of an environment with `requirements`, created once.

    The environment also sees the packages installed here, so that all libraries use the same torch and
    sentence-transformers. Packages that a requirement needs in another version are installed in the environment and
    found first. It is made again if the requirements change, or if the packages here are in another folder. Raises
    CalledProcessError.
    """
    python, stamp, shared = folder / "bin" / "python", folder / "made-of.txt", sysconfig.get_path("purelib")
    wanted = f"# with the packages in {shared}\n{requirements.read_text(encoding='utf-8')}"
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted:
        print(f"installing {requirements.stem} into {folder} (a minute, once)", file=sys.stderr, flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        (site,) = folder.glob("lib/python*/site-packages")
        (site / "shared.pth").write_text(f"{shared}\n", encoding="utf-8")
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", str(requirements)]
        subprocess.run(pip, check=True, capture_output=True, text=True)
        stamp.write_text(wanted, encoding="utf-8")
    return python


def versions_of(requirements: Path) -> list[str]:
    """Return the packages of a file of requirements as `name version`."""
    lines = requirements.read_text(encoding="utf-8").splitlines()
    return [line.replace("==", " ") for line in lines if "==" in line]


def tree_memory(pid: int) -> float:
    """Return the MB of a process and its descendants. Shared memory counts once (PSS)."""
    total = 0
    for process in [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]:
        try:
            total += process.memory_full_info().pss
        except (psutil.Error, OSError):  # it has ended
            continue
    return total / 2**20


@contextlib.contextmanager
def peak_memory(pid: int) -> Iterator[list[float]]:
    """Sample `tree_memory` during the block, and yield the list of samples."""
    samples: list[float] = []
    over = threading.Event()

    def sample() -> None:
        while not over.wait(SAMPLE_S):
            try:
                samples.append(tree_memory(pid))
            except psutil.Error:
                return

    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    try:
        yield samples
    finally:
        over.set()
        thread.join()
