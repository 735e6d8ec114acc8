"""Shortens blocks to a length that a reader can scan, without splitting a sentence, item or row.

This module works only on texts.
"""

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pipelines.answering.synthesis.passages import Passage, numbers, split_sentences
from pipelines.lexical import terms
from pipelines.page.blocks import LINE_BREAK, BlockKind, MarkdownBlock
from pipelines.page.stored import plain_text

OMITTED = "…"
MOST_CODE_LINES = 60  # longer code is cut; the source page has all of it
# Of a longer table or list, only rows relevant to the question are quoted: a reader looks for one, not for all.
MOST_ROWS = 8
MOST_ROW_WORDS = 100  # a table or list with at most this many words is quoted whole, with any number of rows
MEANT = 0.2  # least share of the question's words in the best row if the question refers to a row; by hand
CONCERNS = 0.5  # least score of a relevant row, as a share of the best row's
MOST_PROSE_WORDS = 150  # per block; a longer one ends after a complete sentence
MOST_STEP_WORDS = 250  # of an ordered list, which is quoted from its first item


def bound(passage: Passage, asked: Mapping[str, float]) -> Passage:
    """Return `passage` shortened to a readable length; `asked` maps the question's terms to their weights.

    Tables keep their head, and lists their order. Long code is cut at the end.
    """
    return replace(passage, blocks=tuple(_bound_block(block, asked) for block in passage.blocks))


def _bound_block(block: MarkdownBlock, asked: Mapping[str, float]) -> MarkdownBlock:
    if block.kind is BlockKind.TABLE:
        head, rule, *rows = block.rows
        return _with_rows(block, [head, rule, *_choose_rows(rows, f"| {OMITTED} |", asked)])
    if numbers(block):  # steps: none is omitted between others
        return cut_block(block, MOST_STEP_WORDS, least=1) or block
    if block.kind is BlockKind.LIST:
        return _with_items(block, _choose_rows(block.items, f"\n{OMITTED}\n", asked))
    if block.kind is BlockKind.CODE:
        first, *lines, last = block.text.split("\n")
        kept = lines[:MOST_CODE_LINES] + ([OMITTED] if len(lines) > MOST_CODE_LINES else [])
        return replace(block, text="\n".join([first, *kept, last]))
    if block.kind is BlockKind.PROSE:
        return cut_block(block, MOST_PROSE_WORDS, least=1) or block
    return block


def _choose_rows(rows: Sequence[str], gap: str, asked: Mapping[str, float]) -> list[str]:
    """Return up to MOST_ROWS rows in order, with `gap` for omitted ones; all rows if they have few words.

    A term counts more if few rows have it; otherwise long rows would win with common terms.
    """
    plain = [plain_text(row) for row in rows]
    if len(rows) <= MOST_ROWS or sum(len(row.split()) for row in plain) <= MOST_ROW_WORDS:
        return list(rows)
    found = [asked.keys() & frozenset(terms(row)) for row in plain]
    share = max(sum(asked[term] for term in own) for own in found) / (sum(asked.values()) or 1.0)
    number = Counter(itertools.chain.from_iterable(found))
    scores = [sum(asked[term] * math.log(len(rows) / number[term]) for term in own) for own in found]
    least = CONCERNS * max(scores) if share >= MEANT else 0.0  # the question refers to no row: take the first ones
    near = [n for n, score in enumerate(scores) if score >= least]
    kept = sorted(sorted(near, key=lambda n: -scores[n] if least else n)[:MOST_ROWS])
    chosen: list[str] = []
    for before, n in itertools.pairwise([-1, *kept]):
        chosen += [gap, rows[n]] if n > before + 1 else [rows[n]]
    return chosen + ([gap] if kept[-1] + 1 < len(rows) else [])


def cut_block(block: MarkdownBlock, most: int, *, least: int = 0) -> MarkdownBlock | None:
    """Return the first `most` words of a block, with a mark for the rest; None if nothing fits.

    It ends after a complete sentence, item, row or line, and has at least `least` of them. A note is never cut.
    """
    if len(block.plain.split()) <= most or (least and block.kind is BlockKind.NOTE):
        return block
    match block.kind:
        case BlockKind.NOTE:
            return None
        case BlockKind.LIST:
            items = _first(block.items, most, least)
            return _with_items(block, [*items, f"\n{OMITTED}"]) if items else None
        case BlockKind.TABLE:
            head, rule, *rows = block.rows
            shown = _first(rows, most - len(plain_text(head).split()), least)
            return _with_rows(block, [head, rule, *shown, f"| {OMITTED} |"]) if shown else None
        case BlockKind.CODE:
            first, *lines, last = block.text.split("\n")
            shown = _first(lines, most, least)
            return replace(block, text="\n".join([first, *shown, OMITTED, last])) if shown else None
        case BlockKind.PROSE:
            sentences = _first(list(split_sentences(block.text.replace(LINE_BREAK, "\n"))), most, least)
            return replace(block, text=" ".join([*sentences, OMITTED])) if sentences else None


def is_cut(block: MarkdownBlock) -> bool:
    """Return whether the end of a block was omitted."""
    return block.text.rstrip("`~| \n").endswith(OMITTED)


def _with_rows(block: MarkdownBlock, rows: Sequence[str]) -> MarkdownBlock:
    return replace(block, text="\n".join(rows), rows=tuple(rows))


def _with_items(block: MarkdownBlock, items: Sequence[str]) -> MarkdownBlock:
    return replace(block, text="\n".join(items), items=tuple(items))


def _first(parts: Sequence[str], most: int, least: int) -> list[str]:
    """Return the first parts with up to `most` words together, but at least `least` parts."""
    kept: list[str] = []
    for part in parts:
        most -= len(plain_text(part).split())
        if most < 0 and len(kept) >= least:
            break
        kept.append(part)
    return kept
