"""Makes questions to evaluate by: of a collection's own chunks, or of what people asked and rated.

The first configured language model writes them, or headings and first sentences do without one (--without-llm); each
is kept once, and only if retrieval finds its source. With --answers DATASET the model writes the reference answers that
a data set lacks. The model's replies are kept beside --out: a run that was interrupted continues from there.
With --feedback the questions whose answers were rated well become drafts, which a person accepts or rejects by
--review; --regression and --correct turn a wrong answer and its right source into a question to measure, or learn, by.
Exit codes: 0 done, 1 failed or nothing could be made, 2 bad input.
"""

import argparse
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from jobs.cli import DONE, FAILED, BadInput, add_collection, add_json, check_range, command, finish, main, say
from jobs.environment import open_store, read_configuration
from pipelines.answering.factory import make_llm
from pipelines.answering.retrieval.live import choose_collection
from pipelines.answering.settings import AnswerSettings, all_agents
from pipelines.answering.verified.writing import pin_sections
from pipelines.evaluation.dataset import (
    ACCEPTED,
    DRAFT,
    REJECTED,
    ReviewState,
    read_answerable,
    read_dataset,
    read_questions,
    read_rows,
    review_of,
    write_dataset,
    write_rows,
)
from pipelines.evaluation.questions.feedback import add_drafts, corrected_row, put_row, review_rows
from pipelines.evaluation.questions.labelling import LEAD
from pipelines.evaluation.questions.run import (
    FIND_IN,
    DatasetDraft,
    LabelOptions,
    QuestionOptions,
    answer_questions,
    label_questions,
    make_questions,
    rated_questions,
)
from pipelines.llm.cached import CachedModel
from pipelines.store import NoSuchCollection, Store

RANGES = {
    "limit": (0, 10**9),
    "per-chunk": (1, 20),
    "find-in": (0, 100),
    "at-once": (1, 1_000),
    "lead": (0, 1),
    "sure": (0, 1),
}
WORKS = ("answers", "feedback", "label", "review", "regression", "correct")
GATE = "--at-least source_cited=1"
NO_COUNTS = ("collection", "out", "written", "errors", "precision")
LABEL = "label these questions (JSONL, CSV, or one a line); without a file: those that the collection was asked"
CHECK = "questions with their sources that no label is given to; they show how often labels are right"


def arguments() -> argparse.ArgumentParser:
    parser = command("questions", __doc__)
    add_collection(parser, "name of the collection (needed unless reviewing)")
    parser.add_argument("--out", type=Path, help="the data set to write (JSONL; needed unless reviewing)")
    parser.add_argument("--answers", type=Path, metavar="DATASET", help="fill in its missing reference answers")
    parser.add_argument("--without-llm", action="store_true", help="from headings and first sentences")
    parser.add_argument("--feedback", action="store_true", help="drafts: questions with well-rated answers")
    people = parser.add_argument_group("what people say")
    people.add_argument("--review", type=Path, metavar="FILE", help="list a data set with its drafts, or:")
    people.add_argument("--accept", nargs="+", default=[], metavar="N", help="accept these rows, or all drafts")
    people.add_argument("--reject", nargs="+", default=[], metavar="N", help="reject these rows, or all drafts")
    source = "with --accept N, --regression, --correct: the right source; repeatable"
    people.add_argument("--source", action="append", default=[], metavar="SOURCE", help=source)
    regression = "the question that was answered wrongly, by id or words, becomes a row of --out, to evaluate by"
    people.add_argument("--regression", metavar="QUESTION", help=regression)
    correct = "it becomes a training pair of --out: the right source, and the wrongly cited ones"
    people.add_argument("--correct", metavar="QUESTION", help=correct)
    unknown = "with --regression: no source answers it, the right answer is that it is not known"
    people.add_argument("--unknown", action="store_true", help=unknown)
    parser.add_argument("--style", type=Path, metavar="FILE", help="write in the manner of these questions of users")
    parser.add_argument("--label", type=Path, nargs="*", metavar="FILE", help=LABEL)
    parser.add_argument("--check", type=Path, metavar="DATASET", help=CHECK)
    parser.add_argument("--lead", type=float, default=LEAD, help=f"least lead of a label's page (default {LEAD})")
    parser.add_argument("--sure", type=float, help="ask the model too: its least probability that the passage answers")
    parser.add_argument("--agent", help="the agent whose model writes (default: the first)")
    parser.add_argument("--limit", type=int, default=200, help="chunks to ask about, 0 for all (default 200)")
    parser.add_argument("--per-chunk", type=int, default=2, help="most questions of a chunk (default 2)")
    find_in = f"keep a question if its page is among the first K hits, 0: keep all (default {FIND_IN})"
    parser.add_argument("--find-in", type=int, default=FIND_IN, metavar="K", help=find_in)
    parser.add_argument("--at-once", type=int, default=4, help="calls of the model at a time (default 4)")
    parser.add_argument("--seed", type=int, default=0, help="draws other chunks")
    parser.add_argument("--fresh", action="store_true", help="ask the model again, whatever it has replied before")
    add_json(parser)
    return parser


