"""Provides helpers for the rules of Markdown dialects: add words and paragraphs, continue after a tag.

markdown-it calls a rule only where a block or an inline element may begin, so rules never see code.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator

from markdown_it import MarkdownIt, helpers
from markdown_it.ruler import RuleOptionsType
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

# Blocks that a dialect's block can interrupt without an empty line before it.
ENDS: RuleOptionsType = {"alt": ["paragraph", "reference", "blockquote", "list", "footnote_def"]}


def place_of(state: StateBlock, line: int) -> int:
    """Return the position of the first character of a line after its indentation."""
    return state.bMarks[line] + state.tShift[line]


def line_at(state: StateBlock, place: int, start: int) -> int:
    """Return the line of a position, searching from the line `start`. A line break belongs to the line that it ends."""
    return bisect_left(state.eMarks, place, start)


def last_place(state: StateBlock, start: int, end: int) -> int:
    """Return the last position that a tag beginning in line `start` may reach: the last line before `end`.

    In a quotation, whose lines have prefixes, it is the end of the line. A longer tag there is inline content.
    """
    quoted = state.bMarks[start + 1] > state.eMarks[start] + 1
    return state.eMarks[start if quoted else min(end, state.lineMax) - 1]


def read_rest(state: StateBlock, place: int, line: int, end: int) -> None:
    """Parse the rest of a line after `place` as a new block, and continue after it."""
    place = state.skipSpaces(place)
    if place >= state.eMarks[line]:
        state.line = line + 1
        return
    state.bMarks[line], state.tShift[line], state.sCount[line] = place, 0, state.blkIndent
    any(rule(state, line, end, False) for rule in state.md.block.ruler.getRules(""))


def push_paragraph(state: StateBlock, text: str, line: int) -> None:
    """Add a paragraph, if it has text."""
    if text:
        opening = state.push("paragraph_open", "p", 1)
        inline = state.push("inline", "", 0)
        inline.content, inline.children = text, []
        inline.map = opening.map = [line, line + 1]
        state.push("paragraph_close", "p", -1)


def push_words(state: StateInline, text: str) -> None:
    """Add words, which may contain Markdown markup."""
    if not text or "{" in text:
        state.append_pending(text)
        return
    if state.pending:
        state.pushPending()
    words = list[Token]()
    state.md.inline.parse(text, state.md, state.env, words)
    state.tokens += words
    state.tokens_meta += [None] * len(words)


def inline_tokens(tokens: list[Token]) -> Iterator[Token]:
    """Yield tokens, each followed by its inline children."""
    for token in tokens:
        yield token
        yield from inline_tokens(token.children or [])


class _Helpers:
    """The helpers of markdown-it, extended by link targets that contain unfilled template expressions."""

    parseLinkLabel = staticmethod(helpers.parseLinkLabel)
    parseLinkTitle = staticmethod(helpers.parseLinkTitle)

    def __init__(self, target: Callable[[str, int, int], tuple[str, int] | None]) -> None:
        self._target = target

    def parseLinkDestination(self, text: str, start: int, end: int) -> object:
        found = self._target(text, start, end)
        if found is None:
            return helpers.parseLinkDestination(text, start, end)
        result = helpers.parseLinkDestination(f"<{found[0]}>", 0, len(found[0]) + 2)
        result.pos = found[1]
        return result


def with_targets(parser: MarkdownIt, target: Callable[[str, int, int], tuple[str, int] | None]) -> None:
    """Let `target(text, start, end)` recognize a link target at `start` and return it with its end, or None."""
    parser.helpers = _Helpers(target)  # pyrefly: ignore[bad-assignment]
