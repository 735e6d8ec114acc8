"""A function in a process of its own that can be killed: what hangs or crashes costs its time limit, no more.

Knows nothing of pages. The process is started at the first call and answers one call after another. It ends itself
when its owner is gone (the pipe closes) and when a call takes too long (an alarm that no library can catch), so it
outlives neither a killed owner nor a hanging parser.
"""

import multiprocessing
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")

_START = (
    "import sys; sys.path.insert(0, sys.argv[2]); "
    "from pipelines.indexing.reading.subprocess import serve; serve(int(sys.argv[1]), int(sys.argv[3]))"
)
_ROOT = str(Path(__file__).parents[3])
_START_S = 60.0  # a loaded machine needs seconds to start Python and import a parser; not part of a call's limit
_OWN_SHARE = 0.9  # of a call's limit, after which the child ends itself: its owner need not wait the whole limit


class ChildTimeout(TimeoutError):
    """A call took longer than its limit; its process is ended and the next call gets a new one."""


class ChildCrash(RuntimeError):
    """The process died in a call: out of memory, or a fault in a library. The next call gets a new one."""


class ChildNotStarted(RuntimeError):
    """No process could be started, or it could not import the function: no call's fault, and no call will do better."""


class Child:
    """Calls one function, module-level and picklable, in a child process.

    `memory` bounds what the process may allocate (bytes). Threads may share a Child, their calls queue. It pickles
    as a Child that is not started.
    """

    def __init__(self, function: Callable[..., T], *, memory: int = 2 * 2**30) -> None:
        self._function = function
        self._memory = memory
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe: Connection | None = None

    def __reduce__(self) -> tuple[Callable[..., "Child"], tuple[Any, ...]]:
        return _unpickled, (self._function, self._memory)

    def __del__(self) -> None:
        self.close()

    def __call__(self, argument: object, timeout_s: float) -> Any:
        """The function's result; raises what it raises, ChildTimeout after `timeout_s` seconds, ChildCrash,
        or ChildNotStarted."""
        with self._lock:
            pipe = self._running()  # may take longer than the limit, which is the call's alone
            try:
                pipe.send((argument, timeout_s))
                if not pipe.poll(timeout_s):
                    raise EOFError
                result, error = pipe.recv()
            except (EOFError, OSError) as gone:
                raise self._ended(timeout_s) from gone
        if error is not None:
            raise error
        return result

    def close(self) -> None:
        """Ends the process, if one runs."""
        pipe, process = getattr(self, "_pipe", None), getattr(self, "_process", None)
        self._pipe = self._process = None
        if pipe is not None:
            pipe.close()
        if process is not None:
            with suppress(OSError):
                process.kill()
            process.wait()

    def _running(self) -> Connection:
        if self._pipe is not None and self._process is not None and self._process.poll() is None:
            return self._pipe
        self.close()
        self._pipe, theirs = multiprocessing.Pipe()
        with theirs:
            handle = theirs.fileno()
            command = [sys.executable, "-c", _START, str(handle), _ROOT, str(self._memory)]
            self._process = subprocess.Popen(command, pass_fds=[handle], stdin=subprocess.DEVNULL)
        try:
            self._pipe.send(self._function)
            if not self._pipe.poll(_START_S):
                raise EOFError
            self._pipe.recv()  # its word that it is ready
        except (EOFError, OSError) as error:
            code = self._process.poll()
            self.close()
            raise ChildNotStarted(f"{command[0]} did not start within {_START_S:g} s (exit status {code})") from error
        return self._pipe

    def _ended(self, timeout_s: float) -> Exception:
        process = self._process
        with suppress(subprocess.TimeoutExpired):
            if process is not None:
                process.wait(0.05)  # dead by its own hand, or hanging still
        code = process.poll() if process is not None else None
        self.close()
        if code in (None, -signal.SIGALRM):
            return ChildTimeout(f"no result within {timeout_s:g} s")
        return ChildCrash(f"the process died ({_reason(code or 0)})")


def _reason(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"exit status {code}"


def _unpickled(function: Callable[..., Any], memory: int) -> Child:
    return Child(function, memory=memory)


def serve(handle: int, memory: int) -> None:
    """The child's side: answers calls from the pipe `handle` until it closes."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the owner's to act on, and closes the pipe
    resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(EOFError, OSError), Connection(handle) as pipe:
        function = pipe.recv()
        pipe.send(None)
        while True:
            argument, timeout_s = pipe.recv()
            signal.setitimer(signal.ITIMER_REAL, _OWN_SHARE * timeout_s)
            answer = _answer(function, argument)
            signal.setitimer(signal.ITIMER_REAL, 0)
            pipe.send(answer)


def _answer(function: Callable[..., Any], argument: object) -> tuple[Any, Exception | None]:
    try:
        return function(argument), None
    except Exception as error:
        error.__traceback__ = error.__cause__ = error.__context__ = None
        return None, error
