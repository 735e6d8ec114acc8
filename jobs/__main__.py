"""The `raydex` command: its verbs in groups, and the help that lists them.

Each verb is a module of its own, imported when it is called; `raydex --help` imports none of them.
"""

import difflib
import gc
import importlib
import sys
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, NoReturn

from jobs.cli import BAD_INPUT, INTERRUPTED, main, quiet_when_piped
from jobs.verbs import VERBS
from pipelines.version import raydex_version

USAGE = "usage: raydex COMMAND [OPTIONS] [ARGS]   (`raydex COMMAND --help` has examples)"
BOLD, PLAIN = "\x1b[1m", "\x1b[0m"


def raydex(argv: Sequence[str] | None = None) -> NoReturn:
    """Run the verb on the command line."""
    verb, *words = list(sys.argv[1:] if argv is None else argv) or [""]
    if verb == "help" and words:
        verb, words = words[0], ["--help"]
    if verb in VERBS:
        main(load_app(verb), words)
    with quiet_when_piped():
        if verb in ("-h", "--help", "help"):
            print(overview(sys.stdout.isatty()))
            sys.exit()
        if verb in ("-V", "--version"):
            print(f"raydex {raydex_version()}")
            sys.exit()
        print(explain_unknown(verb) if verb else overview(), file=sys.stderr)
        sys.exit(BAD_INPUT)


def load_app(verb: str) -> Any:
    """Import the module of a verb, and return its command. An interrupt ends the program.

    Nothing that it imports becomes garbage, so nobody looks for any: 0.1 s of 0.7.
    """
    gc.disable()
    try:
        return importlib.import_module(VERBS[verb].module).app
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    finally:
        gc.enable()


def overview(styled: bool = False) -> str:
    """Return the help, a line for each verb under the name of its group; names are bold if `styled`."""
    return "\n".join([USAGE, "Turn a documentation site into an assistant that answers from it.", *_groups(styled)])


def _groups(styled: bool) -> Iterator[str]:
    bold, plain = (BOLD, PLAIN) if styled else ("", "")
    for group, verbs in groupby(VERBS, key=lambda name: VERBS[name].group):
        yield f"\n{bold}{group}{plain}"
        yield from (f"  {bold}{verb:<11}{plain} {VERBS[verb].line}" for verb in verbs)


def explain_unknown(verb: str) -> str:
    """Return the message for a verb that does not exist, with the probable intended one."""
    near = difflib.get_close_matches(verb, VERBS, n=1)
    hint = f"did you mean `raydex {near[0]}`?" if near else "`raydex --help` lists the commands"
    return f"raydex: there is no command {verb!r}; {hint}"


if __name__ == "__main__":
    raydex()
