"""The flags, the run over sites and what is printed of a page, for both oracles."""

import argparse
import sys
from collections.abc import Iterable, Iterator
from typing import TypeVar

from benchmarks import common
from benchmarks.reading.compare import FIGURES, Comparison

T = TypeVar("T")


def arguments(doc: str | None, pages: int, shows: str) -> argparse.ArgumentParser:
    """Return the parser of an oracle: `pages` of each site are compared, and with `--show` it `shows` faults."""
    parser = common.arguments(doc)
    parser.add_argument("--site", action="append", metavar="NAME", help="only this one; may be given again")
    parser.add_argument("--pages", type=int, default=pages, help="of each site, evenly spaced")
    parser.add_argument("--show", type=int, default=0, metavar="N", help=shows)
    return parser


def collected(coming: Iterable[T], without: str) -> list[T]:
    """Return the results of sites up to Ctrl-C; end as skipped, for the reason `without`, if there are none."""
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
    """Yield the figures of a page, and what is missing, too many and wrong."""
    figures = ", ".join(f"{name} {getattr(one, name)}" for name in FIGURES if getattr(one, name).of)
    yield f"\n{title}\n  {figures}, spaced {one.spaced}"
    yield from (f"  missing: {text}" for text in one.missing[:examples])
    yield from (f"  too many: {text}" for text in one.extra[:examples])
    yield from (f"  {kind}: {text}" for kind, texts in one.wrong.items() for text in texts[:examples])