def make_writer(settings: AnswerSettings, agent: str | None, out: Path, fresh: bool) -> CachedModel:
    """Return the language model that writes, with its earlier replies for this `out`. Raises BadInput."""
    agents = all_agents(settings)
    named = [each for each in agents if agent in (None, each.name)]
    if not agents:
        raise BadInput("no language model is configured: set RAYDEX_LLM_MODEL (and RAYDEX_LLM_URL), or --without-llm")
    if not named:
        raise BadInput(f"--agent is {agent!r}; there are: {', '.join(each.name for each in agents)}")
    path = out.with_name(f".{out.name}.replies")
    if fresh:
        path.unlink(missing_ok=True)
    return CachedModel(make_llm(named[0]), path)


def check_flags(flags: Mapping[str, Any]) -> None:
    """Raise BadInput for a flag out of range, or flags that do not go together."""
    for flag, (least, most) in RANGES.items():
        check_range(f"--{flag}", flags[flag.replace("-", "_")], least, most)
    wanted = [name for name in WORKS if flags[name] not in (None, False)]
    if len(wanted) > 1:
        raise BadInput(f"--{wanted[0]} and --{wanted[1]} are two works: give one of them")
    if flags["answers"] and flags["without_llm"]:
        raise BadInput("--answers needs a language model: leave --without-llm out")
    if flags["feedback"] and flags["without_llm"]:
        raise BadInput("--feedback writes what was asked and rated: leave --without-llm out")
    if flags["label"] is None and (flags["check"] or flags["sure"] is not None):
        raise BadInput("--check and --sure are about labels: give --label too")
    if flags["sure"] is not None and flags["without_llm"]:
        raise BadInput("--sure asks a language model: leave --without-llm out")
    if flags["style"] and (wanted or flags["without_llm"]):
        raise BadInput(f"--style is for questions that a model writes: leave --{(*wanted, 'without-llm')[0]} out")
    check_people(flags)
    needed = () if flags["review"] else ("out",) if flags["regression"] or flags["correct"] else ("collection", "out")
    if missing := [name for name in needed if not flags[name]]:
        raise BadInput(f"--{missing[0]} is missing")
    if flags["out"] and not flags["out"].parent.is_dir():
        raise BadInput(f"--out is {flags['out']}: there is no folder {flags['out'].parent}")


def check_people(flags: Mapping[str, Any]) -> None:
    """Raise BadInput for flags of what people say that do not go together."""
    corrected = flags["regression"] or flags["correct"]
    if (flags["accept"] or flags["reject"]) and not flags["review"]:
        raise BadInput("--accept and --reject are about a data set: name it with --review FILE")
    if flags["review"] and flags["source"] and len(flags["accept"]) != 1:
        raise BadInput("--source corrects one row: give it with --accept N")
    if flags["source"] and not (flags["review"] or corrected):
        raise BadInput("--source goes with --accept N, --regression ID or --correct ID")
    if flags["unknown"] and (flags["source"] or not flags["regression"]):
        raise BadInput("--unknown goes with --regression, without --source")
    if corrected and not (flags["source"] or flags["unknown"]):
        raise BadInput("name the source that answers it with --source URL#ANCHOR, or --unknown if nothing does")


