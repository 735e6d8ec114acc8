"""Flags, exit codes, messages and the entry point that all commands share.

A command is a file in this folder with `arguments() -> ArgumentParser`, `run(Namespace) -> exit code`, and
`main(arguments(), run)` at its end. Imports nothing slow: `raydex --help` reads this file.
"""

import argparse
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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeVar, get_args, get_origin

from jobs.environment import debugging, describe_trouble_at_home, set_variables, wants_json_lines, warn_of_unread
from pipelines.logs import log_as_json
from pipelines.text.progress import Passing

if TYPE_CHECKING:
    from pydantic import BaseModel

    from pipelines.indexing.collection import Collection
    from pipelines.store import Store

    M = TypeVar("M", bound=BaseModel)

# NEEDS_A_LOOK and NOT_ACCEPTED: the work is done, but a person should check the result. BUSY is EX_TEMPFAIL of
# sysexits.h.
DONE, FAILED, BAD_INPUT, NEEDS_A_LOOK, NOT_ACCEPTED, BUSY = 0, 1, 2, 3, 4, 75
INTERRUPTED, TERMINATED, PIPE_CLOSED = (128 + number for number in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE))
CLEAR_LINE = "\r\x1b[2K"

Work = Callable[[argparse.Namespace], int]

log = logging.getLogger("jobs")


class BadInput(ValueError):
    """User input can't be used; the message names it, its value and the remedy."""


class CommandParser(argparse.ArgumentParser):
    """Reads arguments and flags in any order: `dump docs --json docs.dump` is `dump --json docs docs.dump`."""

    needs_name = False  # whether NAME or --collection NAME is required, see `add_name`

    def parse_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> Any:  # pyrefly: ignore[bad-override]
        """Return the parsed arguments, or end the process with a message about them."""
        words = sys.argv[1:] if args is None else args
        ordered = any(one.nargs in (argparse.PARSER, argparse.REMAINDER) for one in self._get_positional_actions())
        # After `--` everything is an argument, which argparse respects only when it parses in order.
        read = super().parse_args if ordered or "--" in words else super().parse_intermixed_args
        parsed = read(words, namespace)
        if self.needs_name and parsed.collection is None:
            self.error("the collection is missing: give NAME or --collection NAME")
        return parsed


class _NameOnce(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, namespace: Any, values: Any, _: str | None = None) -> None:
        if namespace.collection is not None:
            parser.error(f"two collections are named, {namespace.collection} and {values}: give one")
        namespace.collection = values


class Words(argparse.Action):
    """Joins the words of a question written without quotes: `raydex ask how do I exclude`."""

    def __call__(self, _: argparse.ArgumentParser, namespace: Any, values: Any, __: str | None = None) -> None:
        setattr(namespace, self.dest, " ".join(values) if isinstance(values, list) else values)


def command(verb: str, doc: str | None) -> CommandParser:
    """Return the parser of `raydex <verb>`, described by the first paragraph of `doc`.

    Its program name is the way it was called, for example `python -m jobs.<file>`.
    """
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    module = spec.name if spec else ""
    as_module = module.startswith("jobs.") and module != "jobs.__main__"
    prog = f"python -m {module}" if as_module else f"raydex {verb}"
    return CommandParser(prog=prog, description=(doc or "").split("\n\n")[0])


def add_json(parser: "argparse.ArgumentParser | argparse._MutuallyExclusiveGroup") -> None:
    """Add --json."""
    parser.add_argument("--json", action="store_true", help="print the result as one JSON object, on the last line")


def add_source(parser: CommandParser) -> None:
    """Add the collection that a command works on: its file, or the NAME of a stored one."""
    parser.needs_name = True
    missing = argparse.SUPPRESS
    parser.add_argument("collection", nargs="?", metavar="NAME|FILE.yaml", action=_NameOnce, default=missing,
                        help="name of the collection, with the settings of its last run; or its file")  # fmt: skip
    parser.add_argument("--collection", metavar="NAME", action=_NameOnce, help="another way to write NAME")


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


def add_collection(parser: argparse.ArgumentParser, help: str) -> None:
    """Add --collection to a command whose argument is something else; `help` explains its default."""
    parser.add_argument("--collection", metavar="NAME", help=help)


def add_name(parser: CommandParser, help: str | None = None) -> None:
    """Add the collection that a command is about: NAME, or --collection NAME; required unless `help` is given."""
    parser.needs_name = help is None
    missing = argparse.SUPPRESS  # otherwise the absent one of the two would overwrite the other with its default
    parser.add_argument("collection", nargs="?", metavar="NAME", action=_NameOnce, default=missing,
                        help=help or "name of the collection")  # fmt: skip
    parser.add_argument("--collection", metavar="NAME", action=_NameOnce, help="another way to write NAME")


