"""`python -m jobs.train_reranker`: a small cross-encoder learns to rerank the hits of a collection.

Wrong answers are mined from the collection's own retrieval. Held-out pages judge it: the folder's card.json says
whether it was accepted. Use it with RAYDEX_RERANKER=cross-encoder and RAYDEX_RERANKER_MODEL=FOLDER. What was
interrupted goes on from its last checkpoint.
Exit codes: 0 trained and accepted, 1 failed, 2 bad input, 4 trained but not accepted.
"""

import argparse
import asyncio
import contextlib
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from jobs.cli import BadInput, finish, main, say
from jobs.environment import open_store, read_configuration
from pipelines.answering.factory import make_retriever
from pipelines.answering.reranking.cross_encoder import CrossEncoderReranker
from pipelines.answering.retrieval.fusion import spread_pages, take_diverse
from pipelines.answering.retrieval.search import Search
from pipelines.embedding.tokens import TokenCounter, load_tokenizer
from pipelines.evaluation.dataset import Example, page_of, read_dataset, sample
from pipelines.evaluation.questions.feedback import Feedback, from_ratings, same
from pipelines.records import Hit
from pipelines.training import cross_encoder
from pipelines.training.card import Verdict, beside, card, check_free, checkpoints, judged, put
from pipelines.training.embedder import check_trainer
from pipelines.training.mining import Corpus, Triple, answered, split

NOT_ACCEPTED = 4
KS = (1, 3, 5, 9, 18)
MINED_FROM = 60  # hits looked through for wrong answers: enough where a page has many of the best


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m jobs.train_reranker", description=__doc__.split("\n\n")[0])
    parser.add_argument("--collection", help="whose hits are reranked (default: the only one)")
    parser.add_argument("--dataset", type=Path, required=True, help="questions with their sources, JSONL or JSON")
    parser.add_argument("--output", type=Path, required=True, help="folder of the trained model")
    parser.add_argument("--model", help="whose weights it begins with (default: the index's embedding model)")
    parser.add_argument("--questions", type=int, default=2_000, help="learn from so many (default 2000; 0: all)")
    parser.add_argument("--held-out", type=int, default=200, help="judge by so many (default 200; 0: all held out)")
    parser.add_argument("--negatives", type=int, default=4, help="mined wrong answers a question (default 4)")
    parser.add_argument("--feedback", action="store_true", help="learn from ratings of the service's answers too")
    parser.add_argument("--depth", type=int, default=30, help="hits that are reranked when judging (default 30)")
    parser.add_argument("--k", type=int, default=9, help="the gate goes by so many hits (default 9)")
    parser.add_argument("--loss", choices=("binary", "listwise"), default="binary")
    parser.add_argument("--epochs", type=float, default=1.0)
    parser.add_argument("--batch-size", type=int, default=16, help="pairs, or questions if listwise (default 16)")
    parser.add_argument("--learning-rate", type=float, default=5e-5)
    parser.add_argument("--max-tokens", type=int, default=192, help="of question and passage together (default 192)")
    parser.add_argument("--minutes", type=float, default=0, help="end training after so long (default: when done)")
    parser.add_argument("--precision", choices=("fp32", "fp16", "bf16"), default="fp32", help="fp16, bf16: on a GPU")
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda[:n]")
    parser.add_argument("--threads", type=int, default=0, help="of torch on a CPU (default: as many as it likes)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--accept", action="store_true", help="accept the model whatever the verdict; the card says so")
    parser.add_argument("--json", action="store_true", help="print one JSON object, last line")
    return parser


def work(args: argparse.Namespace) -> int:
    check(args)
    check_trainer()
    examples = read_dataset(args.dataset)
    started = time.monotonic()
    with open_store() as store, contextlib.closing(make_retriever(read_configuration(), store)) as retriever:
        index = retriever.prepare(args.collection)
        with store.scan_chunks(index.id) as (_, chunks):
            corpus = Corpus(chunks)

        def retrieve(question: str, k: int = MINED_FROM) -> Sequence[Hit]:
            return retriever.retrieve(Search((question,), args.collection, k=k)).hits

        learned, kept = parts(examples, corpus, args)
        feedback = from_ratings(store.rated_questions(index.collection) if args.feedback else [])
        liked = apart(answerable(feedback.examples, corpus), kept)
        mined = cross_encoder.mine(
            [*learned, *liked],
            corpus,
            retrieve,
            forbidden=pages(kept),
            negatives=args.negatives,
            seed=args.seed,
            disliked=disliked(feedback, corpus),
        )
        found = [retrieve(example.question, args.depth) for example in kept]
    say(f"{len(mined):,} questions mined, {len(kept):,} to judge by, {time.monotonic() - started:.0f} s")
    base = load_tokenizer(args.model or index.settings.model)
    steps, verdict, latency = train(base, mined, kept, found, args)
    made = card(
        "cross-encoder",
        base={"model": base.model, "identity": base.identity},
        examples=[*learned, *liked, *kept],
        verdict=verdict,
        settings={**asdict(plan(args)), **settings(args), "steps": steps, "collection": index.collection},
        forced=args.accept,
    )
    put(made, args.output)
    seconds = round(time.monotonic() - started, 1)
    summary = {"folder": str(args.output), "seconds": seconds, "rerank_s": latency, **made}
    word = "accepted" if made["accepted"] else "not accepted"
    finish(summary, args.json, f"{verdict}\n{latency:.2f} s to rerank {args.depth} hits\n{args.output}: {word}")
    return 0 if made["accepted"] else NOT_ACCEPTED


