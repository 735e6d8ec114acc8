"""Writes answers that a person verified, and keeps them up to date: list, add, review, accept, retire.

Readers get a verified answer, labelled as written by a person, for questions with the same meaning as one of its own.
If a section that it is based on changes, it waits for `review`, and `accept` puts it into use again. Exit codes: 0
done, 1 failed, 2 bad input.
"""

import difflib
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from jobs.cli import DONE, BadInput, finish, main, say
from jobs.environment import open_store, read_configuration
from jobs.flags import OR_DEFAULT, Json, at_most_one, command
from pipelines.answering.retrieval.live import choose_collection
from pipelines.answering.verified import writing
from pipelines.store import Store, VerifiedAnswer
from pipelines.text.counts import counted
from pipelines.text.sheets import Fact, Grid, Part, Sheet, row_with_lines

MOST_LINES = 40  # maximum lines of a section's diff
NONE_YET = "no verified answer yet: `raydex answers add --question … --source URL#ANCHOR --file answer.md` writes one"


WORDING = "the question, or another wording of it; repeatable"
ASKED = "a recorded question, by its id or its text; repeatable"
SOURCE = "a section that supports the answer, URL#ANCHOR; [1] in the text cites the first; repeatable"
NUMBER = "the number of the answer, as `raydex answers list` shows it"

Of = Annotated[str | None, Parameter(help=f"name of the collection {OR_DEFAULT}")]
Questions = Annotated[tuple[str, ...], Parameter(help=WORDING)]
Asked = Annotated[tuple[str, ...], Parameter(help=ASKED)]
Sources = Annotated[tuple[str, ...], Parameter(help=SOURCE)]
File = Annotated[Path | None, Parameter(help="the answer as Markdown; - reads it from standard input")]
Text = Annotated[str | None, Parameter(help="the answer as Markdown")]
Number = Annotated[int, Parameter(help=NUMBER)]

app = command("answers", __doc__)


@app.command(name="list")
def list_answers(*, collection: Of = None, as_json: Json = False) -> int:
    """List a collection's answers, and which of them are in use."""
    with open_store() as store:
        name = named_collection(store, collection)
        reviewed = writing.review_answers(store, name)
    counts = Counter(one.state for one in reviewed)
    head = f"collection {name}: {', '.join(f'{count:,} {state}' for state, count in counts.items())}"
    hint = ["`raydex answers review` shows what has changed"] if counts[writing.REVIEW] else []
    result = Sheet(head, [table_of(reviewed), *hint]) if reviewed else NONE_YET
    finish({"collection": name, "answers": [as_row(one) for one in reviewed]}, as_json, result)
    return DONE


@app.command
def review(*, collection: Of = None, as_json: Json = False) -> int:
    """Show the answers whose sections have changed, with the changes."""
    with open_store() as store:
        name = named_collection(store, collection)
        waiting = [one for one in writing.review_answers(store, name) if one.state == writing.REVIEW]
    waits = counted(len(waiting), "verified answer waits", "verified answers wait")
    head = f"collection {name}: {waits if waiting else 'no verified answer waits'} for review"
    result = Sheet(head, [part for one in waiting for part in describe_changes(one)])
    finish({"collection": name, "answers": [as_row(one) for one in waiting]}, as_json, result)
    return DONE


@app.command
def add(
    *,
    collection: Of = None,
    question: Questions = (),
    asked: Asked = (),
    source: Sources = (),
    file: File = None,
    text: Text = None,
    as_json: Json = False,
) -> int:
    """Write the answer to a question."""
    at_most_one(file=file, text=text)
    with open_store() as store:
        recorded = [store.named_question(name, collection) for name in dict.fromkeys(asked)]
        name = named_collection(store, collection or next((row.collection for row in recorded), None))
        questions = [*question, *(row.alone for row in recorded)]
        if not source:
            raise BadInput(f"name the section that the answer rests on with --source; {closest(name, questions)}")
        answer = writing.write_answer(store, name, questions, read_text(file, text), source)
        warn(answer)
        tell(store, store.add_verified_answer(answer), as_json, "is given from now on")
    return DONE


@app.command
def accept(
    number: Number,
    /,
    *,
    question: Questions = (),
    asked: Asked = (),
    source: Sources = (),
    file: File = None,
    text: Text = None,
    as_json: Json = False,
) -> int:
    """Use an answer again, unchanged or with new text or sections."""
    at_most_one(file=file, text=text)
    with open_store() as store:
        known = store.verified_answer(number)
        recorded = [store.named_question(name, known.collection) for name in dict.fromkeys(asked)]
        questions = [*known.questions, *question, *(row.alone for row in recorded)]
        words = read_text(file, text) if file or text else known.answer
        sources = source or [section.source for section in known.sections]
        answer = writing.write_answer(store, known.collection, questions, words, sources, known.id)
        warn(answer)
        store.accept_verified_answer(answer)
        tell(store, known.id, as_json, "is given again")
    return DONE


@app.command
def retire(number: Number, /, *, as_json: Json = False) -> int:
    """Stop using an answer."""
    with open_store() as store:
        store.retire_verified_answer(number)
        tell(store, number, as_json, f"is no longer given; `raydex answers accept {number}` gives it again")
    return DONE


# ------------------------------------------------------------------------------------------- input


def named_collection(store: Store, name: str | None) -> str:
    """Return the named or default collection. Raises NoSuchCollection and CollectionNotNamed."""
    return choose_collection(store.collections(), name or read_configuration().collection)


def read_text(file: Path | None, text: str | None) -> str:
    """Return the answer from --text or --file. Raises BadInput."""
    if text is not None:
        return text
    if file is None:
        raise BadInput("write the answer as Markdown: --file FILE, --file - for standard input, or --text TEXT")
    try:
        return sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
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
    finish(as_row(one), as_json, Sheet(f"verified answer {number} of {answer.collection} {what}", [table_of([one])]))


def table_of(answers: Sequence[writing.ReviewedAnswer]) -> Grid:
    """Return answers with their numbers, states, wordings and sections."""
    rows = [
        row
        for one in answers
        for row in row_with_lines([str(one.answer.id), one.state, one.answer.questions[0]], _wordings_and_sections(one))
    ]
    return Grid(["", "", ""], rows, "><<")


def _wordings_and_sections(one: writing.ReviewedAnswer) -> Iterator[str]:
    yield from (f"also: {wording}" for wording in one.answer.questions[1:])
    changed = {change.source: "gone" if change.now is None else "changed" for change in one.changes}
    for n, section in enumerate(one.answer.sections, 1):
        yield f"[{n}] {section.source}{f' ({changed[section.source]})' if section.source in changed else ''}"


def describe_changes(one: writing.ReviewedAnswer) -> Iterator[Part]:
    """Yield an answer that waits for review, with the changes of its sections and the commands to use."""
    yield from ("", table_of([one]), "", *(f"  | {line}" for line in one.answer.answer.splitlines()))
    for change in one.changes:
        yield from ("", *_difference(change))
    accept = f"`raydex answers accept {one.answer.id}"
    yield ""
    yield Fact("still right", f"{accept}`")
    yield Fact("another text", f"{accept} --file answer.md`")
    yield Fact("another section", f"{accept} --source URL#ANCHOR`")
    yield Fact("wrong", f"`raydex answers retire {one.answer.id}`")


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
        yield f"… and {counted(len(lines) - MOST_LINES, 'more line')}"


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
    main(app)
