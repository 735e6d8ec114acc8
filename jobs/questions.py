"""Makes evaluation questions, answers and reviews them, and turns wrong answers into questions.

`make` lets a language model write questions about a collection's own chunks, uses the headings of its sections
(--without-llm), or collects questions whose answers readers rated well (--feedback), as drafts for a person to accept
or reject with `review`. `answer` lets the model write the missing reference answers of a data set. `correct` turns a
wrongly answered question into one for evaluation, or, with --pair, for training. The model's replies are stored next to
--out, so an interrupted run continues from there. Exit codes: 0 done, 1 failed or nothing could be made, 2 bad input.
"""

import argparse
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from jobs import cli
from jobs.environment import open_store, read_configuration
from pipelines.answering.factory import make_llm
from pipelines.answering.retrieval.live import choose_collection
from pipelines.answering.settings import AnswerSettings, all_agents
from pipelines.answering.verified.writing import pin_sections
from pipelines.evaluation import dataset as datasets
from pipelines.evaluation.questions import making
from pipelines.evaluation.questions.feedback import add_drafts, corrected_row, put_answers, put_row, review_rows
from pipelines.llm.cached import CachedModel
from pipelines.store import NoSuchCollection, Store

GATE = "--at-least source_cited=1"
NO_COUNTS = ("collection", "out", "written", "errors")


def arguments() -> argparse.ArgumentParser:
    parser = cli.command("questions", __doc__)
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    make = actions.add_parser("make", help="write questions about a collection")
    answer = actions.add_parser("answer", help="write the reference answers that a data set lacks")
    review = actions.add_parser("review", help="list a data set with its drafts, accept and reject them")
    correct = actions.add_parser("correct", help="turn a wrongly answered question into a row of a data set")
    add_making(make)
    answer.add_argument("dataset", type=Path, metavar="DATASET", help="questions with their sources")
    for one in (make, answer):
        one.add_argument("--collection", required=True, metavar="NAME", help="name of the collection")
        one.add_argument("--agent", help="the agent whose model writes (default: the first)")
        one.add_argument("--fresh", action="store_true", help="ask the model again and ignore stored replies")
    answer.add_argument("--at-once", type=int, default=4, help="concurrent calls of the model (default 4)")
    review.add_argument("file", type=Path, metavar="FILE", help="the data set")
    review.add_argument("--accept", nargs="+", default=[], metavar="N", help="accept these rows, or all drafts")
    review.add_argument("--reject", nargs="+", default=[], metavar="N", help="reject these rows, or all drafts")
    correct.add_argument("question", nargs="+", action=cli.Words, metavar="QUESTION", help="its id or its text")
    cli.add_collection(correct, "its collection (default: the one it was asked in)")
    correct.add_argument("--pair", action="store_true", help="write a training pair, with the wrong sources")
    correct.add_argument(
        "--unknown", action="store_true", help="no source answers it; the right answer is that it is unknown"
    )
    for one, source in ((review, "with --accept N: the right source"), (correct, "a section that answers it")):
        one.add_argument("--source", action="append", default=[], metavar="SOURCE", help=f"{source}; repeatable")
    for one in (make, answer, correct):
        one.add_argument("--out", type=Path, required=True, help="the data set to write (JSONL)")
    for one in (make, answer, review, correct):
        cli.add_json(one)
    return parser


