"""`python -m jobs.questions`: questions for an evaluation, out of a collection's own chunks.

The first configured language model writes them, or headings and first sentences do without one (--without-llm); each
is kept once, and only if retrieval finds its source. With --answers DATASET the model writes the reference answers that
a data set lacks; with --feedback the questions whose answers were rated well are the data set. What the model has said
is kept beside --out: a run that was ended goes on from there.
Exit codes: 0 done, 1 failed or nothing could be made, 2 bad input.
"""

import argparse
import asyncio
import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from jobs.cli import FAILED, BadInput, command, finish, main, say
from jobs.environment import open_store, read_configuration
from pipelines.answering.factory import make_engine, make_llm, make_retriever
from pipelines.answering.settings import AgentSettings, AnswerSettings, all_agents
from pipelines.evaluation.dataset import Example, read_dataset, write_dataset
from pipelines.evaluation.questions.feedback import from_ratings
from pipelines.evaluation.questions.writing import (
    LEAST_TEXT,
    Made,
    deduplicated,
    drawn,
    findable,
    reference_answers,
    section_passages,
    section_starts,
    template_questions,
    written_questions,
)
from pipelines.llm.cached import CachedModel
from pipelines.llm.retry import Progress
from pipelines.records import Hit, Usage
from pipelines.store import Store

# The filter looks as deep as the retriever's legs do: far deeper than what an evaluation measures.
FIND_IN = 50
PATIENCE_S = 60.0  # a first question builds BM25


def arguments() -> argparse.ArgumentParser:
    parser = command("questions", __doc__)
    parser.add_argument("--collection", required=True)
    parser.add_argument("--out", type=Path, required=True, help="the data set to write (JSONL)")
    parser.add_argument("--answers", type=Path, metavar="DATASET", help="fill in its missing reference answers")
    parser.add_argument("--without-llm", action="store_true", help="from headings and first sentences")
    parser.add_argument("--feedback", action="store_true", help="questions with well-rated answers, as these cite")
    parser.add_argument("--agent", help="the agent whose model writes (default: the first)")
    parser.add_argument("--limit", type=int, default=200, help="chunks to ask about, 0 for all (default 200)")
    parser.add_argument("--per-chunk", type=int, default=2, help="questions of a chunk at most (default 2)")
    parser.add_argument(
        "--find-in", type=int, default=FIND_IN, metavar="K",
        help=f"keep a question if its page is among the first K hits, 0: keep all (default {FIND_IN})",
    )  # fmt: skip
    parser.add_argument("--at-once", type=int, default=4, help="calls of the model at a time (default 4)")
    parser.add_argument("--seed", type=int, default=0, help="draws other chunks")
    parser.add_argument("--fresh", action="store_true", help="ask the model anew, whatever it has said before")
    parser.add_argument("--json", action="store_true", help="print one JSON object, last line")
    return parser


def work(args: argparse.Namespace) -> int:
    check(args)
    configuration = read_configuration().model_copy(update={"patience_s": PATIENCE_S})
    examples = read_dataset(args.answers) if args.answers else []
    with open_store() as store:
        if args.feedback:
            summary = rated(args, store)
        elif args.answers:
            summary = answers(args, configuration, store, examples)
        else:
            summary = questions(args, configuration, store)
    finish(summary, args.json, describe(summary))
    return 0 if summary["written"] else FAILED


def check(args: argparse.Namespace) -> None:
    """Raise BadInput for flags that can't be used."""
    for name, least, most in [("limit", 0, 10**9), ("per_chunk", 1, 20), ("find_in", 0, 100), ("at_once", 1, 1_000)]:
        if not least <= (value := getattr(args, name)) <= most:
            raise BadInput(f"--{name.replace('_', '-')} is {value}: it must be {least} to {most}")
    if args.answers and args.without_llm:
        raise BadInput("--answers needs a language model: leave --without-llm out")
    if args.feedback and (args.answers or args.without_llm):
        raise BadInput("--feedback writes what was asked and rated: leave --answers and --without-llm out")
    if not args.out.parent.is_dir():
        raise BadInput(f"--out is {args.out}: there is no folder {args.out.parent}")


def questions(args: argparse.Namespace, configuration: AnswerSettings, store: Store) -> dict[str, Any]:
    """Make questions and write those that are kept; the summary."""
    llm = None if args.without_llm else model(configuration, args)
    with scanned(store, args.collection) as chunks:
        starts = section_starts(chunks)
    made, asked = asyncio.run(writing(llm, starts, args)) if llm else templates(starts, args)
    once = deduplicated(made.examples)
    kept = found(args, configuration, store, once) if args.find_in else once
    counts = {"chunks": asked, "made": len(made.examples), "duplicates": len(made.examples) - len(once),
              "not_found": len(once) - len(kept)}  # fmt: skip
    return written(args, kept, llm, made, counts)


