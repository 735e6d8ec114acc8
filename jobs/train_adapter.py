"""`python -m jobs.train_adapter`: learn a linear map of the questions' vectors from questions with their sources.

Nothing is embedded anew but the questions. Judged on pages that it did not learn from: the folder's card.json says
whether it was accepted. Use it with RAYDEX_QUERY_ADAPTER=FOLDER.
Exit codes: 0 trained and accepted, 1 failed, 2 bad input, 4 trained but not accepted.
"""

import argparse
import math
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from jobs.cli import BadInput, finish, main, say
from jobs.environment import open_store, read_configuration
from pipelines.answering.factory import make_embedder, make_retriever
from pipelines.embedding.adapter import KIND, Matrix, QueryAdapter
from pipelines.embedding.embedder import Embedder
from pipelines.evaluation.dataset import Example, read_dataset
from pipelines.records import Index
from pipelines.training.adapter import AdapterPlan, cross_fitted, fit, ranks
from pipelines.training.card import Verdict, card, check_free, judged, write_card
from pipelines.training.mining import Corpus, answered, page_folds
from pipelines.whole import whole_folder

NOT_ACCEPTED = 4


def arguments() -> argparse.ArgumentParser:
    usual = AdapterPlan()
    parser = argparse.ArgumentParser(prog="python -m jobs.train_adapter", description=__doc__.split("\n\n")[0])
    parser.add_argument("--collection", help="whose index is learned from (default: the only one)")
    parser.add_argument("--dataset", type=Path, required=True, help="questions with their sources, JSONL or JSON")
    parser.add_argument("--check", type=Path, help="further questions to judge by; their pages are not learned from")
    parser.add_argument("--output", type=Path, required=True, help="folder of the trained adapter")
    parser.add_argument("--epochs", type=int, default=usual.epochs)
    parser.add_argument("--learning-rate", type=float, default=usual.learning_rate)
    parser.add_argument("--temperature", type=float, default=usual.temperature)
    parser.add_argument("--stay", type=float, default=usual.stay, help="how strongly the map is held near to none")
    parser.add_argument("--threads", type=int, default=0, help="of torch (default: as many as it likes)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--accept", action="store_true", help="accept it whatever the verdict is; the card says so")
    parser.add_argument("--json", action="store_true", help="print one JSON object, last line")
    return parser


def work(args: argparse.Namespace) -> int:
    check(args)
    examples, others = read_dataset(args.dataset), read_dataset(args.check) if args.check else []
    if args.threads:
        import torch

        torch.set_num_threads(args.threads)
    started = time.monotonic()
    index, corpus, chunks = material(args.collection)
    bench = Bench(corpus, chunks, make_embedder(read_configuration(), index.settings.model), plan(args))
    examples = answered(examples, corpus)
    asked = bench.embed(examples)
    say(f"{len(examples):,} questions embedded in {time.monotonic() - started:.0f} s")
    verdict = bench.cross_judged(examples, asked)
    say(f"{verdict}\n")
    checked = bench.checked(examples, asked, others) if others else None
    learning = time.monotonic()
    adapter = QueryAdapter(bench.learn(examples, asked), bench.embedder.counter.identity)
    seconds = time.monotonic() - learning
    base = {"model": index.settings.model, "identity": adapter.identity, "dimension": adapter.dimension}
    settings = {**asdict(plan(args)), "collection": index.collection, "index": index.id, "revision": index.revision}
    made = card(KIND, base=base, examples=examples, verdict=verdict, settings=settings, forced=args.accept)
    made["check"] = asdict(checked) if checked else None
    put(adapter, made, args.output)
    word = "accepted" if made["accepted"] else "not accepted"
    text = f"{verdict}\n" + (f"\nchecked on {args.check}\n{checked}\n" if checked else "")
    finish(
        {"folder": str(args.output), "seconds": round(seconds, 1), **made},
        args.json,
        f"{text}\n{args.output}: {word}, learned in {seconds:.0f} s",
    )
    return 0 if made["accepted"] else NOT_ACCEPTED


