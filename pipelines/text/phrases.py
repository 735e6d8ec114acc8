"""Reads tables of phrases, which stand in YAML files beside the modules that look for them.

A table has the lists that its module knows, and may have `patterns` and `phrases` by name. Each row of one is an
alternative, a regular expression whose case does not matter; a phrase begins and ends with a whole word. `{name}` in a
row stands for any row of that list of `parts`. Its `names` are sets of words, each set a text.
"""

import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

import yaml

# To which "no" and "off" are words. The one in C needs a tenth of the time, and is not on every system.
_LOADER = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


def read_table(module: str) -> dict[str, Any]:
    """Return the table of a module, which has its name and stands beside it."""
    package, _, name = module.rpartition(".")
    text = (files(package) / f"{name}.yaml").read_text(encoding="utf-8")
    table: dict[str, Any] = yaml.load(text, _LOADER)
    return table


def read_phrases(module: str) -> dict[str, re.Pattern[str]]:
    """Return the patterns and the phrases of a module's table by their names."""
    return compile_phrases(read_table(module))


def read_names(module: str) -> dict[str, frozenset[str]]:
    """Return the sets of names of a module's table by what they are."""
    return {kind: frozenset(names.split()) for kind, names in read_table(module)["names"].items()}


def compile_phrases(table: Mapping[str, Any]) -> dict[str, re.Pattern[str]]:
    """Return the patterns and the phrases of a table by their names. Raises KeyError for a part that is not there."""
    parts = table.get("parts", {})
    patterns = {name: _any_of(rows, parts) for name, rows in table.get("patterns", {}).items()}
    phrases = {name: rf"\b{_any_of(rows, parts)}\b" for name, rows in table.get("phrases", {}).items()}
    return {name: re.compile(text, re.IGNORECASE) for name, text in (patterns | phrases).items()}


def _any_of(rows: Sequence[str], parts: Mapping[str, Sequence[str]]) -> str:
    filled = (re.sub(r"\{([a-z_]+)\}", lambda part: _any_of(parts[part[1]], parts), row) for row in rows)
    return f"(?:{'|'.join(filled)})"
