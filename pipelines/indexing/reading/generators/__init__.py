"""Documentation generators, a table each: a YAML file in this folder is known.

A module of its name has the functions that it needs. What all of them call noise, listings, boxes, … is what a page of
any site is read by.
"""

from collections.abc import Iterable
from functools import partial
from importlib import import_module
from pathlib import Path

from pipelines.indexing.reading.generator import Generator
from pipelines.indexing.reading.sources import Publishing
from pipelines.text.phrases import read_table


def _read(table: Path) -> Generator:
    name = f"{__name__}.{table.stem}"
    module = import_module(name) if table.with_suffix(".py").is_file() else None
    rewrite, sources, keys = getattr(module, "rewrite", None), getattr(module, "sources", None), read_table(name)
    if publishes := keys.pop("publishes", None):
        sources = partial(Publishing(**publishes).sources, keys["name"])
    return Generator(**keys, rewrite=rewrite, sources=sources)


GENERATORS = tuple(map(_read, sorted(Path(__file__).parent.glob("*.yaml"))))

ANY = Generator("any")  # says nothing of its pages

_BY_MARK = {mark: generator for generator in GENERATORS for mark in generator.marks.split()}


def generators_of(names: frozenset[str]) -> list[Generator]:
    """Return the generators of which a page with these names bears a mark."""
    return list({generator.name: generator for mark, generator in _BY_MARK.items() if mark in names}.values())


def _all(texts: Iterable[str]) -> frozenset[str]:
    return frozenset(" ".join(texts).split())


NOISE = _all(generator.noise for generator in GENERATORS)
LISTINGS = _all(generator.listings for generator in GENERATORS)
BOXES = _all(generator.boxes for generator in GENERATORS)
CONTENTS = _all(generator.contents for generator in GENERATORS)
SECTIONS = _all(generator.sections for generator in GENERATORS)
CODE_LINES = _all(generator.code_lines for generator in GENERATORS)
