"""The `raydex` command: its verbs, their files, and the help that lists them.

verbs.yaml lists the verbs. Each is a separate module, imported when it is called.
"""

import difflib
import importlib
import sys
from collections.abc import Sequence
from typing import NoReturn

from jobs.cli import BAD_INPUT, main, quiet_when_piped
from pipelines.text.phrases import read_table
from pipelines.version import raydex_version

# verb: (module, line of the help)
MODULES = {"index": "reindex"}  # modules with another name than their verb
VERBS = {verb: (f"jobs.{MODULES.get(verb, verb)}", line) for verb, line in read_table("jobs.verbs").items()}


def raydex(argv: Sequence[str] | None = None) -> NoReturn:
    """Run the verb on the command line."""
    verb, *words = list(sys.argv[1:] if argv is None else argv) or [""]
    if verb == "help" and words:
        verb, words = words[0], ["--help"]
    if verb in VERBS:
        module = importlib.import_module(VERBS[verb][0])
        main(module.arguments(), module.run, words)
    with quiet_when_piped():
        if verb in ("-h", "--help", "help"):
            print(overview())
            sys.exit()
        if verb in ("-V", "--version"):
            print(f"raydex {raydex_version()}")
            sys.exit()
        print(explain_unknown(verb) if verb else overview(), file=sys.stderr)
        sys.exit(BAD_INPUT)


def overview() -> str:
    """Return the help, which fits on one screen."""
    lines = [f"  {verb:<11} {line}" for verb, (_, line) in VERBS.items()]
    usage = "usage: raydex VERB [flags]   (`raydex VERB --help` lists the flags of a verb)"
    return "\n".join([f"{usage}\nTurn a documentation site into an assistant that answers from it.\n", *lines])


def explain_unknown(verb: str) -> str:
    """Return the message for a verb that does not exist, with the probable intended one."""
    near = difflib.get_close_matches(verb, VERBS, n=1)
    hint = f"did you mean `raydex {near[0]}`?" if near else "`raydex --help` lists the verbs"
    return f"raydex: there is no verb {verb!r}; {hint}"


if __name__ == "__main__":
    raydex()
