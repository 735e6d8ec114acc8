"""The query agent of Anyscale's guide to RAG applications: retrieve, answer, cite the sources.

    .venv/bin/python examples/02_query_agent.py "How do I index a PDF file?"

Indexes pages of this project's own documentation into a Postgres that is deleted at the end. With OPENAI_BASE_URL (and
OPENAI_MODEL, OPENAI_API_KEY) a language model writes the answer; without it, the best passages are quoted.
"""

import os
import sys
import tempfile
from pathlib import Path

from pipelines.answering import EngineSettings, QueryEngine, Retriever, make_synthesizer
from pipelines.embedded import run_scratch_postgres
from pipelines.indexing import Collection, Folder, ReindexOptions, reindex
from pipelines.llm import LLM
from pipelines.store import Store

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGES = "/(crawling|freshness)"  # takes seconds; indexing all pages, without this pattern, takes a minute
QUESTION = "How do I keep the index fresh?"


def index_documentation(store: Store) -> None:
    """Read, cut and embed pages of docs/, and publish them as the collection "docs"."""
    store.migrate()
    folder = Folder(path=str(DOCS), base_url="https://docs.example.com/", include=[PAGES])
    summary = reindex(store, Collection(name="docs", folders=[folder]), ReindexOptions(no_ray=True))
    print(f"{summary.pages['indexed']} pages, {summary.chunks['total']} chunks")


def choose_model() -> LLM | None:
    """Return the language model named in the environment, None if there is none."""
    url, name = os.environ.get("OPENAI_BASE_URL"), os.environ.get("OPENAI_MODEL", "gpt-4o-mini")
    return LLM(name, base_url=url, api_key=os.environ.get("OPENAI_API_KEY", "")) if url else None


class QueryAgent:
    """Answers a question from the k best chunks: the guide's class, built on Raydex's engine."""

    def __init__(self, retriever: Retriever, llm: LLM | None, k: int = 5) -> None:
        synthesizer = make_synthesizer("compact") if llm else None
        self.engine = QueryEngine(retriever, synthesizer, llm, settings=EngineSettings(k=k))

    def __call__(self, query: str) -> dict[str, object]:
        """Return the question, the sources, the answer and its author."""
        answer = self.engine.query(query)
        sources = [citation.source for citation in answer.citations]
        return {"question": query, "sources": sources, "answer": answer.text, "llm": answer.agent}


def main() -> None:
    """Index, ask, print."""
    home = Path(tempfile.mkdtemp(prefix="raydex-"))
    with run_scratch_postgres(home) as url, Store(url) as store:
        index_documentation(store)
        retriever = Retriever.over(store, home)
        result = QueryAgent(retriever, choose_model())(" ".join(sys.argv[1:]) or QUESTION)
        retriever.close()
    for name, value in result.items():
        print(f"{name}: {value}")


if __name__ == "__main__":
    main()
