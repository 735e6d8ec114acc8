"""Parses the block structure of Markdown: where each block begins and ends, without inline content.

markdown-it pads each table row to the number of header columns, so 1,200 characters can expand to 30,000 cells. The
rules here limit that.
"""

from types import SimpleNamespace

from markdown_it import MarkdownIt, helpers
from markdown_it.common.utils import mdTrim
from markdown_it.rules_block import StateBlock, table
from markdown_it.rules_block.table import escapedSplit
from markdown_it.rules_inline import StateInline

MOST_FILLED = 10_000  # padding cells allowed for all tables of a document: more than pages of real sites need
_FILLED = "filled cells"  # key in `env`: the number of padding cells so far
_LAST_TARGET = "last target"  # key in `env`: the last parsed text, and the position of its last link target


def block_parser() -> MarkdownIt:
    """Return a parser that finds the start and end of blocks, without parsing inline content or table cells."""
    parser = MarkdownIt("commonmark").enable("table").disable("inline")
    parser.block.ruler.at("table", _whole_table, {"alt": ["paragraph", "reference"]})
    return parser


def keep_short_rows(parser: MarkdownIt) -> MarkdownIt:
    """Make the parser keep only the cells that each row has, with `td` in the header too, and return the parser."""
    parser.block.ruler.at("table", _table_of_rows, {"alt": ["paragraph", "reference"]})
    return parser


def fill_few_cells(parser: MarkdownIt) -> MarkdownIt:
    """Make the parser pad rows to the header's length as the library does, up to MOST_FILLED cells, and return it.

    Beyond that limit, tables keep only the cells that they have.
    """
    parser.block.ruler.at("table", table_filled, {"alt": ["paragraph", "reference"]})
    return parser


def skip_labels_without_target(parser: MarkdownIt) -> MarkdownIt:
    """Make the parser search for the end of a link label only if a target can follow, and return the parser.

    The library tries every open bracket, and scans about forty characters after each, without finding a link.
    """
    known = {**vars(helpers), "parseLinkLabel": _label_end}
    parser.helpers = SimpleNamespace(**known)  # pyrefly: ignore[bad-assignment]
    return parser


def _label_end(state: StateInline, start: int, disableNested: bool = False) -> int:
    """Return the position where a link label ends, or -1 if no link can end after `start`."""
    if not state.env.get("references"):
        text, last = state.env.get(_LAST_TARGET, ("", -1))
        if text is not state.src:
            text, last = state.env[_LAST_TARGET] = state.src, state.src.rfind("](")
        if last < start:
            return -1
    return helpers.parseLinkLabel(state, start, disableNested)


def _whole_table(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Push the block of a table, without its cells."""
    return _table(state, start, end, silent, cells=False)


def _table_of_rows(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Push a table with rows and cells."""
    return _table(state, start, end, silent, cells=True)


def table_filled(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Push a table as the library does, but stop padding rows once that would take too many cells."""
    if not table(state, start, end, silent=True):
        return False
    if silent:
        return True
    rows = range(start + 2, _end_of_table(state, start, end))
    columns = len(_cells(state, start))
    filled = state.env.get(_FILLED, 0) + sum(max(columns - len(_cells(state, row)), 0) for row in rows)
    if filled > MOST_FILLED:
        return _table(state, start, end, silent, cells=True, head="th")
    state.env[_FILLED] = filled
    return table(state, start, end, silent)


def _table(state: StateBlock, start: int, end: int, silent: bool, *, cells: bool, head: str = "td") -> bool:
    """Push a table. The library's own rule decides whether one begins here."""
    if not table(state, start, end, silent=True):
        return False
    if silent:
        return True
    after = _end_of_table(state, start, end)
    state.push("table_open", "table", 1).map = [start, after]
    if cells:
        styles = [_style(rule) for rule in _cells(state, start + 1)]
        _push_row(state, _cells(state, start), styles, head)
        for line in range(start + 2, after):
            _push_row(state, _cells(state, line), styles)
    state.push("table_close", "table", -1)
    state.line = after
    return True


def _end_of_table(state: StateBlock, start: int, end: int) -> int:
    """Return the line after the table that begins at `start`, by the same conditions as the library's rule."""
    parent, state.parentType = state.parentType, "table"
    ends = state.md.block.ruler.getRules("blockquote")
    after = start + 2
    while after < end and _is_row(state, after) and not any(rule(state, after, end, True) for rule in ends):
        after += 1
    state.parentType = parent
    return after


def _is_row(state: StateBlock, line: int) -> bool:
    is_within = state.sCount[line] >= state.blkIndent and not state.is_code_block(line)
    return is_within and not state.isEmpty(line)


def _cells(state: StateBlock, line: int) -> list[str]:
    """Return the cells of a row, split as the library's rule does."""
    cells = escapedSplit(mdTrim(state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]]))
    cells = cells[1:] if cells[:1] == [""] else cells
    return cells[:-1] if cells[-1:] == [""] else cells


def _style(rule: str) -> dict[str, str | int | float]:
    """Return the attributes of the cells in a column, given its cell in the delimiter row, such as `:-:`."""
    begins, ends = rule.strip().startswith(":"), rule.strip().endswith(":")
    side = "center" if begins and ends else "right" if ends else "left"
    return {"style": f"text-align:{side}"} if begins or ends else {}


def _push_row(state: StateBlock, cells: list[str], styles: list[dict[str, str | int | float]], tag: str = "td") -> None:
    """Push a row with at most as many cells as the delimiter row, each with its column's style."""
    state.push("tr_open", "tr", 1)
    for cell, style in zip(cells, styles, strict=False):
        state.push(f"{tag}_open", tag, 1).attrs = dict(style)
        inline = state.push("inline", "", 0)
        inline.content, inline.children = mdTrim(cell), []
        state.push(f"{tag}_close", tag, -1)
    state.push("tr_close", "tr", -1)
