"""Writes answers that a person verified, and keeps them up to date: list, add, review, accept, retire.

Readers get a verified answer, labelled as written by a person, for questions with the same meaning as one of its own.
If a section that it is based on changes, it waits for `review`, and `accept` puts it into use again. Exit codes: 0
done, 1 failed, 2 bad input.
"""

import argparse
import difflib
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from jobs.cli import DONE, BadInput, add_collection, add_json, command, finish, main, say
from jobs.environment import open_store, read_configuration
from pipelines.answering.retrieval.live import choose_collection
from pipelines.answering.verified import writing
from pipelines.store import Store, VerifiedAnswer

MOST_LINES = 40  # maximum lines of a section's diff
NONE_YET = "no verified answer yet: `raydex answers add --question … --source URL#ANCHOR --file answer.md` writes one"


def arguments() -> argparse.ArgumentParser:
    parser = command("answers", __doc__)
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    listing = actions.add_parser("list", help="list a collection's answers, and which of them are in use")
    review = actions.add_parser("review", help="show the answers whose sections have changed, with the changes")
    add = actions.add_parser("add", help="write the answer to a question")
    accept = actions.add_parser("accept", help="use an answer again, unchanged or with new text or sections")
    retire = actions.add_parser("retire", help="stop using an answer")
    for one in (listing, review, add):
        add_collection(one, "default: the one that is asked where none is named")
    for one in (accept, retire):
        one.add_argument("number", type=int, help="the number of the answer, as `raydex answers list` shows it")
    for one in (add, accept):
        wording = "the question, or another wording of it; repeatable"
        one.add_argument("--question", action="append", default=[], metavar="TEXT", help=wording)
        asked = "a recorded question, by its id or its text; repeatable for all questions of a cluster"
        one.add_argument("--asked", action="append", default=[], metavar="QUESTION", help=asked)
        source = "a section that supports the answer, URL#ANCHOR; [1] in the text cites the first; repeatable"
        one.add_argument("--source", action="append", default=[], metavar="SOURCE", help=source)
        text = one.add_mutually_exclusive_group()
        text.add_argument("--file", type=Path, help="the answer as Markdown; - reads it from standard input")
        text.add_argument("--text", help="the answer as Markdown")
    for one in (listing, review, add, accept, retire):
        add_json(one)
    return parser


def run(args: argparse.Namespace) -> int:
    with open_store() as store:
        ACTIONS[args.action](store, vars(args))
    return DONE


def list_answers(store: Store, flags: Mapping[str, Any]) -> None:
    collection = named_collection(store, flags["collection"])
    reviewed = writing.review_answers(store, collection)
    counts = Counter(one.state for one in reviewed)
    head = f"collection {collection}: {', '.join(f'{count} {state}' for state, count in counts.items())}"
    hint = ["`raydex answers review` shows what has changed"] if counts[writing.REVIEW] else []
    text = "\n".join([head, *map(describe, reviewed), *hint]) if reviewed else NONE_YET
    finish({"collection": collection, "answers": [as_row(one) for one in reviewed]}, flags["json"], text)


def show_changes(store: Store, flags: Mapping[str, Any]) -> None:
    collection = named_collection(store, flags["collection"])
    waiting = [one for one in writing.review_answers(store, collection) if one.state == writing.REVIEW]
    text = (
        "\n\n".join(map(describe_changes, waiting)) or f"collection {collection}: no verified answer waits for review"
    )
    finish({"collection": collection, "answers": [as_row(one) for one in waiting]}, flags["json"], text)


def add_answer(store: Store, flags: Mapping[str, Any]) -> None:
    asked = [store.named_question(name, flags["collection"]) for name in dict.fromkeys(flags["asked"])]
    collection = named_collection(store, flags["collection"] or next((row.collection for row in asked), None))
    questions = [*flags["question"], *(row.alone for row in asked)]
    if not flags["source"]:
        raise BadInput(f"name the section that the answer rests on with --source; {closest(collection, questions)}")
    answer = writing.write_answer(store, collection, questions, read_text(flags), flags["source"])
    warn(answer)
    number = store.add_verified_answer(answer)
    tell(store, number, flags["json"], "is given from now on")


def accept_answer(store: Store, flags: Mapping[str, Any]) -> None:
    known = store.verified_answer(flags["number"])
    asked = [store.named_question(name, known.collection) for name in dict.fromkeys(flags["asked"])]
    more = [*flags["question"], *(row.alone for row in asked)]
    text = read_text(flags) if flags["file"] or flags["text"] else known.answer
    sources = flags["source"] or [section.source for section in known.sections]
    answer = writing.write_answer(store, known.collection, [*known.questions, *more], text, sources, known.id)
    warn(answer)
    store.accept_verified_answer(answer)
    tell(store, known.id, flags["json"], "is given again")


