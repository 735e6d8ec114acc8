"""Makes evaluation questions, answers and reviews them, and turns wrong answers into questions.

`make` lets a language model write questions about a collection's own chunks, uses the headings of its sections
(--without-llm), or collects questions whose answers readers rated well (--feedback), as drafts for a person to accept
or reject with `review`. `answer` lets the model write the missing reference answers of a data set. `correct` turns a
wrongly answered question into one for evaluation, or, with --pair, for training. The model's replies are stored next to
--out, so an interrupted run continues from there. Exit codes: 0 done, 1 failed or nothing could be made, 2 bad input.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from jobs import cli
from jobs.environment import open_store, read_configuration
from jobs.flags import Json, at_most_one, command, fill, flags_of
from pipelines.answering.factory import make_llm
from pipelines.answering.retrieval.live import choose_collection
from pipelines.answering.settings import AnswerSettings, all_agents
from pipelines.answering.verified.writing import pin_sections
from pipelines.evaluation import dataset as datasets
from pipelines.evaluation.questions import making
from pipelines.evaluation.questions.feedback import add_drafts, corrected_row, put_answers, put_row, review_rows
from pipelines.llm.cached import CachedModel
from pipelines.store import NoSuchCollection, Store
from pipelines.text.counts import counted
from pipelines.text.sheets import Fact, Grid, Sheet, row_with_lines

GATE = "--at-least source_cited=1"
NO_COUNTS = ("collection", "out", "written", "errors")


FEEDBACK = "write drafts from questions with well-rated answers or opened sources"
STYLE = "imitate the style of these users' questions"
ROWS = "rows by number, as 3 or 5-9, or all drafts"

Of = Annotated[str, Parameter("--collection", help="name of the collection")]
Agent = Annotated[str | None, Parameter(help="the agent whose model writes (default: the first)")]
Again = Annotated[bool, Parameter(help="ask the model again and ignore stored replies")]
Out = Annotated[Path, Parameter(help="the data set to write (JSONL)")]
MakingFlags: Any = flags_of(making.QuestionOptions)

app = command("questions", __doc__)


def check_name(path: Path) -> None:
    """Raise BadInput for a data set that can't be written."""
    if path.suffix.lower() == ".csv":
        raise cli.BadInput(f"{path} is CSV, and questions are written as JSONL: name a file that ends with .jsonl")


# ------------------------------------------------------------------------------------------- make and answer


@app.command
def make(
    *,
    collection: Of,
    out: Out,
    without_llm: Annotated[bool, Parameter(help="make questions from headings, without a model")] = False,
    feedback: Annotated[bool, Parameter(help=FEEDBACK)] = False,
    style: Annotated[Path | None, Parameter(help=STYLE)] = None,
    agent: Agent = None,
    fresh: Again = False,
    options: MakingFlags | None = None,
    as_json: Json = False,
) -> int:
    """Write questions about a collection, or drafts of the ones that were rated well."""
    at_most_one(without_llm=without_llm, feedback=feedback, style=style)
    check_name(out)
    chosen, settings = fill(making.QuestionOptions, options), read_configuration()
    if style:
        chosen = chosen.model_copy(update={"style": tuple(datasets.read_questions(style))})
    cli.make_folder("--out", out.parent)
    if feedback:
        return draft_rated(collection, out, as_json=as_json)
    llm = None if without_llm else make_writer(settings, out, agent, fresh, ", or give --without-llm")
    with open_store() as store:
        draft = making.make_questions(store, settings, collection, llm, chosen, cli.say)
    return write_draft(draft, map(datasets.as_row, draft.examples), llm, collection, out, as_json)


@app.command
def answer(
    dataset: Annotated[Path, Parameter(help="questions with their sources")],
    /,
    *,
    collection: Of,
    out: Out,
    agent: Agent = None,
    fresh: Again = False,
    at_once: Annotated[int, Parameter(help="concurrent calls of the model")] = 4,
    as_json: Json = False,
) -> int:
    """Write the reference answers that a data set lacks."""
    check_name(out)
    cli.check_range("--at-once", at_once, 1, 1_000)
    cli.make_folder("--out", out.parent)
    llm = make_writer(read_configuration(), out, agent, fresh)
    rows, examples = datasets.read_rows(dataset), datasets.read_dataset(dataset)
    with open_store() as store:
        draft = making.answer_questions(store, collection, llm, examples, at_once, cli.say)
    return write_draft(draft, put_answers(rows, draft.examples), llm, collection, out, as_json)


def make_writer(settings: AnswerSettings, out: Path, agent: str | None, fresh: bool, instead: str = "") -> CachedModel:
    """Return the language model that writes, with its earlier replies for this --out. Raises BadInput.

    `instead` ends the message that there is none.
    """
    agents = all_agents(settings)
    named = [each for each in agents if agent in (None, each.name)]
    if not agents:
        raise cli.BadInput(f"no language model is configured: set RAYDEX_LLM_MODEL (and RAYDEX_LLM_URL){instead}")
    if not named:
        raise cli.BadInput(f"--agent is {agent!r}; there are: {', '.join(each.name for each in agents)}")
    path = out.with_name(f".{out.name}.replies")
    if fresh:
        path.unlink(missing_ok=True)
    return CachedModel(make_llm(named[0]), path)


def write_draft(
    draft: making.QuestionSet,
    rows: Iterable[Mapping[str, Any]],
    llm: CachedModel | None,
    collection: str,
    out: Path,
    as_json: bool,
) -> int:
    """Write the rows of a draft, if it has any, and print their costs."""
    if draft.examples:
        datasets.write_rows(out, rows)
    result = {"collection": collection, "out": str(out), **summary(draft, llm)}
    cli.finish(result, as_json, describe(result, "no question could be made"))
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


