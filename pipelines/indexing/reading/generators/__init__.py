"""Loads the documentation generators: each YAML file in this folder is the table of one generator.

A module with the same name contains the functions that it needs. The noise, listings, boxes and so on of all generators
apply to pages of any site.
"""

from collections.abc import Iterable
from dataclasses import fields
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from pipelines.indexing.reading.generator import Generator, InvalidSelector, check_selector
from pipelines.indexing.reading.sources import Publishing
from pipelines.text.phrases import read_table

_KEYS = ", ".join([*(field.name for field in fields(Generator) if field.type is str), "publishes"])
_PUBLISHES = ", ".join(field.name for field in fields(Publishing))
_SELECTORS = ("main", "listing", "hidden", "only_with", "title", "boxed")


class WrongTable(ValueError):
    """A generator's table has an unknown key, lacks a key, or contains an invalid selector."""


def generator_of(table: str, keys: dict[str, Any], module: ModuleType | None = None) -> Generator:
    """Return the generator for the keys of a table and the functions of its module. Raises WrongTable."""
    rewrite, sources = getattr(module, "rewrite", None), getattr(module, "sources", None)
    try:
        for key in keys.keys() & _SELECTORS:
            try:
                check_selector(keys[key])
            except InvalidSelector as error:
                raise WrongTable(f"{table}: {key}: {error}") from error
        if publishes := keys.pop("publishes", None):
            given = {key: _frozen(value) for key, value in publishes.items()}
            sources = partial(Publishing(**given).sources, keys.get("name", ""))
        return Generator(**keys, rewrite=rewrite, sources=sources)
    except TypeError as error:
        raise WrongTable(f"{table}: {error} (allowed keys: {_KEYS}; in publishes: {_PUBLISHES})") from error


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def _read(table: Path) -> Generator:
    name = f"{__name__}.{table.stem}"
    module = import_module(name) if table.with_suffix(".py").is_file() else None
    return generator_of(table.name, read_table(name), module)


GENERATORS = tuple(map(_read, sorted(Path(__file__).parent.glob("*.yaml"))))

ANY = Generator("any")  # a generator without any rules

_BY_MARK = {mark: generator for generator in GENERATORS for mark in generator.marks.split()}


def generators_of(names: frozenset[str]) -> list[Generator]:
    """Return the generators with a mark among the `names` of a page."""
    return list({generator.name: generator for mark, generator in _BY_MARK.items() if mark in names}.values())


def _all(texts: Iterable[str]) -> frozenset[str]:
    return frozenset(" ".join(texts).split())


NOISE = _all(generator.noise for generator in GENERATORS)
LISTINGS = _all(generator.listings for generator in GENERATORS)
BOXES = _all(generator.boxes for generator in GENERATORS)
CONTENTS = _all(generator.contents for generator in GENERATORS)
SECTIONS = _all(generator.sections for generator in GENERATORS)
UNLINKED_SECTIONS = _all(generator.unlinked_sections for generator in GENERATORS)
INDEX_TERMS = _all(generator.index_terms for generator in GENERATORS)
INDEX_IDS = tuple(_all(generator.index_ids for generator in GENERATORS))
CODE_LINES = _all(generator.code_lines for generator in GENERATORS)
