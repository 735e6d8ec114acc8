"""The `raydex` command: its verbs, their files, and the help that lists them.

Verbs stand in the order in which a person meets them. Each is a module of its own, imported when it is called.
"""

import difflib
import importlib
import sys
from collections.abc import Sequence
from typing import NoReturn

from jobs.cli import BAD_INPUT, main, quiet_when_piped

# verb: (module, line of the help)
VERBS = {
    "demo": ("jobs.demo", "try it: index a site, serve it, ask it a question"),
    "index": ("jobs.reindex", "index a site, folder or collection file; again: update it"),
    "ask": ("jobs.ask", "ask a question in the terminal"),
    "serve": ("jobs.serve", "serve the page to ask at and the HTTP APIs, until Ctrl-C"),
    "doctor": ("jobs.doctor", "check database, models, Ray and language model; say what to do"),
    "submit": ("jobs.submit", "run a verb on a Ray cluster, whose nodes need only Ray"),
    "mcp": ("jobs.mcp", "let coding agents look things up, over stdio (MCP)"),
    "slack": ("jobs.slack", "answer in Slack: mentions and direct messages, in their threads"),
    "status": ("jobs.status", "show collections, indexes, pages by state and last runs"),
    "logs": ("jobs.logs", "show what the processes of a run wrote, on every node"),
    "default": ("jobs.default", "set the collection that is asked when none is named"),
    "keys": ("jobs.keys", "create, list and revoke API keys"),
    "nightly": ("jobs.nightly", "update a collection by night; publish only what is not worse"),
    "plan": ("jobs.plan", "say what the next night would do"),
    "report": ("jobs.report", "report on the last days of a collection, and send it"),
    "publish": ("jobs.publish", "make a candidate index live"),
    "rollback": ("jobs.rollback", "undo updates, or make the previous index live again"),
    "prune": ("jobs.prune", "delete retired indexes"),
    "drop": ("jobs.drop", "delete a collection"),
    "dump": ("jobs.dump", "write an index with its pages to a file"),
    "restore": ("jobs.restore", "load an index from such a file"),
    "database": ("jobs.database", "keep the embedded Postgres running and print its URL"),
    "insights": ("jobs.insights", "show what is asked and what the documentation lacks"),
    "questions": ("jobs.questions", "write questions about a collection, to evaluate it with"),
    "answers": ("jobs.answers", "write answers that a person verified; review them"),
    "models": ("jobs.models", "try how good a language model is for a collection"),
    "evaluate": ("jobs.evaluate", "score a collection on questions with known sources"),
    "experiment": ("jobs.experiment", "compare configurations on the same questions"),
    "train": ("jobs.train", "train a model on questions: embedder, reranker, router"),
}


def raydex(argv: Sequence[str] | None = None) -> NoReturn:
    """Run the verb that the command line names."""
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
            print(f"raydex {installed_version()}")
            sys.exit()
        print(explain_unknown(verb) if verb else overview(), file=sys.stderr)
        sys.exit(BAD_INPUT)


def overview() -> str:
    """Return the help, which fits on one screen."""
    lines = [f"  {verb:<11} {line}" for verb, (_, line) in VERBS.items()]
    usage = "usage: raydex VERB [flags]   (`raydex VERB --help` lists the flags of a verb)"
    return "\n".join([f"{usage}\nTurn a documentation site into an assistant that answers from it.\n", *lines])


def explain_unknown(verb: str) -> str:
    """Return the message for a verb that does not exist, with the one that was probably meant."""
    near = difflib.get_close_matches(verb, VERBS, n=1)
    hint = f"did you mean `raydex {near[0]}`?" if near else "`raydex --help` lists the verbs"
    return f"raydex: there is no verb {verb!r}; {hint}"


def installed_version() -> str:
    """Return the version of the installed package."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("raydex")
    except PackageNotFoundError:
        return "from source, not installed"


if __name__ == "__main__":
    raydex()
