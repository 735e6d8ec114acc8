"""Parses JSON, YAML and TOML that others wrote, with one error for anything that goes wrong.

The libraries raise many types for bad input: deeply nested text raises RecursionError, and a wrong tag in YAML raises
KeyError, IndexError or AttributeError. Aliases in YAML that expand to a huge value are refused.
"""

import json
import tomllib
from typing import Any

import yaml

# Values of a YAML document with its aliases expanded; no configuration or front matter comes near that.
MOST_VALUES = 100_000


class NotParsed(ValueError):
    """The text is not valid JSON, YAML or TOML; the message says where in one line."""


def parse_json(text: str | bytes) -> Any:
    """Return the value of a JSON text. Raises NotParsed."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise NotParsed("it is nested too deeply") from error
    except ValueError as error:
        raise NotParsed(str(error)) from error


def parse_toml(text: str) -> dict[str, Any]:
    """Return the table of a TOML text. Raises NotParsed."""
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise NotParsed("it is nested too deeply") from error
    except ValueError as error:
        raise NotParsed(str(error)) from error


def parse_yaml(text: str | bytes, loader: type[yaml.SafeLoader] = yaml.SafeLoader) -> Any:
    """Return the value of a YAML document, None if it is empty. Raises NotParsed."""
    try:
        reader = loader(text)
        try:
            node = reader.get_single_node()
            if node is not None and _size(node, {}) > MOST_VALUES:
                raise NotParsed(f"its aliases expand to more than {MOST_VALUES:,} values")
            return None if node is None else reader.construct_document(node)
        finally:
            reader.dispose()
    except NotParsed:
        raise
    except RecursionError as error:
        raise NotParsed("it is nested too deeply") from error
    except Exception as error:  # constructors of values raise KeyError, IndexError, AttributeError and others
        raise NotParsed(_describe(error)) from error


def _describe(error: Exception) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark:
        mark = error.problem_mark
        return f"line {mark.line + 1}, column {mark.column + 1}: {error.problem or error.context}"
    said = " ".join(str(error).split())
    return said if isinstance(error, yaml.YAMLError) else f"it has an invalid value: {said}"


def _size(node: yaml.Node, known: dict[int, int]) -> int:
    """Return the number of values below `node` after all aliases are expanded, at most a little over MOST_VALUES."""
    if (size := known.get(id(node))) is not None:
        return size
    known[id(node)] = MOST_VALUES + 1  # found again below itself, the node contains itself
    size = 1
    if isinstance(node, yaml.CollectionNode):
        for each in node.value:
            size += sum(_size(part, known) for part in each) if isinstance(each, tuple) else _size(each, known)
            if size > MOST_VALUES:
                break
    known[id(node)] = size
    return size
