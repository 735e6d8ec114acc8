"""Measures Raydex beside LlamaIndex and Haystack: the same chunks, model, questions and Postgres, in turn.

    python -m benchmarks.peers [--quick] [--only ingest|query] [--chunks 200000] [--whole] [--home DIR] [--write PAGE]

Each library runs in a process and an environment of its own, which the first run makes (benchmarks/peer/). Ingest:
Raydex reads the HTML of 153 pages, cuts, embeds and publishes it; the others get the chunks that it cut. Query: hybrid
retrieval of 9 hits from the whole Ray documentation and from a synthetic collection, with the same vectors everywhere.
"""

import argparse
import json
import random
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import common
from benchmarks.peer.client import HERE, versions_of
from benchmarks.peer.corpus import Corpus, Questions, export
from benchmarks.peer.ingest import ingest_figures
from benchmarks.peer.query import ASKED, DEPTH, EMBEDDED, KNOWN, K, Searches
from benchmarks.peer.setup import MODEL, OURS, OURS_MODELS, PEERS, Bench
from benchmarks.synthetic import COLLECTION as SYNTHETIC
from benchmarks.synthetic import Synthetic, prepared
from benchmarks.tables import as_table

PAGES = 153
REAL = "raydocs-peers"  # indexed with the peers' weights, not with the default ones
# What is compared of `raydex index`: its flags by their name in the table.
OURS_INGEST = {name: ("--model", model) for name, model in OURS_MODELS.items()}


def ray_corpus(bench: Bench) -> Corpus:
    """Return the whole Ray documentation, with questions that a language model wrote from its sections."""
    rows = json.loads(common.data("embedding_qa.json").read_text(encoding="utf-8"))
    texts = list(dict.fromkeys(row["question"] for row in rows))[::2]
    return export(bench.folder, bench.owner, REAL, lambda: bench.embed(texts))


def synthetic_corpus(bench: Bench, chunks: int) -> Corpus:
    """Return a synthetic collection of `chunks` chunks, with questions of its own."""
    synthetic = Synthetic(chunks, cache=bench.home)
    url = prepared(bench.url("postgres"), synthetic)

    def questions() -> Questions:
        made = synthetic.questions(2_000)
        random.Random(1).shuffle(made)  # they come subject by subject
        return [text for text, _ in made], np.stack([vector for _, vector in made])

    return export(bench.folder / str(chunks), url, SYNTHETIC, questions)


def measure(args: argparse.Namespace) -> dict[str, Any]:
    """Return the figures of what was asked for."""
    figures: dict[str, Any] = {}
    with common.indexed_ray_docs(args.home, REAL, MODEL) as url:
        bench, rounds = Bench(args.home, url), 1 if args.quick else args.rounds
        if args.only != "query":
            count = None if args.whole else 20 if args.quick else PAGES
            times = 1 if args.whole else min(rounds, 2)  # a round takes four minutes
            figures["ingest"] = ingest_figures(bench, common.ray_docs(args.home, count), OURS_INGEST, times)
        if args.only != "ingest":
            with Searches(bench, ray_corpus(bench), (EMBEDDED, KNOWN), args.depth) as searches:
                figures["real"] = {"chunks": ray_corpus(bench).chunks, **searches.measure(rounds)}
                figures["score"] = searches.scores(common.data("eval-dev.jsonl"))
            synthetic = synthetic_corpus(bench, 20_000 if args.quick else args.chunks)
            with Searches(bench, synthetic, (KNOWN,), args.depth) as searches:
                figures["synthetic"] = {"chunks": synthetic.chunks, **searches.measure(rounds)}
    return figures


# ---------------------------------------------------------------------------------------------- table


def table(figures: dict[str, Any]) -> str:
    """Return the table; what a peer takes stands beside its ratio to Raydex, the median within the rounds."""
    names = [*OURS_MODELS, *PEERS]
    rows = [*_ingest_rows(figures.get("ingest"), names)]
    for key, what in (("real", "the Ray documentation"), ("synthetic", "synthetic")):
        if key in figures:
            rows += _query_rows(figures[key], f"{figures[key]['chunks']:,} chunks ({what})", names)
    if "score" in figures:
        rows.append([f"retrieval score at {K}, users' questions", *_cells(figures["score"], names, "{:.3f}")])
    return as_table(["", *names], rows)


def _ingest_rows(found: dict[str, Any] | None, names: list[str]) -> list[list[str]]:
    if not found:
        return []
    chunks = int(found[OURS]["chunks"])

    def row(what: str, key: str, form: str) -> list[str]:
        return [what, *_cells({name: found[name][key] for name in found}, names, form)]

    rates = {name: found[name]["chunks"] / found[name]["seconds"] for name in found}
    ratios = {name: common.ratio(found[name]["rounds"], found[OURS]["rounds"]) for name in found}
    return [
        [
            f"ingest of {chunks:,} chunks, s",
            *_with_ratio({n: found[n]["seconds"] for n in found}, ratios, names, "{:.1f}"),
        ],
        ["the same, chunks/s", *_cells(rates, names, "{:.1f}")],
        row("run again, nothing changed, s", "again", "{:.1f}"),
        row("peak memory of the ingest, MB", "memory", "{:,.0f}"),
    ]


def _query_rows(found: dict[str, Any], where: str, names: list[str]) -> list[list[str]]:
    rows = []
    for mode, how in ((EMBEDDED, "with the question's embedding"), (KNOWN, "vectors known")):
        for clients in ASKED:
            if of := found.get(f"{mode} {clients}"):
                ratios = {name: common.ratio(of[name]["rounds"], of[OURS]["rounds"]) for name in of}
                at = f"{where}, {how}, {clients} client{'s' * (clients > 1)}"
                cells = {name: f"{of[name]['p50']:.1f} / {of[name]['p95']:.1f}" for name in of}
                rows.append([f"{at}: p50 / p95, ms", *_with_ratio(cells, ratios, names, "{}")])
                if clients > 1:
                    rates = {name: of[name]["rate"] for name in of}
                    rows.append([f"{at}: questions/s", *_cells(rates, names, "{:.0f}")])
    return [*rows, [f"{where}: memory of the process, MB", *_cells(found["memory"], names, "{:,.0f}")]]


def _cells(values: dict[str, Any], names: list[str], form: str) -> list[str]:
    return [form.format(values[name]) if name in values else "" for name in names]


def _with_ratio(values: dict[str, Any], ratios: dict[str, float], names: list[str], form: str) -> list[str]:
    cells = _cells(values, names, form)
    return [
        f"{cell} ({ratios[n]:.1f} ×)" if n in PEERS and cell else cell for n, cell in zip(names, cells, strict=True)
    ]


def main() -> None:
    parser = common.arguments(__doc__)
    parser.add_argument("--only", choices=("ingest", "query"))
    parser.add_argument("--chunks", type=int, default=200_000, help="synthetic ones")
    parser.add_argument("--whole", action="store_true", help="ingest the whole documentation (an hour)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--depth", type=int, default=DEPTH, help="hits that each leg of a peer brings to the fusion")
    args = common.parse(parser, "peers")
    args.home = Path(args.home).absolute()
    figures = measure(args)
    theirs = [name for short in PEERS.values() for name in versions_of(HERE / f"{short}.txt")]
    text = f"{table(figures)}\n\n{', '.join(theirs)}."
    common.report(args, "peers", text, figures, ["sentence-transformers", "torch", "onnxruntime", "psycopg"])


if __name__ == "__main__":
    main()