def add_making(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `make`."""
    manner = parser.add_mutually_exclusive_group()
    manner.add_argument("--without-llm", action="store_true", help="make questions from headings, without a model")
    manner.add_argument(
        "--feedback",
        action="store_true",
        help="write drafts from questions with well-rated answers or opened sources",
    )
    style = "imitate the style of these users' questions"
    manner.add_argument("--style", dest="style_file", type=Path, metavar="FILE", help=style)
    cli.add_fields(parser, making.QuestionOptions)


def run(args: argparse.Namespace) -> int:
    flags = vars(args)
    path = flags.get("out") or flags["file"]
    if path.suffix.lower() == ".csv":
        raise cli.BadInput(f"{path} is CSV, and questions are written as JSONL: name a file that ends with .jsonl")
    return ACTIONS[args.action](flags)


# ------------------------------------------------------------------------------------------- make and answer


def make(flags: Mapping[str, Any]) -> int:
    """Write questions about a collection, or drafts from well-rated answers."""
    options, settings = cli.read_fields(making.QuestionOptions, flags), read_configuration()
    if flags["style_file"]:
        options = options.model_copy(update={"style": tuple(datasets.read_questions(flags["style_file"]))})
    cli.make_folder("--out", flags["out"].parent)
    if flags["feedback"]:
        return draft_rated(flags["collection"], flags["out"], as_json=flags["json"])
    llm = None if flags["without_llm"] else make_writer(settings, flags)
    with open_store() as store:
        draft = making.make_questions(store, settings, flags["collection"], llm, options, cli.say)
    return write_draft(draft, map(datasets.as_row, draft.examples), llm, flags)


def answer(flags: Mapping[str, Any]) -> int:
    """Write the missing answers of a data set."""
    cli.check_range("--at-once", flags["at_once"], 1, 1_000)
    cli.make_folder("--out", flags["out"].parent)
    path, llm = flags["dataset"], make_writer(read_configuration(), flags)
    rows, examples = datasets.read_rows(path), datasets.read_dataset(path)
    with open_store() as store:
        draft = making.answer_questions(store, flags["collection"], llm, examples, flags["at_once"], cli.say)
    return write_draft(draft, put_answers(rows, draft.examples), llm, flags)


def make_writer(settings: AnswerSettings, flags: Mapping[str, Any]) -> CachedModel:
    """Return the language model that writes, with its earlier replies for this --out. Raises BadInput."""
    agents, out = all_agents(settings), flags["out"]
    named = [each for each in agents if flags["agent"] in (None, each.name)]
    if not agents:
        raise cli.BadInput(
            "no language model is configured: set RAYDEX_LLM_MODEL (and RAYDEX_LLM_URL), or give --without-llm"
        )
    if not named:
        raise cli.BadInput(f"--agent is {flags['agent']!r}; there are: {', '.join(each.name for each in agents)}")
    path = out.with_name(f".{out.name}.replies")
    if flags["fresh"]:
        path.unlink(missing_ok=True)
    return CachedModel(make_llm(named[0]), path)


def write_draft(
    draft: making.QuestionSet, rows: Iterable[Mapping[str, Any]], llm: CachedModel | None, flags: Mapping[str, Any]
) -> int:
    """Write the rows of a draft, if it has any, and print their costs."""
    if draft.examples:
        datasets.write_rows(flags["out"], rows)
    result = {"collection": flags["collection"], "out": str(flags["out"]), **summary(draft, llm)}
    cli.finish(result, flags["json"], describe(result, "no question could be made"))
    return cli.DONE if draft.examples else cli.FAILED


def draft_rated(collection: str, out: Path, *, as_json: bool) -> int:
    """Add the questions with well-rated answers to `out`, as drafts. Raises NoSuchCollection."""
    with open_store() as store:
        draft = making.rated_questions(store, collection)
        names = [row["name"] for row in store.collections()]
    if not draft.examples and collection not in names:
        raise NoSuchCollection(collection, names)
    rows, new = add_drafts(datasets.read_rows(out) if out.exists() else [], draft.examples)
    if rows:
        datasets.write_rows(out, rows)
    counts = {"new": new, "kept": len(rows) - new}
    result = {"collection": collection, "out": str(out), **summary(draft, None), **counts}
    cli.finish(result, as_json, describe(result, "no answer was rated well, and no source opened"))
    return cli.DONE


def summary(draft: making.QuestionSet, llm: CachedModel | None) -> dict[str, Any]:
    """Return the counts and costs of a draft."""
    model, reused = (llm.model, llm.reused) if llm else (None, 0)
    written = {"model": model, "written": len(draft.examples)}
    failed = {"failed": sum(draft.errors.values()), "errors": dict(draft.errors)}
    return {**written, **draft.counts, **failed, "reused": reused, "usage": asdict(draft.usage)}


def describe(summary: Mapping[str, Any], none: str) -> str:
    """Return the summary as text; `none` is the message if nothing was written."""
    usage = f"{summary['usage']['calls']:,} calls, ${summary['usage']['cost']:.4f}"
    counted = {name: value for name, value in summary.items() if name not in NO_COUNTS} | {"usage": usage}
    head = f"{summary['written']:,} questions in {summary['out']}" if summary["written"] else none
    lines = [f"  {name:12} {value}" for name, value in counted.items() if value is not None]
    reasons = [f"  {count:>5,} × {reason}" for reason, count in summary["errors"].items()]
    return "\n".join([f"collection {summary['collection']}: {head}", *lines, *reasons])


# ------------------------------------------------------------------------------------------- review and correct


def review(flags: Mapping[str, Any]) -> int:
    """Accept and reject rows of a data set, and list it."""
    path, accept, reject, sources = flags["file"], flags["accept"], flags["reject"], flags["source"]
    rows = datasets.read_rows(path)
    if sources and len(row_numbers(accept, rows)) != 1:
        raise cli.BadInput("--source corrects one row: give it with --accept N")
    states: tuple[tuple[Sequence[str], datasets.ReviewState], ...] = (
        (accept, datasets.ACCEPTED),
        (reject, datasets.REJECTED),
    )
    for words, state in states:
        rows = review_rows(rows, row_numbers(words, rows), state, sources if state == datasets.ACCEPTED else ())
    if accept or reject:
        datasets.write_rows(path, rows)
    counts = Counter(datasets.review_of(row) for row in rows)
    lines = [f"{path}: {', '.join(f'{of:,} {state}' for state, of in counts.items()) or 'no row'}"]
    lines += [describe_row(row, number) for number, row in enumerate(rows, 1)]
    cli.finish({"file": str(path), "rows": rows, "counts": dict(counts)}, flags["json"], "\n".join(lines))
    return cli.DONE


def row_numbers(words: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> list[int]:
    """Return the row numbers for words like "3", "5-9" and "all" (drafts). Raises BadInput."""
    numbers: list[int] = []
    for word in words:
        first, _, last = word.partition("-")
        if word == "all":
            numbers += [n for n, row in enumerate(rows, 1) if datasets.review_of(row) == datasets.DRAFT]
        elif first.isdecimal() and (last or first).isdecimal():
            numbers += range(int(first), int(last or first) + 1)
        else:
            raise cli.BadInput(f"{word!r} is no number of a row: write 3, 5-9 or all")
    return numbers


def describe_row(row: Mapping[str, Any], number: int) -> str:
    """Return the lines that describe a row of a data set."""
    sources = row.get("sources") or row.get("source") or "not known"
    shown = [sources] if isinstance(sources, str) else sources
    wrong = [f"not {source}" for source in row.get("negatives") or ()]
    head = f"{number:4} {datasets.review_of(row):8} {' '.join(row['question'].split())}"
    return "\n".join([head, *(f"{'':14}{one}" for one in (*shown, *wrong))])


def correct(flags: Mapping[str, Any]) -> int:
    """Write the row of a wrongly answered question into --out. Raises BadInput and NoSuchSection."""
    if flags["unknown"] and (flags["source"] or flags["pair"]):
        raise cli.BadInput("--unknown goes without --source and --pair: no source answers it")
    if not (flags["source"] or flags["unknown"]):
        raise cli.BadInput("name the source that answers it with --source URL#ANCHOR, or --unknown if nothing does")
    out = flags["out"]
    cli.make_folder("--out", out.parent)
    with open_store() as store:
        collection, row = make_correction(store, flags)
    rows = put_row(datasets.read_rows(out) if out.exists() else [], row)
    datasets.write_rows(out, rows)
    learn = f"train reranker --collection {collection} --dataset {out} …"
    use = learn if flags["pair"] else f"evaluate --collection {collection} --answers --dataset {out} {GATE}"
    text = f"{describe_row(row, rows.index(row) + 1)}\nin {out}: `raydex {use}`"
    cli.finish({"out": str(out), "row": row}, flags["json"], text)
    return cli.DONE


def make_correction(store: Store, flags: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the collection of the question, and the row for it.

    Raises BadInput, NoSuchQuestion and NoSuchSection.
    """
    wanted, sources = flags["collection"], flags["source"]
    asked = store.named_question(flags["question"], wanted)
    collection = wanted or asked.collection or choose_collection(store.collections())
    checked = [section.source for section in pin_sections(store, collection, sources)] if sources else []
    row = corrected_row(asked, checked, pair=flags["pair"])
    if flags["pair"] and not row.get("negatives"):
        raise cli.BadInput(f"the answer to {row['question']!r} cites no other source than {', '.join(checked)}")
    return collection, row


ACTIONS = {"make": make, "answer": answer, "review": review, "correct": correct}


if __name__ == "__main__":
    cli.main(arguments(), run)
