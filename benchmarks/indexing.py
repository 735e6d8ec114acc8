"""Measures how fast a folder of pages becomes an index, and running again, beside the bare encoder.

    python -m benchmarks.indexing [--pages 153] [--rounds 3] [--quick] [--home DIR] [--json FILE] [--write PAGE]

Each round runs `raydex index` as a process of its own, from its start to its end, on a fresh database: once, again over
the unchanged folder, and after a sentence was added to 2 % of the pages. In turn with it the encoder embeds exactly the
same texts in this process, all at once. The whole documentation, indexed once, is run again unchanged.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from benchmarks import common, tables
from pipelines import embedded
from pipelines.embedding.embedder import Embedder, load_embedder
from pipelines.indexing.chunking.page_cutter import PageCutter
from pipelines.indexing.collection import IndexChoices
from pipelines.indexing.folders.files import SETTLED_NS
from pipelines.indexing.folders.folder import FolderSettings
from pipelines.indexing.reading.text import UnreadablePage
from pipelines.keeper import superuser_url
from pipelines.records import Page

CHANGED = 0.02
# Files that changed shortly before a run are read again by the next one (see folders/files.py).
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


def index(home: Path, folder: Path, collection: str, database: str = "") -> dict[str, Any]:
    """Run `raydex index` over `folder`; return its summary, with the `wall` seconds of the whole process."""
    where = ["--path", str(folder), "--base-url", common.BASE_URL, "--collection", collection]
    variables = {"RAYDEX_HOME": str(home), "PYTHONPATH": str(common.ROOT)} | (
        {"DATABASE_URL": database} if database else {}
    )
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "jobs", "index", *where, "--json"],
        env=os.environ | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    summary: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return summary | {"wall": time.perf_counter() - began}


def index_thrice(home: Path, server: str, folder: Path) -> dict[str, float]:
    """Index a copy of `folder`, again unchanged, and after a change; return seconds."""
    copy = home / f"{folder.name}-copy"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder, copy)
    time.sleep(SETTLED_S)
    with fresh_database(server) as url:
        full = index(home, copy, "bench", url)
        again = index(home, copy, "bench", url)
        assert not again["changed"], again
        touched = change_share(sorted(copy.rglob("*.html")))
        changed = index(home, copy, "bench", url)
        assert changed["pages"]["changed"] == touched, changed
    shutil.rmtree(copy)
    return {
        "full": full["wall"], "encoder": full["seconds"]["embedding_actors"], "chunks": full["chunks"]["total"],
        "unchanged": again["wall"], "changed": changed["wall"], "changed_embedded": changed["chunks"]["embedded"],
    }  # fmt: skip


def change_share(files: list[Path]) -> int:
    """Add a sentence to 2 % of the files; return how many that are."""
    with_text = [path for path in files if "</p>" in path.read_text(errors="replace")]
    chosen = with_text[:: round(len(with_text) / max(1, CHANGED * len(files)))]
    for path in chosen:
        text = path.read_text(errors="replace")
        path.write_text(text.replace("</p>", f" A sentence added at {time.time_ns()}.</p>", 1))
    return len(chosen)


def texts_of(folder: Path) -> list[str]:
    """Return what the model reads of the pages of `folder`, each text once."""
    settings, cut = FolderSettings(str(folder), common.BASE_URL), PageCutter(IndexChoices().settings())
    texts: dict[str, str] = {}
    for path in settings.files().paths:
        try:
            page = cut(Page(settings.url_of(path), Path(path).read_bytes(), settings.media_type_of(path)))
        except UnreadablePage:
            continue
        texts |= {chunk.embed_hash: chunk.embed_text for chunk in page.chunks}
    return list(texts.values())


def table_of(ours: list[dict[str, float]], bare: list[float], pages: int, whole: float | None) -> str:
    """Return the table."""
    middle = {name: statistics.median(figures[name] for figures in ours) for name in ours[0]}
    encoder = statistics.median(bare)
    over = [figures["full"] - 1.1 * seconds for figures, seconds in zip(ours, bare, strict=True)]
    share = common.ratio(bare, [figures["full"] for figures in ours])
    rows = [
        [f"the bare encoder, {middle['chunks']:.0f} texts at once", f"{encoder:.1f} s", ""],
        [f"{pages} pages to the published index", f"{middle['full']:.1f} s", "≤ 1.1 × encoder + 4 s"],
        ["beyond 1.1 × the encoder", f"{statistics.median(over):.1f} s", "≤ 4 s"],
        ["chunks a second ÷ the bare encoder's", f"{share:.2f}", ""],
        ["the same folder, unchanged", f"{middle['unchanged']:.1f} s", ""],
        [
            f"2 % of the pages changed, {middle['changed_embedded']:.0f} texts embedded",
            f"{middle['changed']:.1f} s",
            "",
        ],
    ]
    if whole is not None:
        rows.append(["the whole documentation, unchanged", f"{whole:.1f} s", "≤ 5 s"])
    return tables.as_table(["the whole command, from its start to its end", "median", "goal"], rows)


def unchanged_whole(home: Path, rounds: int) -> list[float]:
    """Return the seconds of runs over the whole documentation, indexed before."""
    with common.indexed_ray_docs(home):
        index(home, common.ray_docs(home), "raydocs")  # files that were unpacked shortly before are read once more
        return [index(home, common.ray_docs(home), "raydocs")["wall"] for _ in range(rounds)]


def main() -> None:
    parser = common.arguments(__doc__)
    parser.add_argument("--pages", type=int, default=153)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--without-whole", action="store_true", help="leave the whole documentation out")
    args = common.parse(parser, "indexing")
    pages, rounds = (20, 1) if args.quick else (args.pages, args.rounds)
    folder = common.ray_docs(args.home, pages)
    texts, embedder = texts_of(folder), default_embedder(args)
    with embedded.run_postgres(args.home):
        server = superuser_url(args.home)
        ways = {
            "ours": lambda: index_thrice(args.home, server, folder),
            "bare": lambda: common.seconds(lambda: embedder.embed_chunks(texts)),
        }
        found = common.interleave(ways, rounds)
    whole = [] if args.quick or args.without_whole else unchanged_whole(args.home, rounds)
    table = table_of(found["ours"], found["bare"], pages, statistics.median(whole) if whole else None)
    common.report(args, "indexing", table, found | {"whole_unchanged": whole}, packages=["onnxruntime", "ray"])


def default_embedder(args: argparse.Namespace) -> Embedder:
    """Return the default model as indexing uses it on this machine, warm."""
    threads = len(os.sched_getaffinity(0))
    embedder = load_embedder(IndexChoices().model, device="cpu", threads=threads, cache=args.home / "models")
    embedder.embed_chunks(["warm"])
    return embedder


if __name__ == "__main__":
    main()