def describe(summary: Mapping[str, Any], none: str) -> Sheet:
    """Return the summary for a person; `none` is the message if nothing was written."""
    usage = f"{counted(summary['usage']['calls'], 'call')}, ${summary['usage']['cost']:.4f}"
    known = {name: value for name, value in summary.items() if name not in NO_COUNTS} | {"usage": usage}
    head = f"{counted(summary['written'], 'question')} in {summary['out']}" if summary["written"] else none
    facts = [Fact(name.replace("_", " "), f"{value}") for name, value in known.items() if value is not None]
    reasons = [Fact(f"{count:,} ×", reason) for reason, count in summary["errors"].items()]
    return Sheet(f"collection {summary['collection']}: {head}", [*facts, *reasons])


# ------------------------------------------------------------------------------------------- review and correct


@app.command
def review(
    file: Annotated[Path, Parameter(help="the data set")],
    /,
    *,
    accept: Annotated[tuple[str, ...], Parameter(consume_multiple=True, help=f"accept {ROWS}")] = (),
    reject: Annotated[tuple[str, ...], Parameter(consume_multiple=True, help=f"reject {ROWS}")] = (),
    source: Annotated[tuple[str, ...], Parameter(help="with --accept N: the right source; repeatable")] = (),
    as_json: Json = False,
) -> int:
    """List a data set with its drafts, accept and reject them."""
    check_name(file)
    rows = datasets.read_rows(file)
    if source and len(row_numbers(accept, rows)) != 1:
        raise cli.BadInput("--source corrects one row: give it with --accept N")
    states: tuple[tuple[Sequence[str], datasets.ReviewState], ...] = (
        (accept, datasets.ACCEPTED),
        (reject, datasets.REJECTED),
    )
    for words, state in states:
        rows = review_rows(rows, row_numbers(words, rows), state, source if state == datasets.ACCEPTED else ())
    if accept or reject:
        datasets.write_rows(file, rows)
    counts = Counter(datasets.review_of(row) for row in rows)
    head = f"{file}: {', '.join(f'{of:,} {state}' for state, of in counts.items()) or 'no row'}"
    result = Sheet(head, [table_of(enumerate(rows, 1))] if rows else [])
    cli.finish({"file": str(file), "rows": rows, "counts": dict(counts)}, as_json, result)
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
            raise cli.BadInput(f"{word!r} is not a row number: write 3, 5-9 or all")
    return numbers


def table_of(rows: Iterable[tuple[int, Mapping[str, Any]]]) -> Grid:
    """Return numbered rows of a data set: their states, questions, right and wrong sources."""
    lines = []
    for number, row in rows:
        sources = row.get("sources") or row.get("source") or "not known"
        shown = [sources] if isinstance(sources, str) else sources
        wrong = [f"not {source}" for source in row.get("negatives") or ()]
        cells = [str(number), datasets.review_of(row), " ".join(row["question"].split())]
        lines += row_with_lines(cells, [*shown, *wrong])
    return Grid(["", "", ""], lines, "><<")


@app.command
def correct(
    *words: Annotated[str, Parameter("question", help="its id or its text")],
    out: Out,
    collection: Annotated[str | None, Parameter(help="its collection (default: the one it was asked in)")] = None,
    source: Annotated[tuple[str, ...], Parameter(help="a section that answers it; repeatable")] = (),
    pair: Annotated[bool, Parameter(help="write a training pair, with the wrong sources")] = False,
    unknown: Annotated[bool, Parameter(help="no source answers it; the right answer is that it is unknown")] = False,
    as_json: Json = False,
) -> int:
    """Turn a wrongly answered question into a row of a data set."""
    check_name(out)
    if unknown and (source or pair):
        raise cli.BadInput("--unknown can't be combined with --source or --pair: no source answers it")
    if not (source or unknown):
        raise cli.BadInput("name the source that answers it with --source URL#ANCHOR, or --unknown if nothing does")
    cli.make_folder("--out", out.parent)
    with open_store() as store:
        asked, row = make_correction(store, " ".join(words), collection, source, pair)
    rows = put_row(datasets.read_rows(out) if out.exists() else [], row)
    datasets.write_rows(out, rows)
    learn = f"train reranker --collection {asked} --dataset {out} …"
    use = learn if pair else f"evaluate --collection {asked} --answers --dataset {out} {GATE}"
    result = Sheet(f"row {rows.index(row) + 1:,} of {out}", [table_of([(rows.index(row) + 1, row)]), f"`raydex {use}`"])
    cli.finish({"out": str(out), "row": row}, as_json, result)
    return cli.DONE


def make_correction(
    store: Store, question: str, wanted: str | None, sources: Sequence[str], pair: bool
) -> tuple[str, dict[str, Any]]:
    """Return the collection of the question, and the row for it.

    Raises BadInput, NoSuchQuestion and NoSuchSection.
    """
    asked = store.named_question(question, wanted)
    collection = wanted or asked.collection or choose_collection(store.collections())
    checked = [section.source for section in pin_sections(store, collection, sources)] if sources else []
    row = corrected_row(asked, checked, pair=pair)
    if pair and not row.get("negatives"):
        raise cli.BadInput(f"the answer to {row['question']!r} cites no other source than {', '.join(checked)}")
    return collection, row


if __name__ == "__main__":
    cli.main(app)
