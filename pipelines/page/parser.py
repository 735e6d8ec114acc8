"""Finds the blocks of Markdown: where each begins and ends, not what is within lines or cells.

markdown-it fills each row up to the columns of the head, so that 1,200 characters may have 30,000 cells.
"""

from markdown_it import MarkdownIt
from markdown_it.common.utils import mdTrim
from markdown_it.rules_block import StateBlock, table
from markdown_it.rules_block.table import escapedSplit


def block_parser() -> MarkdownIt:
    """Return a parser that tells where blocks begin and end, not what is within lines or the cells of tables."""
    parser = MarkdownIt("commonmark").enable("table").disable("inline")
    parser.block.ruler.at("table", _whole_table, {"alt": ["paragraph", "reference"]})
    return parser


def keep_short_rows(parser: MarkdownIt) -> MarkdownIt:
    """Let each row of a table have the cells that are written, as `td` in the head too, and return the parser."""
    parser.block.ruler.at("table", _table_of_rows, {"alt": ["paragraph", "reference"]})
    return parser


def _whole_table(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Push the block of a table without its cells."""
    return _table(state, start, end, silent, cells=False)


def _table_of_rows(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Push a table with rows and cells."""
    return _table(state, start, end, silent, cells=True)


def _table(state: StateBlock, start: int, end: int, silent: bool, *, cells: bool) -> bool:
    """Push a table; the library's rule tells whether one begins."""
    if not table(state, start, end, silent=True):
        return False
    if silent:
        return True
    parent, state.parentType = state.parentType, "table"
    ends = state.md.block.ruler.getRules("blockquote")  # what ends a table, as in the library's rule
    after = start + 2
    while after < end and _is_row(state, after) and not any(rule(state, after, end, True) for rule in ends):
        after += 1
    state.push("table_open", "table", 1).map = [start, after]
    if cells:
        columns = len(_cells(state, start))
        for line in (start, *range(start + 2, after)):
            _push_row(state, _cells(state, line)[:columns])
    state.push("table_close", "table", -1)
    state.parentType, state.line = parent, after
    return True


def _is_row(state: StateBlock, line: int) -> bool:
    is_within = state.sCount[line] >= state.blkIndent and not state.is_code_block(line)
    return is_within and not state.isEmpty(line)


def _cells(state: StateBlock, line: int) -> list[str]:
    """Return the cells of a row, as the library's rule splits it."""
    cells = escapedSplit(mdTrim(state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]]))
    cells = cells[1:] if cells[:1] == [""] else cells
    return cells[:-1] if cells[-1:] == [""] else cells


def _push_row(state: StateBlock, cells: list[str]) -> None:
    state.push("tr_open", "tr", 1)
    for cell in cells:
        state.push("td_open", "td", 1)
        inline = state.push("inline", "", 0)
        inline.content, inline.children = mdTrim(cell), []
        state.push("td_close", "td", -1)
    state.push("tr_close", "tr", -1)
