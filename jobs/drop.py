"""Deletes a collection: its pages, indexes and runs, and its BM25 files on this machine.

Lists the data to delete and asks for confirmation; without a terminal it needs --yes. Questions, feedback and
evaluations are kept, unless --with-questions. Exit codes: 0 deleted, 1 not confirmed, 2 no such collection, 75 a run
holds it.
"""

import sys
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Annotated

from cyclopts import Parameter

from jobs.cli import DONE, FAILED, BadInput, finish, main, say
from jobs.environment import home, open_store
from jobs.flags import Json, Name, Wait, command
from pipelines.indexing.lock import hold_collection
from pipelines.lexical import remove_lexical_folders
from pipelines.text.counts import counted

ASKED = ("questions", "feedback", "evaluations")
ONE = {"pages": "page", "indexes": "index", "chunks": "chunk", "runs": "run", "questions": "question",
       "evaluations": "evaluation", "verified_answers": "verified answer"}  # fmt: skip


def run(
    collection: Name,
    *,
    yes: Annotated[bool, Parameter(help="do not ask")] = False,
    with_questions: Annotated[bool, Parameter(help="delete its questions, feedback and evaluations too")] = False,
    wait: Wait = False,
    as_json: Json = False,
) -> int:
    with open_store() as store, ExitStack() as holding:
        is_default = bool(store.find_collection(collection)["is_default"])
        names = [collection, *store.copies(collection)]
        for name in names:
            holding.enter_context(hold_collection(store, name, wait, say))
        contents = store.contents(names)
        kept = {} if with_questions else {name: contents.pop(name) for name in ASKED}
        if not yes:
            say(summary_of_deletion(collection, contents, kept, len(names) - 1, is_default))
            if not _confirmed(collection):
                say("nothing is deleted")
                return FAILED
        remove_lexical_folders(home(), store.url, store.drop(names, with_questions))
    summary = {"collection": collection, "deleted": contents, "kept": kept, "was_default": is_default}
    finish(summary, as_json, f"deleted collection {collection}: {_listed(contents)}")
    return DONE


def summary_of_deletion(
    collection: str, deleted: Mapping[str, int], kept: Mapping[str, int], copies: int, is_default: bool
) -> str:
    """Return a description of the data that a drop deletes and keeps."""
    lines = [f"collection {collection} will be deleted: {_listed(deleted)}"]
    if copies:
        lines.append(f"  with its {counted(copies, 'copy')} that experiments made")
    if is_default:
        lines.append("  it is the default: afterwards there is none")
    if any(kept.values()):
        lines.append(f"  kept: {_listed(kept)} (`--with-questions` deletes them too)")
    return "\n".join(lines)


def _confirmed(collection: str) -> bool:
    """Ask on the terminal. Raises BadInput without one."""
    if not sys.stdin.isatty():
        raise BadInput(f"no terminal to ask on: `raydex drop {collection} --yes` deletes without asking")
    print(f"type {collection} or y to delete it: ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip() in (collection, "y", "yes")


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(counted(count, ONE.get(name, name), name.replace("_", " ")) for name, count in counts.items())


app = command("drop", __doc__, run)


if __name__ == "__main__":
    main(app)