def check(args: argparse.Namespace) -> None:
    """Raise BadInput and NotFree for what can't be used."""
    check_free(args.output)
    if min(args.epochs, args.stay, args.threads) < 0:
        raise BadInput("--epochs, --stay and --threads can't be negative")
    if not 0 < args.temperature < math.inf or not 0 < args.learning_rate < math.inf:
        raise BadInput("--temperature and --learning-rate must be more than 0")


def plan(args: argparse.Namespace) -> AdapterPlan:
    return AdapterPlan(
        temperature=args.temperature,
        stay=args.stay,
        epochs=args.epochs,
        learning_rate=args.learning_rate,
        seed=args.seed,
    )


def material(collection: str | None) -> tuple[Index, Corpus, Matrix]:
    """The live index, its chunks, and their vectors in the same order."""
    with open_store() as store:
        retriever = make_retriever(read_configuration().model_copy(update={"query_adapter": Path()}), store)
        index = store.live_index(retriever.name(collection))
        retriever.close()
        vectors = store.vectors(index.id)
        with store.scan_chunks(index.id) as (_, found):
            corpus = Corpus(hit for hit in found if hit.chunk_id in vectors)
    stored = np.stack([vectors[hit.chunk_id] for hit in corpus.chunks])
    return index, corpus, stored / np.maximum(np.linalg.norm(stored, axis=1, keepdims=True), 1e-12)


class Bench:
    """Where maps are learned and judged: the chunks of one index and what embeds questions to it."""

    def __init__(self, corpus: Corpus, chunks: Matrix, embedder: Embedder, plan: AdapterPlan) -> None:
        self.corpus, self.chunks, self.embedder, self.plan = corpus, chunks, embedder, plan
        self._texts = [hit.text_hash for hit in corpus.chunks]

    def embed(self, examples: Sequence[Example]) -> Matrix:
        """The questions' vectors, one by one as they are asked: queries have a prefix of their own."""
        return np.stack([self.embedder.embed_query(example.question) for example in examples])

    def learn(self, examples: Sequence[Example], asked: Matrix) -> Matrix:
        return fit(asked, self.chunks, self._answering(examples), self.plan)

    def cross_judged(self, examples: Sequence[Example], asked: Matrix) -> Verdict:
        """The verdict over all examples, each by a map that has not seen its pages."""
        folds = page_folds(examples, self.corpus, self.plan.seed)
        mapped = cross_fitted(asked, self.chunks, self._answering(examples), folds, self.plan)
        return self._judged(examples, asked, mapped)

    def checked(self, examples: Sequence[Example], asked: Matrix, others: Sequence[Example]) -> Verdict:
        """The verdict over `others`, by a map that has learned from no page of theirs."""
        pages = {page for example in others for page in self.corpus.pages_of(example)}
        apart = [place for place, example in enumerate(examples) if pages.isdisjoint(self.corpus.pages_of(example))]
        if not apart:
            raise BadInput("every page that --dataset asks for is one of --check too: nothing is left to learn from")
        matrix = self.learn([examples[place] for place in apart], asked[apart])
        vectors = self.embed(others)
        return self._judged(others, vectors, QueryAdapter(matrix, "")(vectors))

    def _judged(self, examples: Sequence[Example], before: Matrix, after: Matrix) -> Verdict:
        right = [self.corpus.on_pages(example) for example in examples]
        return judged(
            ranks(before, self.chunks, right, self._texts),
            ranks(after, self.chunks, right, self._texts),
        )

    def _answering(self, examples: Sequence[Example]) -> list[list[int]]:
        return [self.corpus.answering(example) for example in examples]


def put(adapter: QueryAdapter, made: dict[str, Any], output: Path) -> None:
    """Weights and card take the place of `output` together."""
    with whole_folder(output) as making:
        adapter.save(making)
        write_card(making, made)


if __name__ == "__main__":
    main(arguments(), work)
