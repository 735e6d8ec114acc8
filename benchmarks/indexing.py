"""Measures how fast a documentation folder becomes an index, against the bare encoder and a tutorial's way.

`python benchmarks/indexing.py [--pages 250] [--rounds 3] [--json]`. Every round runs each way once, in turn, on a fresh
database; it prints medians and their ratios, and the start of Ray apart. The tutorial's way is that of the study's own
repository (ray-project/llm-applications): html.parser, encoder calls of 100 texts, one INSERT per row, one connection
per batch. It runs here without Ray, which only helps it.
"""

import argparse
import json
import logging
import os
import statistics
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import ray
from bs4 import BeautifulSoup
from langchain_text_splitters import RecursiveCharacterTextSplitter
from pgvector.psycopg import register_vector

from jobs.environment import home
from pipelines import embedded
from pipelines.cluster import start_local_ray
from pipelines.embedding.embedder import load_embedder
from pipelines.indexing.collection import Collection, Folder, IndexChoices
from pipelines.indexing.lock import hold_collection
from pipelines.indexing.run import reindex
from pipelines.indexing.settings import ReindexOptions
from pipelines.keeper import superuser_url
from pipelines.records import Chunk, FetchedPage, digest
from pipelines.store import StagedPage, Store

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("RAYDEX_DATA", ROOT.parent / "shared" / "data"))
BASE_URL = "https://docs.ray.io/en/master/"
# The study's chunks, so that both ways embed texts of one size.
SIZE, OVERLAP, MODEL = 700, 50, "all-MiniLM-L6-v2"
LOADED_ROWS = 5_000