def answers(
    args: argparse.Namespace, configuration: AnswerSettings, store: Store, examples: Sequence[Example]
) -> dict[str, Any]:
    """Fill in the missing answers and write the whole data set; the summary."""
    llm = model(configuration, args)
    sources = {source for example in examples if example.answer is None for source in example.sources}
    with scanned(store, args.collection) as chunks:
        passages = section_passages(chunks, sources)

    async def answer() -> Made:
        with_answers = reference_answers(llm, examples, passages, args.at_once, told("answered"))
        return await closing(llm, with_answers)

    made = asyncio.run(answer())
    had = sum(example.answer is not None for example in examples)
    have = sum(example.answer is not None for example in made.examples)
    return written(args, made.examples, llm, made, {"had_answers": had, "answered": have - had})


def rated(args: argparse.Namespace, store: Store) -> dict[str, Any]:
    """Write the questions whose answers were rated well, with the sources that these cite; the summary."""
    said = from_ratings(store.rated_questions(args.collection))
    return written(args, said.examples, None, Made((), Usage(), {}), {"disliked": len(said.disliked)})


async def writing(llm: CachedModel, starts: Sequence[Hit], args: argparse.Namespace) -> tuple[Made, int]:
    """Questions that the model writes, and of how many chunks."""
    chunks = drawn(starts, args.limit, args.seed, LEAST_TEXT)
    made = await closing(llm, written_questions(llm, chunks, args.per_chunk, args.at_once, told("chunks")))
    return made, len(chunks)


def templates(starts: Sequence[Hit], args: argparse.Namespace) -> tuple[Made, int]:
    """Questions out of headings, and of how many chunks; what too many pages ask is known before any is drawn."""
    good = {example.sources[0]: example for example in deduplicated(template_questions(starts).examples)}
    chunks = drawn([chunk for chunk in starts if chunk.source in good], args.limit, args.seed, least=0)
    return Made(tuple(good[chunk.source] for chunk in chunks), Usage(), {}), len(chunks)


async def closing(llm: CachedModel, made: Any) -> Made:
    """What `made` comes to, the model's connections closed after it."""
    try:
        result: Made = await made
        return result
    finally:
        await llm.close()


def found(
    args: argparse.Namespace, configuration: AnswerSettings, store: Store, examples: Sequence[Example]
) -> list[Example]:
    """The examples whose page the configured retrieval finds, without what else would be asked a model for each."""
    free = configuration.model_copy(update={"num_queries": 1, "reranker": "none"})
    with contextlib.closing(make_retriever(configuration, store)) as retriever:
        engine = make_engine(free, retriever)

        async def search(question: str) -> Sequence[Hit]:
            return (await engine.asearch(question, collection=args.collection, k=args.find_in)).hits

        return asyncio.run(findable(examples, search, args.at_once, told("searched")))


def model(configuration: AnswerSettings, args: argparse.Namespace) -> CachedModel:
    """The language model that writes, with what it has said for this --out. Raises BadInput."""
    path = args.out.with_name(f".{args.out.name}.replies")
    llm = make_llm(writer(configuration, args.agent))
    if args.fresh:
        path.unlink(missing_ok=True)
    return CachedModel(llm, path)


def writer(configuration: AnswerSettings, agent: str | None) -> AgentSettings:
    """The agent whose model writes. Raises BadInput."""
    agents = all_agents(configuration)
    named = [one for one in agents if agent in (None, one.name)]
    if not agents:
        raise BadInput("no language model is configured: set RAYDEX_LLM_MODEL (and RAYDEX_LLM_URL), or --without-llm")
    if not named:
        raise BadInput(f"--agent is {agent!r}; there are: {', '.join(one.name for one in agents)}")
    return named[0]


@contextlib.contextmanager
def scanned(store: Store, collection: str) -> Iterator[Iterator[Hit]]:
    """The chunks of the collection's live index. Raises NoLiveIndex."""
    with store.scan_chunks(store.live_index(collection).id) as (_, chunks):
        yield chunks


def told(what: str) -> Progress:
    """Says every tenth of the way."""

    def heard(done: int, of: int) -> None:
        if done == of or done % max(1, of // 10) == 0:
            say(f"{what}: {done:,} of {of:,}")

    return heard


def written(
    args: argparse.Namespace, examples: Sequence[Example], llm: CachedModel | None, made: Made, counts: dict[str, int]
) -> dict[str, Any]:
    """Write the data set, unless it is empty; the summary."""
    if examples:
        write_dataset(args.out, examples)
    return {
        "collection": args.collection,
        "out": str(args.out),
        "model": llm.model if llm else None,
        "written": len(examples),
        **counts,
        "failed": sum(made.errors.values()),
        "errors": made.errors,
        "reused": llm.reused if llm else 0,
        "usage": asdict(made.usage),
    }


def describe(summary: dict[str, Any]) -> str:
    """The summary for a person."""
    shown: dict[str, Callable[[Any], str]] = {"usage": lambda u: f"{u['calls']:,} calls, ${u['cost']:.4f}"}
    counted = {name: value for name, value in summary.items() if name not in ("collection", "out", "written", "errors")}
    lines = [f"  {name:12} {shown.get(name, str)(value)}" for name, value in counted.items() if value is not None]
    lines += [f"  {count:>5,} × {reason}" for reason, count in summary["errors"].items()]
    head = (
        f"{summary['written']:,} questions in {summary['out']}" if summary["written"] else "no question could be made"
    )
    return "\n".join([f"collection {summary['collection']}: {head}", *lines])


if __name__ == "__main__":
    main(arguments(), work)