def review(path: Path, accept: Sequence[str], reject: Sequence[str], sources: Sequence[str], *, as_json: bool) -> None:
    """Accept and reject rows of a data set, and list it."""
    rows = read_rows(path)
    states: tuple[tuple[Sequence[str], ReviewState], ...] = ((accept, ACCEPTED), (reject, REJECTED))
    for words, state in states:
        rows = review_rows(rows, row_numbers(words, rows), state, sources if state == ACCEPTED else ())
    if accept or reject:
        write_rows(path, rows)
    counts = Counter(review_of(row) for row in rows)
    lines = [f"{path}: {', '.join(f'{of:,} {state}' for state, of in counts.items()) or 'no row'}"]
    lines += [describe_row(row, number) for number, row in enumerate(rows, 1)]
    finish({"file": str(path), "rows": rows, "counts": dict(counts)}, as_json, "\n".join(lines))


def row_numbers(words: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> list[int]:
    """Return the numbers of rows that "3", "5-9" and "all" (drafts) name. Raises BadInput."""
    numbers: list[int] = []
    for word in words:
        first, _, last = word.partition("-")
        if word == "all":
            numbers += [n for n, row in enumerate(rows, 1) if review_of(row) == DRAFT]
        elif first.isdecimal() and (last or first).isdecimal():
            numbers += range(int(first), int(last or first) + 1)
        else:
            raise BadInput(f"{word!r} is no number of a row: write 3, 5-9 or all")
    return numbers


def describe_row(row: Mapping[str, Any], number: int) -> str:
    """Return the lines about a row of a data set for a person."""
    sources = row.get("sources") or [row.get("source") or "not known"]
    shown = [sources] if isinstance(sources, str) else sources
    wrong = [f"{'':14}not {source}" for source in row.get("negatives") or ()]
    return "\n".join(
        [
            f"{number:4} {review_of(row):8} {' '.join(row['question'].split())}",
            *(f"{'':14}{one}" for one in shown),
            *wrong,
        ]
    )


def correct(
    store: Store, id: str, wanted: str | None, out: Path, sources: Sequence[str], *, pair: bool, as_json: bool
) -> None:
    """Write the row of a question that was answered wrongly into `out`; `wanted` is the collection that is meant.

    Raises BadInput and NoSuchSection.
    """
    asked = store.named_question(id, wanted)
    if asked is None:
        raise BadInput(
            f"no question with the id, or the words, {id!r} is recorded: `raydex insights` shows what is asked"
        )
    collection = wanted or asked.collection or choose_collection(store.collections())
    checked = [section.source for section in pin_sections(store, collection, sources)] if sources else []
    row = corrected_row(asked, checked, pair=pair)
    if pair and not row.get("negatives"):
        raise BadInput(f"the answer to {row['question']!r} cites no other source than {', '.join(checked)}")
    rows = put_row(read_rows(out) if out.exists() else [], row)
    write_rows(out, rows)
    use = f"evaluate --collection {collection} --answers --dataset {out} {GATE}"
    hint = f"`raydex {f'train reranker --collection {collection} --dataset {out} …' if pair else use}`"
    finish({"out": str(out), "row": row}, as_json, f"{describe_row(row, rows.index(row) + 1)}\nin {out}: {hint}")


def work(args: argparse.Namespace) -> int:
    check_flags(vars(args))
    if args.review:
        review(args.review, args.accept, args.reject, args.source, as_json=args.json)
        return DONE
    if id := args.regression or args.correct:
        with open_store() as store:
            pair, as_json = bool(args.correct), args.json
            correct(store, id, args.collection, args.out, args.source, pair=pair, as_json=as_json)
        return DONE
    settings, llm = read_configuration(), None
    examples = read_dataset(args.answers) if args.answers else []
    known = read_answerable(args.check) if args.check else []
    asked = [question for file in args.label or () for question in read_questions(file)]
    style = read_questions(args.style) if args.style else ()
    options = QuestionOptions(args.limit, args.per_chunk, args.find_in, args.seed, args.at_once, style)
    if not (args.feedback or args.without_llm or (args.label is not None and args.sure is None)):
        llm = make_writer(settings, args.agent, args.out, args.fresh)
    with open_store() as store:
        if args.feedback:
            draft = rated_questions(store, args.collection)
            names = [row["name"] for row in store.collections()]
            if not draft.examples and args.collection not in names:
                raise NoSuchCollection(args.collection, names)
        elif args.answers and llm:
            draft = answer_questions(store, args.collection, llm, examples, args.at_once, say)
        elif args.label is not None:
            asked = asked or store.asked_questions(args.collection)
            sure = LabelOptions(args.lead, args.sure, args.at_once)
            draft = label_questions(store, settings, args.collection, llm, asked, known, sure, say)
        else:
            draft = make_questions(store, settings, args.collection, llm, options, say)
    result = {"collection": args.collection, "out": str(args.out), **summary(draft, llm)}
    if args.feedback:
        rows, new = add_drafts(read_rows(args.out) if args.out.exists() else [], draft.examples)
        result |= {"new": new, "kept": len(rows) - new}
        if rows:
            write_rows(args.out, rows)
    elif draft.examples:
        write_dataset(args.out, draft.examples)
    finish(result, args.json, describe(result))
    return DONE if draft.examples or args.feedback else FAILED


def summary(draft: DatasetDraft, llm: CachedModel | None) -> dict[str, Any]:
    """Return the counts and costs of a draft."""
    model, reused = (llm.model, llm.reused) if llm else (None, 0)
    written = {"model": model, "written": len(draft.examples)}
    paid = {"reused": reused, "usage": asdict(draft.usage)}
    failed = {"failed": sum(draft.errors.values()), "errors": dict(draft.errors)}
    checked = {"precision": list(draft.precision)} if draft.precision else {}
    return {**written, **draft.counts, **failed, **paid, **checked}


def describe(summary: Mapping[str, Any]) -> str:
    """Return the summary for a person."""
    shown: dict[str, Callable[[Any], str]] = {"usage": lambda u: f"{u['calls']:,} calls, ${u['cost']:.4f}"}
    counted = {name: value for name, value in summary.items() if name not in NO_COUNTS}
    lines = [f"  {name:12} {shown.get(name, str)(value)}" for name, value in counted.items() if value is not None]
    lines += [f"  {count:>5,} × {reason}" for reason, count in summary["errors"].items()]
    written = f"{summary['written']:,} questions in {summary['out']}"
    none = "no answer was rated well" if "new" in summary else "no question could be made"
    head = written if summary["written"] else none
    lines += [f"  {line}" for line in describe_precision(summary.get("precision", ()))]
    return "\n".join([f"collection {summary['collection']}: {head}", *lines])


def describe_precision(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the table of a check, line by line: how often labels are right, by threshold."""
    head = f"{'threshold':11} {'kept':>6} {'coverage':>9}  {'right page':17}  right section"
    return ["", head, *map(_precision_line, rows)] if rows else []


def _precision_line(row: Mapping[str, Any]) -> str:
    start = f"{row['by']:5} ≥ {row['at']:.1f} {row['kept']:6,} {row['coverage']:10.2f}"
    return f"{start}  {_interval(row['page'])}  {_interval(row['section'])}"


def _interval(score: Sequence[float]) -> str:
    value, low, high = score
    return f"{value:.2f} [{low:.2f}, {high:.2f}]"


if __name__ == "__main__":
    main(arguments(), work)
