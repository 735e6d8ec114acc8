"""Finds the blocks of Markdown: where each begins and ends, not what is within lines or cells.

markdown-it fills each row up to the columns of the head, so that 1,200 characters may have 30,000 cells.
"""

from types import SimpleNamespace

from markdown_it import MarkdownIt, helpers
from markdown_it.common.utils import mdTrim
from markdown_it.rules_block import StateBlock, table
from markdown_it.rules_block.table import escapedSplit
from markdown_it.rules_inline import StateInline

MOST_FILLED = 10_000  # cells that the short rows of a text's tables are filled with: more than pages of real sites have
_FILLED = "filled cells"  # how many were
_LAST_TARGET = "last target"  # the text that was read last, and where the last target of a link begins in it


def block_parser() -> MarkdownIt:
    """Return a parser that tells where blocks begin and end, not what is within lines or the cells of tables."""
    parser = MarkdownIt("commonmark").enable("table").disable("inline")
    parser.block.ruler.at("table", _whole_table, {"alt": ["paragraph", "reference"]})
    return parser


def keep_short_rows(parser: MarkdownIt) -> MarkdownIt:
    """Let each row of a table have the cells that are written, as `td` in the head too, and return the parser."""
    parser.block.ruler.at("table", _table_of_rows, {"alt": ["paragraph", "reference"]})
    return parser


def fill_few_cells(parser: MarkdownIt) -> MarkdownIt:
    """Let rows be as long as the head, as the library fills them, up to MOST_FILLED cells; return the parser.

    Longer tables with wide heads keep the cells that are written.
    """
    parser.block.ruler.at("table", table_filled, {"alt": ["paragraph", "reference"]})
    return parser


def skip_labels_without_target(parser: MarkdownIt) -> MarkdownIt:
    """Look for the end of a label only where a target can follow, and return the parser.

    The library tries each of many open brackets, and looks at some forty signs behind it, to find no link.
    """
    known = {**vars(helpers), "parseLinkLabel": _label_end}
    parser.helpers = SimpleNamespace(**known)  # pyrefly: ignore[bad-assignment]
    return parser


def _label_end(state: StateInline, start: int, disableNested: bool = False) -> int:
    """Return where the label of a link ends, -1 if no link can end behind its beginning."""
    if not state.env.get("references"):
        text, last = state.env.get(_LAST_TARGET, ("", -1))
        if text is not state.src:
            text, last = state.env[_LAST_TARGET] = state.src, state.src.rfind("](")
        if last < start:
            return -1
    return helpers.parseLinkLabel(state, start, disableNested)


def _whole_table(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Push the block of a table without its cells."""
    return _table(state, start, end, silent, cells=False)


def _table_of_rows(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Push a table with rows and cells."""
    return _table(state, start, end, silent, cells=True)


def table_filled(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Push a table as the library does, without filling its rows once that takes too many cells."""
    if silent or not table(state, start, end, silent=True):
        return table(state, start, end, silent)
    rows = range(start + 2, _end_of_table(state, start, end))
    columns = len(_cells(state, start))
    filled = state.env.get(_FILLED, 0) + sum(max(columns - len(_cells(state, row)), 0) for row in rows)
    if filled > MOST_FILLED:
        return _table(state, start, end, silent, cells=True, head="th")
    state.env[_FILLED] = filled
    return table(state, start, end, silent)


def _table(state: StateBlock, start: int, end: int, silent: bool, *, cells: bool, head: str = "td") -> bool:
    """Push a table; the library's rule tells whether one begins."""
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
    """Return the line after the table that begins at `start`, as the library's rule ends it."""
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
    """Return the cells of a row, as the library's rule splits it."""
    cells = escapedSplit(mdTrim(state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]]))
    cells = cells[1:] if cells[:1] == [""] else cells
    return cells[:-1] if cells[-1:] == [""] else cells


def _style(rule: str) -> dict[str, str | int | float]:
    """Return the attributes of the cells below a cell of the rule, such as `:-:`."""
    begins, ends = rule.strip().startswith(":"), rule.strip().endswith(":")
    side = "center" if begins and ends else "right" if ends else "left"
    return {"style": f"text-align:{side}"} if begins or ends else {}


def _push_row(state: StateBlock, cells: list[str], styles: list[dict[str, str | int | float]], tag: str = "td") -> None:
    """Push a row with as many cells as the rule has at most; each has its style from there."""
    state.push("tr_open", "tr", 1)
    for cell, style in zip(cells, styles, strict=False):
        state.push(f"{tag}_open", tag, 1).attrs = dict(style)
        inline = state.push("inline", "", 0)
        inline.content, inline.children = mdTrim(cell), []
        state.push(f"{tag}_close", tag, -1)
    state.push("tr_close", "tr", -1)
