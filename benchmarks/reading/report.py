"""Prints what is wrong with a page, for both oracles."""

from collections.abc import Iterator

from benchmarks.reading.compare import FIGURES, Comparison


def details(title: str, one: Comparison, examples: int) -> Iterator[str]:
    """Yield the figures of a page, and what is missing, too many and wrong."""
    figures = ", ".join(f"{name} {getattr(one, name)}" for name in FIGURES if getattr(one, name).of)
    yield f"\n{title}\n  {figures}, spaced {one.spaced}"
    yield from (f"  missing: {text}" for text in one.missing[:examples])
    yield from (f"  too many: {text}" for text in one.extra[:examples])
    yield from (f"  {kind}: {text}" for kind, texts in one.wrong.items() for text in texts[:examples])
