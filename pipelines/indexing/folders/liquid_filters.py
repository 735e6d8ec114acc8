"""Defines the Liquid filters that Jekyll adds, and the cost of a filter.

An address is written from the site's root, because the folder's own URL completes it. Filters that depend on the time
of the build have no known value.
"""

import re
from collections.abc import Callable, Mapping, Sequence, Sized
from functools import cache
from html import escape
from json import dumps
from typing import Any
from urllib.parse import quote

from liquid import RenderContext, is_undefined
from liquid.builtin.expressions import BooleanExpression, tokenize
from liquid.builtin.filters.misc import date as formatted_date
from liquid.exceptions import LiquidError
from liquid.filter import with_context, with_environment
from liquid.stream import TokenStream
from liquid.stringify import to_liquid_string
from liquid.token import TOKEN_EXPRESSION, Token
from markdown_it import MarkdownIt

from pipelines.indexing.reading.formats.slugs import slug

_NOW = ("now", "today")
_LONGEST_DATE, _LONGEST_CONDITION = 100, 1_000  # characters


class UnknownValue(LiquidError):
    """A value that only the build of the site knows."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} is not known", token=None)


def cost_of(name: str, values: Sequence[Any]) -> int:
    """Return the steps that a filter takes for its value and arguments (see MOST_STEPS)."""
    sizes = [_size(value) for value in values]
    if name == "uniq":
        return 1 + sizes[0] ** 2 // 100
    if name == "replace" and len(values) > 2:
        return 1 + (sizes[0] + str(values[0]).count(str(values[1])) * sizes[2]) // 100
    if name == "join" and len(values) > 1:
        return 1 + sizes[0] * (1 + sizes[1]) // 100
    return 1 + sum(sizes) // 100


def _size(value: object) -> int:
    """Return the characters of a text, ten for each item of another value, and more for a number of many digits."""
    if isinstance(value, int):
        return value.bit_length() ** 2 // 100
    return len(value) if isinstance(value, str) else 10 * len(value) if isinstance(value, Sized) else 1


def text_of(value: object) -> str:
    """Return a value as Liquid writes it."""
    return str(to_liquid_string(value, autoescape=False))


def _address(value: object) -> str:
    said = text_of(value)
    return said if re.match(r"[a-z]+:|//|/|#|\Z", said) else f"/{said}"


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark").enable("table")


def _markdownify(value: object) -> str:
    return _parser().render(text_of(value))


def _jsonify(value: object) -> str:
    return dumps(None if is_undefined(value) else value, default=str, ensure_ascii=False)


@with_environment
def _date(value: Any, form: Any = "%Y-%m-%d", *, environment: Any) -> str:
    """Return a date in the given form. The present time is not known."""
    if value in _NOW or _size(value) > _LONGEST_DATE:
        raise UnknownValue(str(value))
    return str(formatted_date(value, form, environment=environment))


def _dated(form: str) -> Callable[..., str]:
    @with_environment
    def in_form(value: Any, *_: Any, environment: Any) -> str:
        return _date(value, form, environment=environment)

    return in_form


def _sentence(value: Any, connector: str = "and") -> str:
    *first, last = map(text_of, value) if value else [""]
    comma = "," if len(first) > 1 else ""
    return f"{', '.join(first)}{comma} {connector} {last}" if first else last


def _group_by(value: Any, key: str) -> list[dict[str, Any]]:
    groups: dict[str, list[Any]] = {}
    for item in value:
        groups.setdefault(text_of(item.get(key) if isinstance(item, Mapping) else None), []).append(item)
    return [{"name": name, "items": items, "size": len(items)} for name, items in groups.items()]


@with_context
def _where_exp(value: Any, name: str, said: str, *, context: RenderContext) -> list[Any]:
    """Return the items for which a condition with the variable `name` is true."""
    if len(said) > _LONGEST_CONDITION:
        raise UnknownValue("condition")
    token = Token(TOKEN_EXPRESSION, said, 0, said)
    condition = BooleanExpression.parse(context.env, TokenStream(tokenize(said, token)))
    found = []
    for item in value:
        with context.extend({name: item}):
            if condition.evaluate(context):
                found.append(item)
    return found


FILTERS: Mapping[str, Callable[..., Any]] = {
    "absolute_url": _address,
    "array_to_sentence_string": _sentence,
    "cgi_escape": lambda value: quote(text_of(value), safe="").replace("%20", "+"),
    "date": _date,
    "date_to_long_string": _dated("%d %B %Y"),
    "date_to_string": _dated("%d %b %Y"),
    "date_to_xmlschema": _dated("%Y-%m-%dT%H:%M:%S+00:00"),
    "group_by": _group_by,
    "jsonify": _jsonify,
    "markdownify": _markdownify,
    "normalize_whitespace": lambda value: " ".join(text_of(value).split()),
    "number_of_words": lambda value, *_: len(text_of(value).split()),
    "pop": lambda value, count=1: list(value)[: -int(count) or None],
    "push": lambda value, item: [*value, item],
    "relative_url": _address,
    "shift": lambda value, count=1: list(value)[int(count) :],
    "slugify": lambda value, *_: slug(text_of(value)),
    "smartify": lambda value: value,
    "strip_index": lambda value: re.sub(r"/index\.html?\Z", "/", text_of(value)),
    "to_integer": int,
    "unshift": lambda value, item: [item, *value],
    "uri_escape": lambda value: quote(text_of(value), safe="/:?=&#~!$'()*+,;@[]%-._"),
    "where_exp": _where_exp,
    "xml_escape": lambda value: escape(text_of(value), quote=True),
}
