"""Reads tables of phrases from the YAML files next to the modules that use them.

A table contains lists that are specific to its module, and may contain `patterns` and `phrases` by name. Each row of
those is an alternative: a case-insensitive regular expression. A phrase begins and ends at a word boundary. `{name}` in
a row matches any row of that list in `parts`. `names` maps each kind to a set of words, written as one string.
"""

import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

import yaml

from pipelines.text.parsing import UniqueKeys

# This loader keeps "no" and "off" as strings. The C version takes a tenth of the time, but not every system has it.
_BASE_LOADER: type[yaml.BaseLoader] = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


class _TableLoader(UniqueKeys, _BASE_LOADER):
    pass


def read_table(module: str) -> dict[str, Any]:
    """Return the table of a module: the YAML file with the module's name in the same folder.

    Raises yaml.YAMLError for a repeated key.
    """
    package, _, name = module.rpartition(".")
    text = (files(package) / f"{name}.yaml").read_text(encoding="utf-8")
    table: dict[str, Any] = yaml.load(text, _TableLoader)
    return table


def read_phrases(module: str) -> dict[str, re.Pattern[str]]:
    """Return the compiled patterns and phrases of a module's table by name."""
    return compile_phrases(read_table(module))


def read_names(module: str) -> dict[str, frozenset[str]]:
    """Return the sets of names in a module's table, by kind."""
    return {kind: frozenset(names.split()) for kind, names in read_table(module)["names"].items()}


def compile_phrases(table: Mapping[str, Any]) -> dict[str, re.Pattern[str]]:
    """Return the compiled patterns and phrases of a table by name. Raises KeyError for a missing part."""
    parts = table.get("parts", {})
    patterns = {name: _any_of(rows, parts) for name, rows in table.get("patterns", {}).items()}
    phrases = {name: rf"\b{_any_of(rows, parts)}\b" for name, rows in table.get("phrases", {}).items()}
    return {name: re.compile(text, re.IGNORECASE) for name, text in (patterns | phrases).items()}


def _any_of(rows: Sequence[str], parts: Mapping[str, Sequence[str]]) -> str:
    filled = (re.sub(r"\{([a-z_]+)\}", lambda part: _any_of(parts[part[1]], parts), row) for row in rows)
    return f"(?:{'|'.join(filled)})"
