"""Measures the time to index a folder of pages, and to run again, compared with the bare encoder.

    python -m benchmarks.indexing [--pages 153] [--rounds 3] [--model NAME] [--quick] [--home DIR] …

Each round runs `raydex index` as a separate process, from start to end, on a fresh database: once, again over the
unchanged folder, and after adding a sentence to 2% of the pages. In turn with it, the encoder embeds exactly the same
texts in this process in one call. The whole documentation, indexed once, is also run again unchanged.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg

from benchmarks import common, tables
from pipelines import embedded
from pipelines.embedding.load import load_embedder
from pipelines.indexing.chunking.page_cutter import PageCutter
from pipelines.indexing.collection import AUTO
from pipelines.indexing.folders.files import SETTLED_NS
from pipelines.indexing.folders.folder import FolderSettings
from pipelines.indexing.reading.text import UnreadablePage
from pipelines.indexing.settings import choose_model
from pipelines.keeper import superuser_url
from pipelines.records import IndexSettings, Page

CHANGED = 0.02
# The next run reads files again if they changed shortly before a run (see folders/files.py).
SETTLED_S = SETTLED_NS / 1e9 + 0.5


@contextmanager
def fresh_database(server: str) -> Iterator[str]:
    """Yield the URL of a new database on the server; drop it at the end."""
    name = f"indexing_{time.time_ns()}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"create database {name}")  # type: ignore[arg-type]
    try:
        yield server.rsplit("/", 1)[0] + f"/{name}"
    finally:
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f"drop database {name} with (force)")  # type: ignore[arg-type]


def index(home: Path, folder: Path, collection: str, *flags: str, database: str = "") -> dict[str, Any]:
    """Run `raydex index` over `folder`, and return its summary with the `wall` seconds of the whole process."""
    where = ["--path", str(folder), "--base-url", common.BASE_URL, "--collection", collection]
    variables = {"RAYDEX_HOME": str(home), "PYTHONPATH": str(common.ROOT), "DATABASE_URL": database}
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "jobs", "index", *where, *flags, "--json"],
        env=os.environ | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    summary: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return summary | {"wall": time.perf_counter() - began}


def index_thrice(home: Path, server: str, folder: Path, model: str) -> dict[str, float]:
    """Index a copy of `folder`, again unchanged, and after a change. Return the seconds."""
    copy = home / f"{folder.name}-copy"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder, copy)
    time.sleep(SETTLED_S)
    with fresh_database(server) as url:

        def run() -> dict[str, Any]:
            return index(home, copy, "bench", "--model", model, database=url)

        full, again, touched = run(), run(), change_share(sorted(copy.rglob("*.html")))
        assert not again["changed"], again
        changed = run()
        assert changed["pages"]["changed"] == touched, changed
    shutil.rmtree(copy)
    return {
        "full": full["wall"], "encoder": full["seconds"]["encoder"], "chunks": full["chunks"]["total"],
        "unchanged": again["wall"], "changed": changed["wall"], "changed_embedded": changed["chunks"]["embedded"],
    }  # fmt: skip


def change_share(files: list[Path]) -> int:
    """Add a paragraph to a section in 2% of the files, and return their number."""
    with_text = [path for path in files if "</section>" in path.read_text(errors="replace")]
    chosen = with_text[:: round(len(with_text) / max(1, CHANGED * len(files)))]
    for path in chosen:
        added = f"<p>A sentence added at {time.time_ns()}.</p></section>"
        path.write_text(path.read_text(errors="replace").replace("</section>", added, 1))
    return len(chosen)


def texts_of(folder: Path, model: str) -> list[str]:
    """Return the model's input texts for the pages of `folder`, without duplicates."""
    settings, cut = FolderSettings(path=str(folder), base_url=common.BASE_URL), PageCutter(IndexSettings(model))
    texts: dict[str, str] = {}
    for path in settings.files().paths:
        with suppress(UnreadablePage):
            page = cut(Page(settings.url_of(path), Path(path).read_bytes(), settings.media_type_of(path)))
            texts |= {chunk.embed_hash: chunk.embed_text for chunk in page.chunks}
    return list(texts.values())


