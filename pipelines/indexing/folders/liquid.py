"""Renders the Liquid of a page with the known values of its site; the rest stays as it is written.

Values that only the build of the site has, and tags and filters of plugins, are not known. An output of such a value
stays as it is written, and so does a whole block or assignment that depends on one. This module reads no files.
"""

import re
import time
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TextIO

from liquid import Environment, RenderContext, Undefined
from liquid.ast import Node
from liquid.builtin.expressions import FilteredExpression, tokenize
from liquid.builtin.output import Output, OutputNode
from liquid.builtin.tags.for_tag import ForNode, ForTag
from liquid.builtin.tags.tablerow_tag import TablerowNode, TablerowTag
from liquid.exceptions import LiquidError, LiquidInterrupt, LiquidSyntaxError, ResourceLimitError
from liquid.output import LimitedStringIO
from liquid.stream import TokenStream
from liquid.tag import Tag
from liquid.token import TOKEN_EXPRESSION, TOKEN_TAG, Token

from pipelines.indexing.folders.liquid_filters import FILTERS, UnknownValue, cost_of, text_of

# Limits of a page: characters of its source and of each include, bytes of its output and of its variables. A step
# is a tag in a loop or an include, or 100 characters in a filter: 500,000 take about 3 s. Only comparisons of much data
# can take longer; they end after some seconds of CPU.
MOST_SOURCE, MOST_OUTPUT, MOST_LOCALS, MOST_STEPS, MOST_CPU_S = 500_000, 2_000_000, 500_000, 500_000, 10
_LONGEST_TAG, _GAP = 4_000, re.compile(r"\s{100}")  # a longer one, or one with a wider gap, would be slow to parse
_OPENED = re.compile(r"\{\{|\{%")
_RAW = re.compile(r"\{%-?[ \t\n]{0,9}raw[ \t\n]{0,9}-?%\}")
_ENDRAW = re.compile(r"\{%-?[ \t\n]{0,9}endraw[ \t\n]{0,9}-?%\}")
_KEPT = re.compile(r"\{% kept_source (\d{1,9}) %\}")
_SETS = re.compile(r"\{%-?\s*(?:assign|capture)\s+([\w-]+)")
_PARAMETER = re.compile(r"(?<![\w-])([\w-]+)\s*=\s*(\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|[^\s\"']+)")
_NAMED = re.compile(r"\s*([^\s{}]*\{\{[^{}]*\}\}[^\s{}]*|\S+)(.*)", re.DOTALL)
_VALUE = re.compile(r"\{\{-?((?>(?:(?!\}\}|\{\{)[^\n])*))\}\}")
_WRONG = (ValueError, TypeError, ArithmeticError, LookupError, AttributeError)  # what odd values raise in filters
_ADDRESS = " object at 0x"  # how Python writes a value without text, such as a missing one in a list; it always differs
_OF_LAYOUTS = frozenset({"content", "layout", "paginator", "theme"})
# Tags of newer versions of Liquid than Jekyll's.
_NEWER = ("render", "liquid", "doc", "echo", "#")


class TooMuch(ResourceLimitError):
    """A page takes more than its limits."""

    def __init__(self) -> None:
        super().__init__("the page takes too much", token=None)


class Known(dict[str, Any]):
    """A namespace in which the names in `unknown` have values that only the build knows."""

    def __init__(self, values: Mapping[str, Any], unknown: frozenset[str]) -> None:
        super().__init__(values)
        self._unknown = unknown

    def __missing__(self, name: str) -> Any:
        if name in self._unknown:
            raise UnknownValue(name)
        raise KeyError(name)


def render(text: str, values: Mapping[str, Any], include: Callable[[str], str]) -> str | None:
    """Return a page's text as it is published, None if it can't be parsed or exceeds its limits.

    `include` returns the text of an included file by its name, "" if there is none.
    """
    try:
        return _Rendering(Known(values, _OF_LAYOUTS), include).render(text)
    except (LiquidError, LiquidInterrupt, RecursionError, MemoryError, *_WRONG):
        return None