def unpack(folder: Path, pages: int) -> list[Path]:
    """Unpack every n-th page of the archive, `pages` in all, without source listings (_modules), below `folder`."""
    with tarfile.open(DATA / "ray-docs-html.tar.xz") as archive:
        members = [m for m in archive.getmembers() if m.name.endswith(".html") and "_modules/" not in m.name]
        chosen = members[:: max(1, len(members) // pages)][:pages]
        for member in chosen:
            path = folder / member.name.removeprefix("en/master/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(archive.extractfile(member).read())  # type: ignore[union-attr]
    return sorted(folder.rglob("*.html"))


@contextmanager
def fresh_database(server: str, name: str) -> Iterator[str]:
    """Yield the URL of a new database on the server; drop it at the end."""
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"create database {name}")  # type: ignore[arg-type]
    try:
        yield server.rsplit("/", 1)[0] + f"/{name}"
    finally:
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f"drop database {name} with (force)")  # type: ignore[arg-type]


def index_folder(url: str, folder: Path) -> dict[str, Any]:
    """Reindex `folder` in this process and its Ray; return the summary."""
    choices = IndexChoices(chunk_unit="characters", chunk_size=SIZE, chunk_overlap=OVERLAP)
    collection = Collection(
        name="bench", folders=[Folder(path=str(folder), base_url=BASE_URL)], index=choices, max_delete_ratio=1
    )
    with Store(url, retry_s=10) as store:
        store.migrate()
        return reindex(store, collection, ReindexOptions(model_cache=home() / "models")).as_dict()


def indexed_texts(url: str) -> list[str]:
    """Return about what the model read of every chunk of the live index: heading path and text."""
    with Store(url) as store, store.scan_chunks(store.live_index("bench").id) as (_, hits):
        return [" > ".join((hit.title, *hit.headings)) + "\n" + hit.text for hit in hits]


def tutorial(url: str, files: list[Path], model: Any) -> int:
    """Index `files` the tutorial's way; return the number of chunks."""
    splitter = RecursiveCharacterTextSplitter(chunk_size=SIZE, chunk_overlap=OVERLAP)
    chunks = []
    for path in files:
        soup = BeautifulSoup(path.read_bytes(), "html.parser")
        for section in soup.find_all("section", id=True):
            source = f"{BASE_URL}{path.name}#{section['id']}"
            text = "".join(str(part.get_text()) for part in section.children if part.name != "section")
            chunks += [(part, source) for part in splitter.split_text(text)]
    with psycopg.connect(url) as connection:
        connection.execute("create extension if not exists vector")
        connection.execute(
            "create table document (id bigserial primary key, text text, source text, embedding vector(384))"
        )
    for start in range(0, len(chunks), 100):
        batch = chunks[start : start + 100]
        vectors = model.encode([text for text, _ in batch], batch_size=100, show_progress_bar=False)
        insert_row_by_row(url, [(text, source, vector) for (text, source), vector in zip(batch, vectors, strict=True)])
    return len(chunks)


def insert_row_by_row(url: str, rows: list[tuple[str, str, Any]]) -> None:
    """Store rows the tutorial's way: a connection for the batch, an INSERT for each row."""
    with psycopg.connect(url) as connection:
        register_vector(connection)
        for row in rows:
            connection.execute("insert into document (text, source, embedding) values (%s, %s, %s)", row)


def load_rows(url: str, texts: list[str], vectors: np.ndarray) -> float:
    """Return the rows per second of loading alone: chunks and vectors into the staging tables."""
    with Store(url) as store:
        store.migrate()
        with hold_collection(store, "load") as lock:
            run = lock.begin("load", None)
            store.save_pages("load", run, [FetchedPage("http://load/", "ok", body=b"x")])
            chunks = [_chunk(number, text) for number, text in enumerate(texts)]
            began = time.perf_counter()
            for start in range(0, len(chunks), 500):
                part = chunks[start : start + 500]
                page = StagedPage(f"http://load/{start}", "h", "t", "en", (), None, 1, part)
                store.stage_pages(run, [page])
                store.stage_vectors(run, [chunk.embed_hash for chunk in part], vectors[start : start + 500])
            return len(chunks) / (time.perf_counter() - began)


def load_rows_tutorial(url: str, texts: list[str], vectors: np.ndarray) -> float:
    """Return the rows per second of the tutorial's loading alone."""
    with psycopg.connect(url) as connection:
        connection.execute("create extension if not exists vector")
        connection.execute(
            "create table document (id bigserial primary key, text text, source text, embedding vector(384))"
        )
    began = time.perf_counter()
    for start in range(0, len(texts), 100):
        rows = [(text, "http://load/#a", vector) for text, vector in zip(texts[start : start + 100], vectors[start : start + 100], strict=True)]  # fmt: skip # noqa: E501
        insert_row_by_row(url, rows)
    return len(texts) / (time.perf_counter() - began)


def _chunk(number: int, text: str) -> Chunk:
    name = digest(str(number), text)
    return Chunk(name, "http://load/", ("a",), "t", ("h",), number, text, name, text, name, 10)


def change_share(files: list[Path], share: float) -> int:
    """Add a sentence to every n-th file, so that about `share` of them change; return how many did."""
    with_text = [path for path in files if "</p>" in path.read_text(errors="replace")]
    chosen = with_text[:: round(len(with_text) / max(1, share * len(files)))]
    for path in chosen:
        text = path.read_text(errors="replace")
        path.write_text(text.replace("</p>", f" A sentence added at {time.time_ns()}.</p>", 1))
    return len(chosen)


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result


def one_round(number: int, server: str, files: list[Path], folder: Path, models: tuple[Any, Any]) -> dict[str, float]:
    """Run every way once; return chunks per second and seconds by name."""
    embedder, sentence_transformer = models
    figures: dict[str, float] = {}
    with fresh_database(server, f"raydex_{number}") as url:
        full, summary = timed(lambda: index_folder(url, folder))
        chunks = summary["chunks"]["total"]
        figures |= {"full_s": full, "end_to_end": chunks / full, "chunks": chunks, "pages": summary["pages"]["seen"]}
        texts = indexed_texts(url)
        bare, _ = timed(lambda: embedder.embed_chunks(texts))
        figures["bare"] = len(texts) / bare
        figures["unchanged_s"], summary = timed(lambda: index_folder(url, folder))
        assert summary["chunks"]["embedded"] == 0 and not summary["changed"], summary
        changed = change_share(files, 0.02)
        figures["changed_s"], summary = timed(lambda: index_folder(url, folder))
        assert summary["pages"]["changed"] == changed, (changed, summary)
    with fresh_database(server, f"tutorial_{number}") as url:
        seconds, count = timed(lambda: tutorial(url, files, sentence_transformer))
        figures["tutorial"] = count / seconds
        figures["tutorial_pages"] = len(files) / seconds
    rng = np.random.default_rng(number)
    vectors = rng.normal(size=(LOADED_ROWS, 384)).astype(np.float32)
    rows = (texts * (LOADED_ROWS // len(texts) + 1))[:LOADED_ROWS]
    with fresh_database(server, f"load_{number}") as url:
        figures["load"] = load_rows(url, rows, vectors)
        figures["load_tutorial"] = load_rows_tutorial(url, rows, vectors)
    return figures


def report(rounds: list[dict[str, float]], ray_start: float) -> dict[str, Any]:
    """Return medians, and ratios taken within each round."""

    def ratio(over: str, under: str) -> float:
        return round(statistics.median(figures[over] / figures[under] for figures in rounds), 3)

    return {
        "rounds": len(rounds),
        "ray_start_s": round(ray_start, 1),
        "medians": {key: round(statistics.median(figures[key] for figures in rounds), 2) for key in rounds[0]},
        "ratios": {
            "end to end / bare Embedder, chunks per second (goal >= 0.9)": ratio("end_to_end", "bare"),
            "end to end / tutorial, chunks per second (goal >= 2)": ratio("end_to_end", "tutorial"),
            "loading alone / tutorial, rows per second (goal >= 8)": ratio("load", "load_tutorial"),
            "unchanged / full, seconds (goal <= 0.03)": ratio("unchanged_s", "full_s"),
            "2 % changed / full, seconds (goal <= 0.15)": ratio("changed_s", "full_s"),
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--pages", type=int, default=250)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    if not (DATA / "ray-docs-html.tar.xz").exists():
        sys.exit(f"{DATA}/ray-docs-html.tar.xz is absent: set RAYDEX_DATA")
    from sentence_transformers import SentenceTransformer

    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    logging.getLogger("ray").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory() as scratch, embedded.run_postgres(Path(scratch) / "home"):
        server = superuser_url(Path(scratch) / "home")
        folder = Path(scratch) / "pages"
        files = unpack(folder, args.pages)
        embedder = load_embedder(MODEL, device="cpu", threads=os.cpu_count())
        models = (embedder, SentenceTransformer(str(embedder.counter.folder), device="cpu"))
        ray_start, _ = timed(start_local_ray)
        rounds = []
        for number in range(args.rounds):
            rounds.append(one_round(number, server, files, folder, models))
            print(f"round {number}: {json.dumps({k: round(v, 2) for k, v in rounds[-1].items()})}", file=sys.stderr)
        ray.shutdown()
    result = report(rounds, ray_start)
    if args.json:
        print(json.dumps(result))
    else:
        print(f"Ray started in {result['ray_start_s']} s (not counted); medians of {result['rounds']} rounds:")
        for key, value in (result["medians"] | result["ratios"]).items():
            print(f"  {key:62} {value:>10,.3f}")


if __name__ == "__main__":
    main()
