"""A parser that finds the blocks of Markdown: where each begins and ends, not what is within lines or cells."""

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock, table


def block_parser() -> MarkdownIt:
    """Return a parser of CommonMark's blocks and of tables, whose cells are no tokens.

    markdown-it fills each row up to the columns of the head, so that 1,200 characters may have 30,000 cells.
    """
    parser = MarkdownIt("commonmark").enable("table").disable("inline")
    parser.block.ruler.at("table", _table, {"alt": ["paragraph", "reference"]})
    return parser


def _table(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Push the block of a table; the library's rule tells whether one begins."""
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
    state.push("table_close", "table", -1)
    state.parentType, state.line = parent, after
    return True


def _is_row(state: StateBlock, line: int) -> bool:
    is_within = state.sCount[line] >= state.blkIndent and not state.is_code_block(line)
    return is_within and not state.isEmpty(line)