class _Rendering(RenderContext):
    """The rendering of one page: its variables, and the rest of its limits."""

    def __init__(self, values: Mapping[str, Any], include: Callable[[str], str]) -> None:
        super().__init__(_environment().from_string(""), globals=values)
        self._include, self._kept, self._included = include, list[str](), dict[str, list[Node]]()
        self.unknown = set[str]()
        self.steps, self.weight = MOST_STEPS, 1
        self._end = time.thread_time() + MOST_CPU_S

    def render(self, text: str) -> str:
        """Return the rendered text; a part that depends on unknown values is unchanged."""
        source = self._without_raw(text)
        nodes = self._parsed(source)
        places = [*(_start_of(node.token) for node in nodes), len(source)]
        done, left = list[str](), MOST_OUTPUT
        for number, node in enumerate(nodes):
            part = LimitedStringIO(left)
            try:
                node.render(self, part)
                done.append(part.getvalue())
            except LiquidError as error:
                _check_limits(error)
                said = source[places[number] : places[number + 1]]
                self.unknown.update(_SETS.findall(said))
                done.append(self.restored(said))
            left -= part.size
        return "".join(done)

    def included(self, file: str) -> list[Node]:
        """Return the nodes of an included file, none if there is no such file."""
        if file not in self._included:
            self._included[file] = self._parsed(self._without_raw(self._include(file)))
        return self._included[file]

    def restored(self, source: str) -> str:
        """Return a piece of source with its raw parts."""
        return _KEPT.sub(lambda match: "".join(self._kept[int(match[1]) :][:1]), source)

    def _without_raw(self, text: str) -> str:
        """Return the text with a tag instead of each raw part, which is kept with its own tags."""
        done, at = list[str](), 0
        while (begin := _RAW.search(text, at)) and (end := _ENDRAW.search(text, begin.end())):
            done += text[at : begin.start()], f"{{% kept_source {len(self._kept)} %}}"
            self._kept.append(text[begin.start() : end.end()])
            at = end.end()
        return "".join([*done, text[at:]])

    def _parsed(self, source: str) -> list[Node]:
        _check(source)
        return _environment().from_string(source).nodes

    def get(self, path: list[object], **options: Any) -> object:
        """Return the value at a path. Raises UnknownValue."""
        if path[0] in self.unknown:
            raise UnknownValue(str(path[0]))
        self.spend(0)
        return super().get(path, **options)

    def assign(self, key: str, val: Any) -> None:
        """Set a variable."""
        self.unknown.discard(key)
        super().assign(key, val)

    def filter(self, name: str, token: Token | None) -> Callable[..., object]:
        """Return a filter within the limits."""
        made = super().filter(name, token)

        def limited(*values: Any, **named: Any) -> object:
            self.spend(cost_of(name, [*values, *named.values()]))
            try:
                found = made(*values, **named)
            except _WRONG as error:
                raise UnknownValue(name) from error
            self.spend(cost_of("", [found]))
            if isinstance(found, str) and _ADDRESS in found:
                raise UnknownValue(name)
            return found

        return limited

    def spend(self, steps: int) -> None:
        """Count steps. Raises TooMuch."""
        self.steps -= steps
        if self.steps < 0 or time.thread_time() > self._end:
            raise TooMuch

    def raise_for_loop_limit(self, length: int = 1) -> None:
        """Count the steps of a loop that begins."""
        self.spend(length * self.weight)


# ---------------------------------------------------------------------------------------------- source


def _check(source: str) -> None:
    """Raise TooMuch for a source that is too long, or slow to parse."""
    at = 0
    while opened := _OPENED.search(source, at):
        at = source.find("}}" if opened[0] == "{{" else "%}", opened.end()) + 2
        tag = source[opened.start() : at]
        if at < opened.end() or len(tag) > _LONGEST_TAG or _GAP.search(tag) or re.match(r"\{%-?\s*(?:raw|doc)\b", tag):
            raise TooMuch
    if len(source) > MOST_SOURCE:
        raise TooMuch


def _check_limits(error: LiquidError) -> None:
    """Raise the error if it is one of a limit, which concerns the whole page."""
    if isinstance(error, ResourceLimitError):
        raise error


def _start_of(token: Token) -> int:
    return token.source.rfind("{%", 0, token.start_index) if token.kind == TOKEN_TAG else token.start_index


def _source_of(token: Token) -> str:
    """Return the source of a tag or an output."""
    start = _start_of(token)
    return token.source[start : token.source.find("%}" if token.kind == TOKEN_TAG else "}}", start) + 2]


# ---------------------------------------------------------------------------------------------- nodes


class _SourceNode(Node):
    """A tag that stays as it is written: other code knows it, or extracts its words."""

    def __init__(self, token: Token) -> None:
        super().__init__(token)
        self.blank = False

    def render_to_output(self, context: RenderContext, buffer: TextIO) -> int:
        assert isinstance(context, _Rendering)
        return buffer.write(context.restored(_source_of(self.token)))


class _SourceTag(Tag):
    """Any other tag, and the one that stands for a raw part, whose reader removes the tags around it."""

    block = False

    def parse(self, stream: TokenStream) -> Node:
        return _SourceNode(_whole_tag(stream)[0])


