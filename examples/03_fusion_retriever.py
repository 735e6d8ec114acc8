"""LlamaIndex's "fusion retriever from scratch": several queries and retrievers, one list by reciprocal rank fusion.

    .venv/bin/python examples/03_fusion_retriever.py "What happens to a page that was deleted?"

With OPENAI_BASE_URL (and OPENAI_MODEL, OPENAI_API_KEY) a model writes three more queries; without it, each leg gets
only the question. The third leg is a custom one: any object with a name, a weight and `search`.
"""

import os
import re
import sys
import tempfile
from pathlib import Path

from pipelines.answering import Fusion, FusionRetriever, QueryEngine, Retriever, Rewriter
from pipelines.embedded import run_scratch_postgres
from pipelines.indexing import Collection, Folder, ReindexOptions, reindex
from pipelines.llm import LLM
from pipelines.records import Hit
from pipelines.store import Store

DOCS = Path(__file__).resolve().parents[1] / "docs"
BASE_URL = "https://docs.example.com/"
PAGES = "/(crawling|freshness)"  # takes seconds; indexing all pages, without this pattern, takes a minute
QUESTION = "What happens to a page that was deleted?"
FURTHER_QUERIES = 3


class Glossary:
    """Finds the rows of docs/glossary.md that share words with a query, without an index or a model."""

    name, weight = "glossary", 0.5

    def __init__(self) -> None:
        rows = re.findall(r"^\| (.+?) \| (.+?) \|$", (DOCS / "glossary.md").read_text("utf-8"), re.MULTILINE)
        self._rows = [(f"{term}: {meaning}", set(re.findall(r"\w{4,}", term.lower()))) for term, meaning in rows]

    def search(self, query: str, k: int) -> list[Hit]:
        """Return at most `k` rows, those with the most words of the query first."""
        words = set(re.findall(r"\w{4,}", query.lower()))
        found = sorted(((len(words & of), text) for text, of in self._rows if words & of), reverse=True)
        return [Hit(text[:40], f"{BASE_URL}glossary.md", text=text, score=float(n)) for n, text in found[:k]]


def choose_rewriter() -> Rewriter | None:
    """Return a rewriter that writes more queries with the model in the environment, None if there is none."""
    url, name = os.environ.get("OPENAI_BASE_URL"), os.environ.get("OPENAI_MODEL", "gpt-4o-mini")
    if not url:
        return None
    llm = LLM(name, base_url=url, api_key=os.environ.get("OPENAI_API_KEY", ""))
    return Rewriter(llm, num_queries=FURTHER_QUERIES, timeout_s=60)


def main() -> None:
    """Index, fuse, and print the list for each kind of fusion with the rank in each leg."""
    home = Path(tempfile.mkdtemp(prefix="raydex-"))
    with run_scratch_postgres(home) as url, Store(url) as store:
        store.migrate()
        folder = Folder(path=str(DOCS), base_url=BASE_URL, include=[PAGES])
        reindex(store, Collection(name="docs", folders=[folder]), ReindexOptions(no_ray=True))
        retriever = Retriever.over(store, home)
        retriever.prepare()
        legs = [retriever.leg("vector"), retriever.leg("bm25"), Glossary()]
        for kind in ("rrf", "relative_score"):
            fused = FusionRetriever(legs, Fusion(kind=kind), timeout_s=60, embed=retriever.embed)
            engine = QueryEngine(fused, rewriter=choose_rewriter())
            found = engine.search(" ".join(sys.argv[1:]) or QUESTION, k=5)
            print(f"{kind}; queries: {list(found.queries)}")
            for hit in found.hits:
                print(f"  {hit.source}  {dict(hit.ranks)}")
        retriever.close()


if __name__ == "__main__":
    main()