def retire_answer(store: Store, flags: Mapping[str, Any]) -> None:
    number = flags["number"]
    store.retire_verified_answer(number)
    tell(store, number, flags["json"], f"is no longer given; `raydex answers accept {number}` gives it again")


ACTIONS = {
    "list": list_answers,
    "review": show_changes,
    "add": add_answer,
    "accept": accept_answer,
    "retire": retire_answer,
}


# ------------------------------------------------------------------------------------------- input


def named_collection(store: Store, name: str | None) -> str:
    """Return the named or default collection. Raises NoSuchCollection and CollectionNotNamed."""
    return choose_collection(store.collections(), name or read_configuration().collection)


def read_text(flags: Mapping[str, Any]) -> str:
    """Return the answer from --text or --file. Raises BadInput."""
    text, file = flags["text"], flags["file"]
    if text is not None:
        return str(text)
    if file is None:
        raise BadInput("write the answer as Markdown: --file FILE, --file - for standard input, or --text TEXT")
    try:
        return sys.stdin.read() if str(file) == "-" else str(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"--file is {file}: it can't be read as text ({error})") from error


def closest(collection: str, questions: Sequence[str]) -> str:
    """Return the sections that retrieval finds for the first question, for a person to choose from."""
    from contextlib import closing

    from pipelines.answering.factory import make_engine, make_retriever
    from pipelines.answering.settings import change

    quoting = {"retrieval.patience_s": 60.0, "llm.off": True, "verified.enabled": False}
    settings = change(read_configuration(), quoting)
    if not questions:
        return "the question is missing too: --question"
    with open_store() as store, closing(make_retriever(settings, store)) as retriever:
        hits = make_engine(settings, retriever).search(questions[0], collection=collection, k=5).hits
    return "\n".join(["the closest are:", *(f"  {hit.source}" for hit in hits)])


# ------------------------------------------------------------------------------------------- output


def warn(answer: VerifiedAnswer) -> None:
    """Print the lines of an answer that readers will not see as written."""
    for line in difflib.unified_diff(
        answer.answer.splitlines(), writing.given_text(answer).splitlines(), lineterm="", n=0
    ):
        if line[:1] in "+-" and line[:3] not in ("+++", "---"):
            say(f"{'written' if line[0] == '-' else 'shown  '}  {line[1:]}")


def tell(store: Store, number: int, as_json: bool, what: str) -> None:
    """Print an answer after a change."""
    answer = store.verified_answer(number)
    one = next(one for one in writing.review_answers(store, answer.collection) if one.answer.id == number)
    finish(as_row(one), as_json, f"verified answer {number} of {answer.collection} {what}\n{describe(one)}")


def describe(one: writing.ReviewedAnswer) -> str:
    """Return the lines for an answer in a list."""
    answer = one.answer
    lines = [f"{answer.id:4} {one.state:8} {answer.questions[0]}"]
    lines += [f"{'':13} also: {wording}" for wording in answer.questions[1:]]
    changed = {change.source: "gone" if change.now is None else "changed" for change in one.changes}
    lines += [
        f"{'':13} [{n}] {section.source}{f' ({changed[section.source]})' if section.source in changed else ''}"
        for n, section in enumerate(answer.sections, 1)
    ]
    return "\n".join(lines)


def describe_changes(one: writing.ReviewedAnswer) -> str:
    """Return an answer that waits for review, with the changes of its sections and the commands to use."""
    lines = [describe(one), "", *(f"  | {line}" for line in one.answer.answer.splitlines())]
    for change in one.changes:
        lines += ["", *_difference(change)]
    number = one.answer.id
    lines += [
        "",
        f"still right:      `raydex answers accept {number}`",
        f"another text:     `raydex answers accept {number} --file answer.md`",
        f"another section:  `raydex answers accept {number} --source URL#ANCHOR`",
        f"wrong:            `raydex answers retire {number}`",
    ]
    return "\n".join(lines)


def _difference(change: writing.SectionChange) -> Iterator[str]:
    if change.now is None:
        yield f"{change.source} is gone"
        return
    difference = difflib.unified_diff(
        change.before.splitlines(), change.now.splitlines(), change.source, "now", lineterm="", n=1
    )
    lines = list(difference) or [f"{change.source}: its heading has changed"]
    yield from lines[:MOST_LINES]
    if len(lines) > MOST_LINES:
        yield f"… and {len(lines) - MOST_LINES} more lines"


def as_row(one: writing.ReviewedAnswer) -> dict[str, Any]:
    """Return an answer as data."""
    answer = one.answer
    return {
        "id": answer.id,
        "collection": answer.collection,
        "state": one.state,
        "questions": list(answer.questions),
        "answer": answer.answer,
        "sources": [section.source for section in answer.sections],
        "changes": [asdict(change) for change in one.changes],
        "written": answer.written,
        "changed": answer.changed,
    }


if __name__ == "__main__":
    main(arguments(), run)