def column(rounds: Mapping[str, list[Any]]) -> list[str]:
    """Return one model's cells: medians over the rounds, differences and ratios within a round."""
    ours, bare = rounds["ours"], rounds["bare"]
    middle = {name: statistics.median(figures[name] for figures in ours) for name in ours[0]}
    beyond = statistics.median(figures["full"] - 1.1 * alone for figures, alone in zip(ours, bare, strict=True))
    share = common.ratio(bare, [figures["full"] for figures in ours])
    embedded = f"{middle['changed']:.1f} s ({middle['changed_embedded']:.0f})"
    seconds = [f"{value:.1f} s" for value in (statistics.median(bare), middle["full"], beyond)]
    return [*seconds, f"{share:.2f}", f"{middle['unchanged']:.1f} s", embedded]


def table_of(found: Mapping[str, Mapping[str, list[Any]]], pages: int, whole: list[float]) -> str:
    """Return the table with a column per model."""
    head = ["the whole command, from its start to its end", *(f"`{model}`" for model in found), "goal"]
    chunks = max(figures["chunks"] for rounds in found.values() for figures in rounds["ours"])
    names = [
        (f"the bare encoder: {chunks:,} texts at once", ""),
        (f"{pages} pages to the published index", ""),
        ("of that, beyond 1.1 × the encoder", "≤ 4 s"),
        ("chunks per second ÷ the encoder's", ""),
        ("again, unchanged", ""),
        ("again, 2% of the pages changed (texts embedded)", ""),
    ]
    cells = list(zip(*(column(rounds) for rounds in found.values()), strict=True))
    rows = [[name, *row, goal] for (name, goal), row in zip(names, cells, strict=True)]
    if whole:
        last = [""] * (len(found) - 1)
        rows.append(["the whole documentation again, unchanged", f"{statistics.median(whole):.1f} s", *last, "≤ 5 s"])
    return tables.as_table(head, rows)


def unchanged_whole(home: Path, rounds: int) -> list[float]:
    """Return the seconds of unchanged runs over the whole documentation."""
    with common.indexed_ray_docs(home):
        index(home, common.ray_docs(home), "raydocs")  # files unpacked shortly before are read again
        return [index(home, common.ray_docs(home), "raydocs")["wall"] for _ in range(rounds)]


def measure(home: Path, folder: Path, model: str, rounds: int) -> dict[str, list[Any]]:
    """Return each method's times by round."""
    threads, server = len(os.sched_getaffinity(0)), superuser_url(home)
    texts, embedder = (
        texts_of(folder, model),
        load_embedder(model, device="cpu", threads=threads, cache=home / "models"),
    )
    embedder.embed_chunks(texts[:1])
    ways: dict[str, Callable[[], Any]] = {
        "ours": lambda: index_thrice(home, server, folder, model),
        "bare": lambda: common.seconds(lambda: embedder.embed_chunks(texts)),
    }
    return common.interleave(ways, rounds)


def main() -> None:
    parser = common.arguments(__doc__)
    parser.add_argument("--pages", type=int, default=153)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--model", action="append", help="may be repeated (default: in fp32, and what is chosen here)")
    parser.add_argument("--without-whole", action="store_true", help="leave the whole documentation out")
    args = common.parse(parser, "indexing")
    pages, rounds = (20, 1) if args.quick else (args.pages, args.rounds)
    folder = common.ray_docs(args.home, pages)
    models = args.model or dict.fromkeys([IndexSettings().model, choose_model(AUTO)])
    with embedded.run_postgres(args.home):
        found = {model: measure(args.home, folder, model, rounds) for model in models}
    whole = [] if args.quick or args.without_whole else unchanged_whole(args.home, rounds)
    figures = {"pages": pages, "models": found, "whole_unchanged": whole}
    common.report(args, "indexing", table_of(found, pages, whole), figures, packages=["onnxruntime", "ray"])


if __name__ == "__main__":
    main()
