"""Provides the flags, the run over sites and the printed page details for both reading benchmarks."""

import argparse
import sys
from collections.abc import Iterable, Iterator
from typing import TypeVar

from benchmarks import common
from benchmarks.reading.compare import FIGURES, Comparison

T = TypeVar("T")


def arguments(doc: str | None, pages: int, shows: str) -> argparse.ArgumentParser:
    """Return a benchmark's argument parser: it compares `pages` per site, and `--show` prints `shows` faults."""
    parser = common.arguments(doc)
    parser.add_argument("--site", action="append", metavar="NAME", help="only this one; may be given again")
    parser.add_argument("--pages", type=int, default=pages, help="of each site, evenly spaced")
    parser.add_argument("--show", type=int, default=0, metavar="N", help=shows)
    return parser


def collected(coming: Iterable[T], without: str) -> list[T]:
    """Return the results of sites up to Ctrl-C. If there are none, exit as skipped with the reason `without`."""
    results: list[T] = []
    try:
        for result in coming:
            results.append(result)
    except KeyboardInterrupt:
        print(f"stopped after {len(results)} sites", file=sys.stderr)
    if not results:
        common.cannot_run(without)
    return results


def details(title: str, one: Comparison, examples: int) -> Iterator[str]:
    """Yield a page's figures, and its missing, extra and wrong parts."""
    figures = ", ".join(f"{name} {getattr(one, name)}" for name in FIGURES if getattr(one, name).of)
    yield f"\n{title}\n  {figures}, spaced {one.spaced}"
    yield from (f"  missing: {text}" for text in one.missing[:examples])
    yield from (f"  too many: {text}" for text in one.extra[:examples])
    yield from (f"  {kind}: {text}" for kind, texts in one.wrong.items() for text in texts[:examples])
