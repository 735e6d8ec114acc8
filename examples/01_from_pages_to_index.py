"""From pages to an index, as in Anyscale's guide: sections, chunks, embeddings, pgvector.

    .venv/bin/python examples/01_from_pages_to_index.py

Uses Ray Data, with an actor pool for the embeddings. Each step works on one page or one batch: a further step is one
more `map_batches`. `raydex index` has the same chain, and adds crawling, reuse of vectors and publishing in one step.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import ray
from pgvector.psycopg import register_vector

from pipelines.cluster import connect_ray, quiet_context
from pipelines.embedded import run_scratch_postgres
from pipelines.embedding import load_embedder, load_tokenizer
from pipelines.indexing import Chunker, read_page
from pipelines.records import IndexSettings, Page

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGES = ("crawling.md", "freshness.md", "indexing.md")  # all of docs/ takes a minute
MODEL = IndexSettings().model
QUESTION = "How do I leave out pages?"
TABLE = "create extension if not exists vector; create table document (source text, text text, embedding vector(384))"
NEAREST = "select source, 1 - (embedding <=> %s) from document order by embedding <=> %s limit 5"


class CutPages:
    """Parses pages into sections and cuts these into chunks that the model can read completely, one per row."""

    def __init__(self) -> None:
        self.chunk = Chunker(load_tokenizer(MODEL))

    def __call__(self, row: dict[str, Any]) -> Iterator[dict[str, Any]]:
        page = Page("https://docs.example.com/" + row["name"], (DOCS / row["name"]).read_bytes(), "text/markdown")
        for chunk in self.chunk(read_page(page)):
            yield {"source": f"{chunk.url}#{chunk.anchor}", "text": chunk.text, "embed_text": chunk.embed_text}


class EmbedChunks:
    """An actor with the embedding model."""

    def __init__(self) -> None:
        self.embedder = load_embedder(MODEL)

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        return batch | {"embedding": self.embedder.embed_chunks(batch["embed_text"].tolist())}


def store_batch(batch: dict[str, Any], url: str) -> dict[str, Any]:
    """Write a batch into pgvector."""
    with psycopg.connect(url) as connection:
        register_vector(connection)
        rows = list(zip(batch["source"], batch["text"], batch["embedding"], strict=True))
        connection.cursor().executemany("insert into document values (%s, %s, %s)", rows)
    return {"stored": [len(rows)]}


def main() -> None:
    with run_scratch_postgres(Path(tempfile.mkdtemp(prefix="raydex-"))) as url, connect_ray():
        quiet_context()
        with psycopg.connect(url) as connection:
            connection.execute(TABLE)
        chunks = ray.data.from_items([{"name": name} for name in PAGES]).flat_map(CutPages, concurrency=1)
        embedded = chunks.map_batches(EmbedChunks, batch_size=32, concurrency=(1, 2))
        print(embedded.map_batches(store_batch, fn_kwargs={"url": url}).sum("stored"), "chunks are stored")
        query = load_embedder(MODEL).embed_query(QUESTION)
        with psycopg.connect(url) as connection:
            register_vector(connection)
            for source, cosine in connection.execute(NEAREST, (query, query)):
                print(f"{cosine:.3f} {source}")


if __name__ == "__main__":
    main()
