"""Runs functions in a process that can be killed when a call hangs or crashes.

The time limit of a call is in seconds of CPU time, so a busy machine loses no pages. A call that waits for something
else than a CPU is ended after a multiple of that in wall-clock time. The process starts at the first call and handles
one call at a time. It exits when its owner is gone (the pipe closes), and when a call takes too long (by alarms that no
library can catch). It therefore outlives neither a killed owner nor a hanging parser. Independent of pages.
"""

import multiprocessing
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeVar

from pipelines.indexing.reading.cpu_waits import cpu_times

T = TypeVar("T")

# A library's own threads cost such a process more than they help: waking them takes longer than a page's few new words.
_START = """
import os, sys
os.environ |= {"TOKENIZERS_PARALLELISM": "false", "OPENBLAS_NUM_THREADS": "1"}
sys.path.insert(0, sys.argv[2])
from pipelines.indexing.reading.child_process import answer_calls
answer_calls(int(sys.argv[1]), int(sys.argv[3]))
"""
_ROOT = str(Path(__file__).parents[3])
# Limits of waiting; time in which the process is ready and others have the CPUs does not count where the system tells
# it (Linux). A start takes 1 s on an idle machine; a dead process is noticed at once. A call may wait a multiple of its
# CPU limit: with 30 processes on 2 cores, calls took 10 times theirs.
_START_S, _PATIENCE = 300.0, 15
_LOOK_S = 1.0  # between two looks at these times
_ORPHAN_S = 3600.0  # after which a waiting process ends by itself; only one whose owner was killed waits that long


class ChildTimeout(TimeoutError):
    """A call exceeded its time limit. Its process has ended, and the next call starts a new one."""


class ChildCrash(RuntimeError):
    """The process died during a call: out of memory, or a fault in a library. The next call starts a new one."""


class ChildNotStarted(RuntimeError):
    """The process could not be started, or could not import the function. Other calls would fail as well."""


class Child:
    """Calls functions in a child process. The functions must be picklable.

    `memory` limits the memory that the process may allocate (bytes). Threads may share a Child; their calls queue.
    """

    def __init__(self, memory: int = 2 * 2**30) -> None:
        self._memory = memory
        self._function: Callable[..., Any] | None = None  # the function that the process has loaded
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe: Connection | None = None
        self._closed = False

    def __del__(self) -> None:
        self.close()

    def __call__(self, function: Callable[[Any], T], argument: object, timeout_s: float) -> T:
        """Return the function's result. `timeout_s` limits its CPU time.

        Raises the function's own exceptions, ChildTimeout, ChildCrash and ChildNotStarted.
        """
        with self._lock:
            pipe = self._start(function)  # not counted in the limit, which applies to the call only
            try:
                pipe.send((argument, timeout_s))
                if not self._answers(pipe, timeout_s * _PATIENCE):
                    raise EOFError
                result, error = pipe.recv()
            except (EOFError, OSError) as gone:
                raise self._explain_end(timeout_s) from gone
        if error is not None:
            raise error
        return result

    @property
    def pid(self) -> int:
        """The id of the process, 0 if none is running."""
        process = self._process
        return process.pid if process is not None else 0

    def close(self) -> None:
        """End the process, also one that another thread is starting. Further calls raise ChildNotStarted."""
        self._closed = True
        self._end()

    def _end(self) -> None:
        pipe, process = getattr(self, "_pipe", None), getattr(self, "_process", None)
        self._pipe = self._process = self._function = None
        if pipe is not None:
            pipe.close()
        if process is not None:
            with suppress(OSError):
                process.kill()
            process.wait()

    def _start(self, function: Callable[..., Any]) -> Connection:
        """Return the pipe of a process that is ready to call `function`."""
        pipe, process = self._pipe, self._process
        if pipe is None or process is None or process.poll() is not None:
            self._end()
            pipe, theirs = multiprocessing.Pipe()
            with theirs:
                handle = theirs.fileno()
                command = [sys.executable, "-c", _START, str(handle), _ROOT, str(self._memory)]
                process = subprocess.Popen(command, pass_fds=[handle], stdin=subprocess.DEVNULL)
            self._pipe, self._process = pipe, process
        if self._closed:
            self._end()
            raise ChildNotStarted("the process has been closed")
        if function is not self._function:
            self._hand_over(function, pipe, process)
        return pipe

    def _hand_over(self, function: Callable[..., Any], pipe: Connection, process: "subprocess.Popen[bytes]") -> None:
        try:
            pipe.send((function,))
            if not self._answers(pipe, _START_S):
                raise EOFError
            pipe.recv()  # confirms the import
        except (EOFError, OSError) as error:
            code = process.poll()
            self._end()
            said = f"{sys.executable} did not start within {_START_S:g} s (exit status {code})"
            raise ChildNotStarted(said) from error
        self._function = function

    def _answers(self, pipe: Connection, limit_s: float) -> bool:
        """Return whether the process answers, or ends, within a time, in which its waiting for a CPU does not count."""
        if pipe.poll(min(limit_s, _LOOK_S)):  # nearly always; looking at the times takes a while
            return True
        began, waited = time.monotonic() - _LOOK_S, self._waited_s()
        while (left := limit_s - (time.monotonic() - began) + self._waited_s() - waited) > 0:
            if pipe.poll(min(left, _LOOK_S)):
                return True
        return False

    def _waited_s(self) -> float:
        return cpu_times(self.pid)[1] if self.pid else 0.0

    def _explain_end(self, timeout_s: float) -> Exception:
        process = self._process
        with suppress(subprocess.TimeoutExpired):
            if process is not None:
                process.wait(0.05)  # it has either ended itself or still hangs
        code = process.poll() if process is not None else None
        self._end()
        if code in (None, -signal.SIGALRM, -signal.SIGPROF):
            return ChildTimeout(f"no result within {timeout_s:g} s of CPU time")
        return ChildCrash(f"the process died ({_reason(code or 0)})")


def _reason(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"exit status {code}"


def answer_calls(handle: int, memory: int) -> None:
    """Answer calls from the pipe `handle` until it closes. Runs in the child process."""
    for alarm in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(alarm, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the owner acts on Ctrl-C and closes the pipe
    resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(EOFError, OSError), Connection(handle) as pipe:
        (function,) = pipe.recv()  # the owner sends a function before the first call
        pipe.send(None)
        while True:
            match pipe.recv():
                case (function,):
                    pipe.send(None)
                case argument, timeout_s:
                    _set_alarms(timeout_s)
                    answer = _answer(function, argument)
                    _set_alarms(0)
                    pipe.send(answer)


def _set_alarms(timeout_s: float) -> None:
    """End this process after `timeout_s` of CPU time, or very long in wall-clock time; 0 means never."""
    signal.setitimer(signal.ITIMER_PROF, timeout_s)
    signal.setitimer(signal.ITIMER_REAL, max(_ORPHAN_S, _PATIENCE * timeout_s) if timeout_s else 0)


def _answer(function: Callable[..., Any], argument: object) -> tuple[Any, Exception | None]:
    try:
        return function(argument), None
    except Exception as error:
        error.__traceback__ = error.__cause__ = error.__context__ = None
        return None, error