def add_no_llm(parser: argparse.ArgumentParser) -> None:
    """Add --no-llm, which becomes the setting `llm_off`."""
    off = "quote the documentation, without any language model"
    parser.add_argument("--no-llm", dest="llm_off", action="store_true", default=None, help=off)


def add_asking(group: "argparse._ArgumentGroup") -> None:
    """Add flags for asking the questions of a data set: --fresh, --workers, --at-once."""
    group.add_argument("--fresh", action="store_true", help="ask every question again and ignore stored answers")
    group.add_argument(
        "--workers", type=int, default=0, help="Ray actors (default: one per CPU; none for few questions)"
    )
    at_once = "questions at once (default 1; 8 if the language model runs on another machine)"
    group.add_argument("--at-once", type=int, default=0, help=at_once)


def add_wait(parser: argparse.ArgumentParser) -> None:
    """Add --wait."""
    parser.add_argument("--wait", action="store_true", help="wait for another run on the collection to end")


def add_fields(parser: argparse.ArgumentParser, *models: "type[BaseModel]") -> None:
    """Add a flag for each field with a description; the model declares its default and validates its value."""
    for name, field in {name: field for model in models for name, field in model.model_fields.items()}.items():
        flag = f"--{name.replace('_', '-')}"
        if field.annotation is bool:
            parser.add_argument(flag, action="store_true", default=None, help=field.description)
        elif field.description:
            default = "" if field.is_required() or field.default == "" else f" (default {field.default})"
            choices = get_args(field.annotation) if get_origin(field.annotation) is Literal else None
            parser.add_argument(flag, choices=choices, required=field.is_required(), help=field.description + default)


def read_fields(model: "type[M]", flags: Mapping[str, Any]) -> "M":
    """Return the model with the values of the flags, None meaning its default. Raises BadInput."""
    from pydantic import ValidationError

    from pipelines.text.mistakes import describe_mistakes

    values = {name: flags[name] for name in model.model_fields if flags.get(name) is not None}
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise BadInput(describe_mistakes(error, model, lambda path: f"--{path.replace('_', '-')}")) from error


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


def finish(summary: Mapping[str, Any], as_json: bool, text: str) -> None:
    """Print the result: `summary` as one line of JSON if `as_json`, else `text`."""
    print(json.dumps(summary, default=str, ensure_ascii=False) if as_json else text, flush=True)


def main(parser: argparse.ArgumentParser, work: Work, argv: Sequence[str] | None = None) -> NoReturn:
    """Run a command as a process: exit with its code, silently if the reader of its output has gone."""
    logging.getLogger("psycopg.pool").setLevel(logging.ERROR)  # it logs each attempt to reach an unavailable database
    with quiet_when_piped():
        sys.exit(run_job(parser, work, argv))


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


def run_job(parser: argparse.ArgumentParser, work: Work, argv: Sequence[str] | None) -> int:
    """Parse `argv` (None: the command line), do the work and return the exit code.

    An expected error becomes one message; an unexpected one, or any with RAYDEX_DEBUG, also shows its traceback.
    """
    args = parser.parse_args(argv)
    try:
        if wants_json_lines():
            log_as_json()
        warn_of_unread()
        return work(args)
    except (KeyboardInterrupt, SystemExit) as error:
        code = INTERRUPTED if isinstance(error, KeyboardInterrupt) else error.code
        if code not in (INTERRUPTED, TERMINATED, signal.SIGTERM):
            raise
        say(f"{parser.prog}: interrupted; what was done is kept, the next run continues from there")
        return INTERRUPTED if code == INTERRUPTED else TERMINATED  # Ray's own handler exits with the signal's number
    except BrokenPipeError:
        raise
    except Exception as error:
        message, expected = describe_error(error)
        code = exit_code(error)
        if debugging() or (code == FAILED and not expected):
            traceback.print_exc()
        say(f"{parser.prog}: {message}")
        return code


def exit_code(error: Exception) -> int:
    """Return the exit code for an error of a command."""
    from pipelines.store import CollectionBusy

    if isinstance(error, CollectionBusy):
        return BUSY
    return BAD_INPUT if isinstance(error, ValueError | LookupError) else FAILED


def describe_error(error: Exception) -> tuple[str, bool]:
    """Return the message of an error, and whether it is one of our own errors."""
    if at_home := describe_trouble_at_home(error):
        return at_home, True
    if type(error).__name__ == "ValidationError" and type(error).__module__.startswith("pydantic"):
        from pipelines.text.mistakes import describe_mistakes

        return describe_mistakes(error), True  # pyrefly: ignore[bad-argument-type]
    # For errors defined in these packages the message is enough for a user; any other error needs its traceback.
    return str(error), type(error).__module__.startswith(("pipelines.", "jobs.", "__main__"))
