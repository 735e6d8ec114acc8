"""`python -m jobs.train_embedder`: fine-tune the embedding model of a collection on questions with their sources.

Held-out pages judge it: the folder's card.json says whether it was accepted. Use it with
`python -m jobs.reindex --model FOLDER`. What was interrupted goes on from its last checkpoint.
Exit codes: 0 trained and accepted, 1 failed, 2 bad input, 4 trained but not accepted.
"""

import argparse
import contextlib
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from jobs.cli import BadInput, finish, main, say
from jobs.environment import open_store, read_configuration
from pipelines.answering.factory import make_retriever
from pipelines.answering.retrieval.retriever import Retriever
from pipelines.answering.retrieval.search import Search
from pipelines.embedding.tokens import TokenCounter, load_tokenizer
from pipelines.evaluation.dataset import Example, page_of, read_dataset, sample
from pipelines.records import Hit, Index
from pipelines.store import Store
from pipelines.training import embedder
from pipelines.training.card import Verdict, beside, card, check_free, checkpoints, judged, put
from pipelines.training.mining import Corpus, Triple, answered, split, triples

NOT_ACCEPTED = 4
# Hits looked through for negatives: more than a page usually has among the best.
MINED_FROM = 20
EMBEDDINGS_ONLY_RATE, FULL_RATE = 1e-4, 2e-5


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m jobs.train_embedder", description=__doc__.split("\n\n")[0])
    parser.add_argument("--collection", help="whose index is learned from (default: the only one)")
    parser.add_argument("--dataset", type=Path, required=True, help="questions with their sources, JSONL or JSON")
    parser.add_argument("--output", type=Path, required=True, help="folder of the trained model")
    parser.add_argument("--model", help="trained from this one (default: the index's)")
    parser.add_argument("--questions", type=int, default=0, help="learn from so many (default: all)")
    parser.add_argument("--held-out", type=int, default=0, help="judge by so many questions (default: all held out)")
    parser.add_argument("--candidates", type=int, default=0, help="judge among so many chunks (default: all)")
    parser.add_argument("--layers", choices=("all", "embeddings"), default="all", help="what is trained")
    parser.add_argument("--new-words", type=int, default=0, help="words of the corpus to add to the vocabulary")
    parser.add_argument("--negatives", type=int, default=1, help="mined wrong answers a question (default 1)")
    parser.add_argument("--skip", type=int, default=0, help="pass over so many of the best wrong hits (default 0)")
    parser.add_argument("--epochs", type=float, default=1.0)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--learning-rate", type=float, help="default 2e-5, embeddings alone 1e-4")
    parser.add_argument("--max-tokens", type=int, default=0, help="cut texts while training (default: model's limit)")
    parser.add_argument("--precision", choices=("fp32", "fp16", "bf16"), default="fp32", help="fp16, bf16: on a GPU")
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda[:n]")
    parser.add_argument("--threads", type=int, default=0, help="of torch on a CPU (default: as many as it likes)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--accept", action="store_true", help="accept the model whatever the verdict; the card says so")
    parser.add_argument("--json", action="store_true", help="print one JSON object, last line")
    return parser


def work(args: argparse.Namespace) -> int:
    check(args)
    embedder.check_trainer()
    examples = read_dataset(args.dataset)
    started = time.monotonic()
    with material(args) as (index, corpus, retriever):
        base = load_tokenizer(args.model or index.settings.model)
        if base.folder is None:
            raise BadInput(f"{base.model} has no weights here: train a packaged model, a folder or a hub model")
        learned, kept = parts(answered(examples, corpus), corpus, args)
        say(f"{len(learned):,} questions to learn from, {len(kept):,} to judge by")
        mined = mine(learned, kept, corpus, retriever, args)
    say(f"{len(mined):,} triples mined in {time.monotonic() - started:.0f} s")
    verdict = train(base, mined, kept, corpus, args)
    made = card(
        "embedding-model",
        base={"model": base.model, "identity": base.identity, "dimension": base.dimension},
        examples=[*learned, *kept],
        verdict=verdict,
        settings={**asdict(plan(args)), **settings(args), "triples": len(mined), "collection": index.collection},
        forced=args.accept,
    )
    (beside(args.output) / "evaluation").replace(beside(args.output) / "model" / "evaluation")
    put(made, args.output)
    summary = {"folder": str(args.output), "seconds": round(time.monotonic() - started, 1), **made}
    finish(summary, args.json, f"{verdict}\n{args.output}: {'accepted' if made['accepted'] else 'not accepted'}")
    return 0 if made["accepted"] else NOT_ACCEPTED


