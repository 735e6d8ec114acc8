"""Measures the effect of an open page on questions that are not about it, in pairs, over one collection.

    python benchmarks/open_page.py --collection raydocs --questions eval-dev.jsonl

Searches every question without a page and with a random page of the index (`page`), as a widget sends it. Prints how
often the first hit, the hits, and the rank of the right page differ, and how many questions were taken to be about the
page. With `--versions`, the questions are examples from the collection's own sections: prints how often the first hit
has the version of the open page, with and without the page.
"""

import argparse
import asyncio
import contextlib
import json
import random
from collections.abc import Sequence
from pathlib import Path

from jobs.environment import open_store, read_configuration
from pipelines.answering.engine import QueryEngine
from pipelines.answering.factory import make_engine, make_retriever
from pipelines.answering.question import Question
from pipelines.evaluation.questions.examples import choose_examples
from pipelines.records import Hit

K = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--collection", required=True)
    parser.add_argument("--questions", help="JSON lines with question and source")
    parser.add_argument("--versions", action="store_true")
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    configuration = read_configuration()
    with open_store() as store, contextlib.closing(make_retriever(configuration, store)) as retriever:
        index = retriever.prepare(options.collection)
        engine, chance = make_engine(configuration, retriever), random.Random(options.seed)
        pages = store.indexed_urls(index.id)
        if options.versions:
            examples = choose_examples(store.section_starts(options.collection, index.id), 100)
            asyncio.run(compare_versions(engine, options.collection, [one.question for one in examples], pages, chance))
        else:
            rows = [json.loads(line) for line in Path(options.questions).read_text().splitlines()]
            asyncio.run(compare(engine, options.collection, rows, pages, chance))


async def compare(
    engine: QueryEngine, collection: str, rows: Sequence[dict], pages: Sequence[str], chance: random.Random
) -> None:
    """Print how many questions find different hits with a random page open."""
    first = hits = meant = 0
    found = {"without": [0.0] * 2, "with": [0.0] * 2}
    for row in rows:
        page = chance.choice(pages)
        without = await engine.asearch(Question(row["question"], collection=collection, k=K))
        opened = await engine.asearch(Question(row["question"], collection=collection, k=K, page=page))
        first += [hit.chunk_id for hit in without.hits[:1]] != [hit.chunk_id for hit in opened.hits[:1]]
        hits += [hit.chunk_id for hit in without.hits] != [hit.chunk_id for hit in opened.hits]
        meant += without.queries[0] != opened.queries[0]
        for name, retrieval in (("without", without), ("with", opened)):
            rank = rank_of(row["source"], retrieval.hits)
            found[name][0] += bool(rank)
            found[name][1] += 1 / rank if rank else 0.0
    print(f"{len(rows)} questions, {len(pages)} pages: {meant} taken to mean the page")
    print(f"  other first hit {first}, other hits {hits}")
    for name, (right, reciprocal) in found.items():
        print(f"  {name:8} right page in the first {K}: {right / len(rows):.3f}, MRR {reciprocal / len(rows):.3f}")


async def compare_versions(
    engine: QueryEngine, collection: str, questions: Sequence[str], pages: Sequence[str], chance: random.Random
) -> None:
    """Print how often the first hit has the open page's version, and how often it is as good as without it."""
    own = {"without": 0, "with": 0}
    same = 0
    for question in questions:
        page = chance.choice(pages)
        place = await engine._retriever.aplace(page, collection)
        without = await engine.asearch(Question(question, collection=collection, k=K))
        opened = await engine.asearch(Question(question, collection=collection, k=K, page=page))
        own["without"] += bool(without.hits) and without.hits[0].version == place.version
        own["with"] += bool(opened.hits) and opened.hits[0].version == place.version
        same += without.hits[0].headings[-1:] == opened.hits[0].headings[-1:]
    print(f"{len(questions)} questions: first hit of the open page's version {own}, with the same heading {same}")


def rank_of(source: str, hits: Sequence[Hit]) -> int:
    """Return the rank of the first hit on the page of `source`, or 0 if there is none."""
    page = source.partition("#")[0]
    return next((rank for rank, hit in enumerate(hits, start=1) if hit.url == page), 0)


if __name__ == "__main__":
    main()