def check(args: argparse.Namespace) -> None:
    """Raise BadInput and NotFree for what can't be used together, before hours are spent."""
    check_free(args.output)
    if min(args.questions, args.held_out, args.minutes) < 0:
        raise BadInput("--questions, --held-out and --minutes can't be negative")
    if min(args.negatives, args.batch_size) < 1 or not args.k <= args.depth <= 200 or args.k < 1:
        raise BadInput("--negatives and --batch-size must be at least 1, --k from 1 to --depth, --depth at most 200")
    if args.max_tokens < 16 or args.epochs <= 0 or args.learning_rate <= 0:
        raise BadInput("--max-tokens must be at least 16, --epochs and --learning-rate more than 0")


def parts(examples: Sequence[Example], corpus: Corpus, args: argparse.Namespace) -> tuple[list[Example], list[Example]]:
    """What is learned from and what is judged by: no page is on both sides."""
    examples = answered(examples, corpus)
    divided = split(examples, corpus, args.seed)
    learned, kept = ([examples[place] for place in places] for places in (divided.train, divided.held_out))
    return (
        sample(learned, args.questions or len(learned), args.seed),
        sample(kept, args.held_out or len(kept), args.seed),
    )


def pages(examples: Sequence[Example]) -> set[str]:
    return {page_of(source) for example in examples for source in example.sources}


def answerable(examples: Sequence[Example], corpus: Corpus) -> list[Example]:
    return [example for example in examples if corpus.answering(example)]


def apart(examples: Sequence[Example], kept: Sequence[Example]) -> list[Example]:
    """Those that share neither page nor question with `kept`."""
    held, asked = pages(kept), {same(example.question) for example in kept}
    return [example for example in examples if not pages([example]) & held and same(example.question) not in asked]


def disliked(feedback: Feedback, corpus: Corpus) -> Callable[[str], Sequence[Hit]]:
    """The chunks of hits that did not help with a question, where the index still has them."""
    chunks = {hit.chunk_id: hit for hit in corpus.chunks} if feedback.disliked else {}

    def wrong(question: str) -> Sequence[Hit]:
        ids = dict.fromkeys(hit.chunk_id for hit in feedback.wrong(question))
        return [chunks[id] for id in ids if id in chunks]

    return wrong


def plan(args: argparse.Namespace) -> cross_encoder.Plan:
    return cross_encoder.Plan(
        loss=args.loss,
        epochs=args.epochs,
        batch_size=args.batch_size,
        learning_rate=args.learning_rate,
        max_tokens=args.max_tokens,
        minutes=args.minutes,
        precision=args.precision,
        seed=args.seed,
    )


def settings(args: argparse.Namespace) -> dict[str, Any]:
    """What else the result depends on."""
    return {"negatives": args.negatives, "depth": args.depth, "questions": args.questions, "feedback": args.feedback}


def train(
    base: TokenCounter,
    mined: Sequence[Triple],
    kept: Sequence[Example],
    found: Sequence[Sequence[Hit]],
    args: argparse.Namespace,
) -> tuple[int, Verdict, float]:
    """Train, save beside --output and judge; steps done, the verdict, and seconds to rerank one question's hits."""
    import torch

    from pipelines.embedding.embedder import available_device

    if args.threads:
        torch.set_num_threads(args.threads)
    device = available_device(args.device, torch.cuda.is_available())
    model = cross_encoder.load_model(base.model, device, args.max_tokens)
    steps = cross_encoder.fine_tune(model, mined, plan(args), checkpoints(args.output, base.identity))
    folder = beside(args.output) / "model"
    shutil.rmtree(folder, ignore_errors=True)  # an earlier run may have died between saving and the card
    model.save_pretrained(str(folder))
    say(f"trained for {steps:,} steps; judging")
    started = time.monotonic()
    after = reranked(CrossEncoderReranker(str(folder), device=device, max_length=args.max_tokens), kept, found)
    latency = (time.monotonic() - started) / len(kept)
    return steps, verdict_of(kept, found, after, args.k), latency


def reranked(
    reranker: CrossEncoderReranker, kept: Sequence[Example], found: Sequence[Sequence[Hit]]
) -> list[Sequence[Hit]]:
    """The hits of each question in the reranker's order."""

    async def all_of_them() -> list[Sequence[Hit]]:
        return [(await reranker.rerank(example.question, hits)).hits for example, hits in zip(kept, found, strict=True)]

    return asyncio.run(all_of_them())


def verdict_of(
    kept: Sequence[Example], found: Sequence[Sequence[Hit]], after: Sequence[Sequence[Hit]], k: int
) -> Verdict:
    """Both orders, each with what the service makes of pages."""
    configuration = read_configuration()

    def places(lists: Sequence[Sequence[Hit]]) -> list[int]:
        spread = [spread_pages(hits) if configuration.pages_first else hits for hits in lists]
        cut = [take_diverse(hits, len(hits), configuration.max_per_page) for hits in spread]
        return [cross_encoder.place(example, hits) for example, hits in zip(kept, cut, strict=True)]

    return judged(places(found), places(after), k=k, ks=sorted({*KS, k}))


if __name__ == "__main__":
    main(arguments(), work)
