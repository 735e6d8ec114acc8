"""Parses JSON, YAML and TOML that others wrote, with one error for anything that goes wrong.

The libraries raise many types for bad input: deeply nested text raises RecursionError, and a wrong tag in YAML raises
KeyError, IndexError or AttributeError. Aliases in YAML that expand to a huge value are refused.
"""

import json
import tomllib
from typing import Any

import yaml

from pipelines.text.counts import counted

# Values of a YAML document with its aliases expanded; no configuration or front matter comes near that.
MOST_VALUES = 100_000


class NotParsed(ValueError):
    """The text is not valid JSON, YAML or TOML; the message says where in one line."""


class UniqueKeys:
    """A part of YAML loaders that rejects a repeated key; by default, the last of equal keys silently wins."""

    def get_single_node(self) -> yaml.Node | None:
        node: yaml.Node | None = super().get_single_node()  # type: ignore[misc]
        unseen, seen = [node] if node else [], set()
        while unseen:
            each = unseen.pop()
            if id(each) in seen or not isinstance(each, yaml.CollectionNode):
                continue
            seen.add(id(each))
            if isinstance(each, yaml.MappingNode):
                _check_keys([key for key, _ in each.value])
                unseen += [value for _, value in each.value]
            else:
                unseen += each.value
        return node


class UniqueKeyLoader(UniqueKeys, yaml.SafeLoader):
    """YAML's safe loader, which rejects a repeated key."""


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
                raise NotParsed(f"its aliases expand to more than {counted(MOST_VALUES, 'value')}")
            return None if node is None else reader.construct_document(node)
        finally:
            reader.dispose()
    except NotParsed:
        raise
    except RecursionError as error:
        raise NotParsed("it is nested too deeply") from error
    except Exception as error:  # constructors of values raise KeyError, IndexError, AttributeError and others
        raise NotParsed(_describe(error)) from error


def _check_keys(keys: list[yaml.Node]) -> None:
    """Raise ConstructorError for a repeated key of a mapping, with its position. `<<` may be repeated."""
    seen = set()
    for key in keys:
        if not isinstance(key, yaml.ScalarNode) or key.tag == "tag:yaml.org,2002:merge":
            continue
        if key.value in seen:
            problem = f"the key {key.value} is repeated"
            raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
        seen.add(key.value)


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
