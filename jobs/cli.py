"""Exit codes, messages and the entry point that all commands share.

A command is a file of this folder with a typed function `run(…) -> exit code`, its `app` (`jobs.flags.command`), and
`main(app)` at its end. Imports nothing slow: `raydex --help` reads this file.
"""

import atexit
import gc
import json
import logging
import math
import os
import runpy
import select
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from jobs.environment import debugging, describe_trouble_at_home, set_variables, wants_json_lines, warn_of_unread
from jobs.terminal import print_result
from pipelines.logs import log_as_json
from pipelines.text.progress import Passing

if TYPE_CHECKING:
    from cyclopts import App

    from pipelines.indexing.collection import Collection
    from pipelines.store import Store
    from pipelines.text.sheets import Sheet

# NEEDS_A_LOOK and NOT_ACCEPTED: the work is done, its result needs a look. BUSY is EX_TEMPFAIL of sysexits.h.
DONE, FAILED, BAD_INPUT, NEEDS_A_LOOK, NOT_ACCEPTED, BUSY = 0, 1, 2, 3, 4, 75
INTERRUPTED, TERMINATED, PIPE_CLOSED = (128 + number for number in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE))
CLEAR_LINE = "\r\x1b[2K"

log = logging.getLogger("jobs")


class BadInput(ValueError):
    """User input can't be used; the message names it, its value and the remedy."""


def read_source(given: str) -> "tuple[Collection | None, Path]":
    """Return the collection in a file and the file's folder; for a NAME, return None and the current folder.

    Files named in a collection file are relative to that folder. Raises InvalidCollection.
    """
    from pipelines.indexing.collection import is_collection_file, load_collection

    file = Path(given)
    return (load_collection(file), file.parent) if is_collection_file(given) else (None, Path())


def stored_collection(store: "Store", name: str) -> "Collection":
    """Return a collection with the settings of its last run. Raises NoSuchCollection, InvalidCollection."""
    from pipelines.indexing.collection import compose_collection

    store.find_collection(name)
    return compose_collection(stored=store.collection_settings(name))


def check_range(flag: str, value: float | None, least: float, most: float = math.inf) -> None:
    """Raise BadInput unless a flag's number is in range; None means that the flag is absent."""
    if value is not None and not least <= value <= most:
        wanted = f"{least} to {most}" if most < math.inf else f"{least} or more"
        raise BadInput(f"{flag} is {value}: it must be {wanted}")


def make_folder(flag: str, folder: Path) -> None:
    """Create a flag's folder before the work that will write there. Raises BadInput."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"{flag}: {folder} can't be made a folder: {error.strerror}") from error


def say(message: str) -> None:
    """Print a message on standard error, or log it if logs are JSON; standard output is only for the result."""
    if log.handlers:
        log.info("%s", message)
    else:
        print(message, file=sys.stderr, flush=True)


class Messages:
    """Prints progress messages on standard error: transient ones on one changing line, if it is a terminal.

    Elsewhere a transient message is a normal line, but at most one per PASSING_S seconds is printed.
    """

    PASSING_S = 10.0

    def __init__(self) -> None:
        self._changing = sys.stderr.isatty()
        self._printed = time.monotonic()

    def __enter__(self) -> "Messages":
        return self

    def __exit__(self, *_: object) -> None:
        self._clear()

    def __call__(self, message: str) -> None:
        if not isinstance(message, Passing):
            self._clear()
            say(message)
        elif self._changing:
            self._clear()
            print(message[: shutil.get_terminal_size().columns - 1], end="", file=sys.stderr, flush=True)
        elif time.monotonic() - self._printed >= self.PASSING_S:
            self._printed = time.monotonic()
            say(message)

    def _clear(self) -> None:
        if self._changing:
            print(CLEAR_LINE, end="", file=sys.stderr, flush=True)


def run_service(module: str, flags: Mapping[str, Any], *words: str) -> int:
    """Run a module of `serve` with `words` as arguments in this process; given flags become its settings RAYDEX_…."""
    set_variables({f"RAYDEX_{name.upper()}": str(value) for name, value in flags.items() if value is not None})
    sys.argv[1:] = words
    runpy.run_module(module, run_name="__main__", alter_sys=True)
    return DONE


def finish(summary: Mapping[str, Any], as_json: bool, result: "Sheet | str") -> None:
    """Print the result: `summary` as one line of JSON if `as_json`, else `result`."""
    print_result(json.dumps(summary, default=str, ensure_ascii=False) if as_json else result)


def main(app: "App", argv: Sequence[str] | None = None) -> NoReturn:
    """Run a command as a process: exit with its code, silently if the reader of its output has gone."""
    logging.getLogger("psycopg.pool").setLevel(logging.ERROR)  # of each attempt to reach a database that is away
    atexit.register(gc.freeze)  # else the interpreter looks for garbage at its end, which takes 0.1 s
    with quiet_when_piped():
        sys.exit(run_job(app, sys.argv[1:] if argv is None else argv))


@contextmanager
def quiet_when_piped() -> Iterator[None]:
    """Exit without a message when standard output is a closed pipe, as with `| head -1`."""
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        output = sys.stdout.fileno()
        poller = select.poll()
        poller.register(output, 0)
        if not poller.poll(0):  # standard output still has a reader, so another pipe broke
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), output)
        sys.exit(PIPE_CLOSED)
    except SystemExit as error:
        if isinstance(error.__context__, BrokenPipeError):  # rich has noticed it, and exits with 1
            sys.exit(PIPE_CLOSED)
        raise


def run_job(app: "App", argv: Sequence[str]) -> int:
    """Read the words and flags in `argv`, do the work and return the exit code.

    An expected error becomes one message; an unexpected one, or any with RAYDEX_DEBUG, also shows its traceback.
    """
    from jobs.flags import read_words

    name = app.name[0]
    try:
        work, given = read_words(app, argv)
        if wants_json_lines():
            log_as_json()
        warn_of_unread()
        return work(*given.args, **given.kwargs) or DONE
    except (KeyboardInterrupt, SystemExit) as error:
        code = INTERRUPTED if isinstance(error, KeyboardInterrupt) else error.code
        if code not in (INTERRUPTED, TERMINATED, signal.SIGTERM):
            raise
        say(f"{name}: interrupted; what was done is kept, the next run continues from there")
        return INTERRUPTED if code == INTERRUPTED else TERMINATED  # Ray's own handler says the signal's number
    except BrokenPipeError:
        raise
    except Exception as error:
        message, expected = describe_error(error)
        code = exit_code(error)
        if debugging() or (code == FAILED and not expected):
            traceback.print_exc()
        say(f"{name}: {message}")
        return code


def exit_code(error: Exception) -> int:
    """Return the exit code for an error of a command."""
    from pipelines.store import CollectionBusy

    if isinstance(error, CollectionBusy):
        return BUSY
    bug = type(error) in (KeyError, IndexError)  # our own errors are subclasses with a message for users
    return BAD_INPUT if isinstance(error, ValueError | LookupError) and not bug else FAILED


def describe_error(error: Exception) -> tuple[str, bool]:
    """Return the message of an error, and whether it is one of our own errors."""
    if at_home := describe_trouble_at_home(error):
        return at_home, True
    if type(error).__name__ == "ValidationError" and type(error).__module__.startswith("pydantic"):
        from pipelines.text.mistakes import describe_mistakes

        return describe_mistakes(error), True  # pyrefly: ignore[bad-argument-type]
    # For errors defined in these packages the message is enough for a user; any other error needs its traceback.
    return str(error), type(error).__module__.startswith(("pipelines.", "jobs.", "__main__"))