class _OutputNode(OutputNode):
    """An output; without a known value, it stays as it is written, and so does a name that nothing sets."""

    def render_to_output(self, context: RenderContext, buffer: TextIO) -> int:
        try:
            value = self.expression.evaluate(context)
        except LiquidError as error:
            _check_limits(error)
            return buffer.write(_source_of(self.token))
        if isinstance(value, Undefined) and (value.name == "site" or value.name not in context.scope):
            return buffer.write(_source_of(self.token))
        return buffer.write(text_of(value))


class _OutputTag(Output):
    node_class = _OutputNode

    def parse(self, stream: TokenStream) -> Any:
        token, at = stream.current, stream.pos
        try:
            return super().parse(stream)
        except LiquidSyntaxError:
            stream.pos = at + 1  # the output's expression
            return _SourceNode(token)


class _ForNode(ForNode):
    def render_to_output(self, context: RenderContext, buffer: TextIO) -> int:
        _weigh(context, self)
        return super().render_to_output(context, buffer)


class _ForTag(ForTag):
    node_class = _ForNode


class _TablerowNode(TablerowNode):
    def render_to_output(self, context: RenderContext, buffer: TextIO) -> int:
        _weigh(context, self)
        return super().render_to_output(context, buffer)


class _TablerowTag(TablerowTag):
    node_class = _TablerowNode


class _IncludeTag(Tag):
    """Jekyll's include: `{% include note.html content="x" of=page.title %}`, whose template knows `include.content`."""

    name, block = "include", False

    def parse(self, stream: TokenStream) -> Node:
        token, said = _whole_tag(stream)
        named = _NAMED.match(said)
        if named is None:
            return _SourceNode(token)
        values = {name: _expression(self.env, value, token) for name, value in _PARAMETER.findall(named[2])}
        return _IncludeNode(token, named[1], values)


class _IncludeNode(Node):
    def __init__(self, token: Token, file: str, values: Mapping[str, FilteredExpression]) -> None:
        super().__init__(token)
        self.blank, self._file, self._values = False, file, values

    def render_to_output(self, context: RenderContext, buffer: TextIO) -> int:
        assert isinstance(context, _Rendering)
        nodes = context.included(
            _VALUE.sub(lambda found: self._evaluated(found[1].removesuffix("-").strip(), context), self._file)
        )
        if not nodes:
            return buffer.write(_source_of(self.token))
        context.spend(1 + sum(1 + _tags_in(node, context) for node in nodes))
        values = {name: value.evaluate(context) for name, value in self._values.items()}
        with context.extend({"include": values}):
            return sum(node.render(context, buffer) for node in nodes)

    def _evaluated(self, said: str, context: RenderContext) -> str:
        return text_of(_expression(context.env, said, self.token).evaluate(context))


def _weigh(context: RenderContext, loop: ForNode | TablerowNode) -> None:
    assert isinstance(context, _Rendering)
    context.weight = 1 + _tags_in(loop.block, context)


def _tags_in(node: Node, context: RenderContext) -> int:
    """Return the number of nodes below a node."""
    return sum(1 + _tags_in(each, context) for each in node.children(context))


def _whole_tag(stream: TokenStream) -> tuple[Token, str]:
    """Return the token of a tag and the text after its name, and move to the tag's last token."""
    token = stream.current
    if stream.peek.kind != TOKEN_EXPRESSION:
        return token, ""
    next(stream)
    return token, stream.current.value


def _expression(env: Environment, said: str, token: Token) -> FilteredExpression:
    found = FilteredExpression.parse(env, TokenStream(tokenize(said, token)))
    assert isinstance(found, FilteredExpression)
    return found


# ---------------------------------------------------------------------------------------------- environment


class _Environment(Environment):
    output_stream_limit = MOST_OUTPUT
    local_namespace_limit = MOST_LOCALS


class _Tags(dict[str, Tag]):
    """The tags by name; any other name is a tag that stays as it is written."""

    def __init__(self, known: Mapping[str, Tag], other: Tag) -> None:
        super().__init__(known)
        self._other = other

    def get(self, name: str, default: object = None) -> Tag:  # type: ignore[override]
        return super().get(name, self._other)


@cache
def _environment() -> Environment:
    environment = _Environment()
    for tag in (_OutputTag, _ForTag, _TablerowTag, _IncludeTag):
        environment.add_tag(tag)
    environment.tags["include_cached"] = environment.tags["include"]
    known = {name: tag for name, tag in environment.tags.items() if name not in _NEWER}
    environment.tags = _Tags(known, _SourceTag(environment))
    environment.filters |= FILTERS
    return environment
