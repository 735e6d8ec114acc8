"""Measures how often a chain of follow-ups finds its section among the first 5 hits.

    RAYDEX_HOME=DIR python benchmarks/chains.py

Requires the collections `raydocs`, `pydocs` and `pgdocs`. Prints the rank and the searched question of each chain in
`questions/chains.jsonl`, where `source` is a regular expression for `url#anchors`. Calls no model.
"""

import asyncio
import json
import os
import re
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from pipelines import embedded
from pipelines.answering.conversation.followup import complete
from pipelines.answering.engine import QueryEngine
from pipelines.answering.factory import make_retriever
from pipelines.answering.question import EngineSettings
from pipelines.answering.settings import AnswerSettings
from pipelines.records import Hit
from pipelines.store import Store

CHAINS = Path(__file__).parent / "questions" / "chains.jsonl"
K = 5


def rank(source: str, hits: Sequence[Hit]) -> int:
    """Return the position of the first hit of `source`, from 1, or 0 for none."""
    places = [f"{hit.url}#{' '.join(hit.anchors)}" for hit in hits]
    return next((n for n, place in enumerate(places, 1) if re.search(source, place)), 0)


def main() -> None:
    rows = [json.loads(line) for line in CHAINS.read_text().splitlines()]
    home, found = Path(os.environ["RAYDEX_HOME"]), 0
    with embedded.run_postgres(home) as url, Store(url) as store:
        for collection, chains in groupby(rows, lambda row: str(row["collection"])):
            retriever = make_retriever(AnswerSettings(home=home, collection=collection), store)
            retriever.prepare()
            engine = QueryEngine(retriever, settings=EngineSettings(k=K, depth=10))
            for row in chains:
                searched = complete(row["question"], row["before"]).question
                at = rank(row["source"], asyncio.run(engine.asearch(searched)).hits)
                found += at > 0
                print(at, searched, flush=True)
            retriever.close()
    print(f"{found} of {len(rows)} among the first {K}")


if __name__ == "__main__":
    main()