def check(args: argparse.Namespace) -> None:
    """Raise BadInput and NotFree for what can't be used together, before hours are spent."""
    check_free(args.output)
    if min(args.questions, args.held_out, args.candidates, args.new_words, args.skip, args.max_tokens) < 0:
        raise BadInput("numbers of questions, chunks, words and tokens can't be negative")
    if args.epochs <= 0 or (args.learning_rate is not None and args.learning_rate <= 0):
        raise BadInput("--epochs and --learning-rate must be more than 0")
    if args.negatives < 1 or args.batch_size < 2:
        raise BadInput(
            "--negatives must be at least 1 and --batch-size 2: a question needs wrong answers to learn from"
        )


@contextlib.contextmanager
def material(args: argparse.Namespace) -> Iterator[tuple[Index, Corpus, Retriever]]:
    """The live index, its chunks and a retriever over it."""
    with open_store() as store, contextlib.closing(make_retriever(read_configuration(), store)) as retriever:
        index = retriever.prepare(args.collection)
        yield index, corpus_of(store, index), retriever


def corpus_of(store: Store, index: Index) -> Corpus:
    """All chunks of an index."""
    with store.scan_chunks(index.id) as (_, chunks):
        return Corpus(chunks)


def parts(examples: Sequence[Example], corpus: Corpus, args: argparse.Namespace) -> tuple[list[Example], list[Example]]:
    """What is learned from and what is judged by: no page is on both sides."""
    divided = split(examples, corpus, args.seed)
    learned, kept = ([examples[place] for place in places] for places in (divided.train, divided.held_out))
    return (
        sample(learned, args.questions or len(learned), args.seed),
        sample(kept, args.held_out or len(kept), args.seed),
    )


def mine(
    learned: Sequence[Example],
    kept: Sequence[Example],
    corpus: Corpus,
    retriever: Retriever,
    args: argparse.Namespace,
) -> list[Triple]:
    """Triples by what the retriever finds now."""

    def retrieve(question: str) -> Sequence[Hit]:
        return retriever.retrieve(Search((question,), args.collection, k=MINED_FROM + args.skip)).hits

    pages = {page_of(source) for example in kept for source in example.sources}
    return triples(learned, corpus, retrieve, forbidden=pages, negatives=args.negatives, skip=args.skip, seed=args.seed)


def plan(args: argparse.Namespace) -> embedder.Plan:
    usual = EMBEDDINGS_ONLY_RATE if args.layers == "embeddings" else FULL_RATE
    return embedder.Plan(
        layers=args.layers,
        epochs=args.epochs,
        batch_size=args.batch_size,
        learning_rate=args.learning_rate or usual,
        max_tokens=args.max_tokens,
        precision=args.precision,
        new_words=args.new_words,
        seed=args.seed,
    )


def settings(args: argparse.Namespace) -> dict[str, Any]:
    """What else the result depends on."""
    return {"negatives": args.negatives, "skip": args.skip, "candidates": args.candidates}


def train(
    base: TokenCounter, mined: Sequence[Triple], kept: Sequence[Example], corpus: Corpus, args: argparse.Namespace
) -> Verdict:
    """Train, save to --output and judge."""
    import torch

    from pipelines.embedding.embedder import available_device

    if args.threads:
        torch.set_num_threads(args.threads)
    model = embedder.load_model(base.model, available_device(args.device, torch.cuda.is_available()))
    test = embedder.held_out(kept, corpus, args.candidates, args.seed)
    before = embedder.ranks(model, test, beside(args.output) / "evaluation", "before")
    say(f"judged before among {len(test.texts):,} chunks; training")
    if args.new_words:
        words = embedder.frequent_words([hit.text for hit in corpus.chunks], model, args.new_words)
        say(f"{embedder.extend_vocabulary(model, words):,} words join the vocabulary")
    embedder.fine_tune(model, mined, plan(args), checkpoints(args.output, base.identity))
    folder = beside(args.output) / "model"
    shutil.rmtree(folder, ignore_errors=True)  # an earlier run may have died between saving and the card
    model.save(str(folder))
    after = embedder.ranks(model, test, beside(args.output) / "evaluation", "after")
    return judged([before[name] for name in test.queries], [after[name] for name in test.queries])


if __name__ == "__main__":
    main(arguments(), work)
