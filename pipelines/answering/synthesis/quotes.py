"""Quotes: which passages of which hit an answer quotes, and how they are written.

Knows texts only: no question and no score but the one it is given.
"""

import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pipelines.answering.grounding.answerable import UNKNOWN
from pipelines.answering.grounding.support import SUPPORTED, Support
from pipelines.answering.hits import own_heading, snippet
from pipelines.answering.synthesis.passages import Kind, Passage, TextBlock, is_code, split_items, split_sentences
from pipelines.records import Hit

OMITTED = "…"
LONGEST_SIGNATURE = 200  # characters: the types of every parameter answer nothing
MOST_CODE_LINES = 40  # longer code is cut: the source's own page has all of it
# Of a longer table or list those rows are quoted that concern the question: a reader looks for one, not for all.
MOST_ROWS = 8
CONCERNS = 0.5  # share of the question's words that such a row has, and of the best row's that another one has
MOST_PROSE_WORDS = 150  # of a block; a longer one ends after a whole sentence

# Said before quotes whose best support is below UNSURE: of 199 graded answers 34, none of which is right.
CLOSEST = "Nothing here answers that for certain. This comes closest:"
UNSURE = 0.1

_NUMBERS = re.compile(r"(?<![\w`\])])\[\d[\d,; -]*\]")
_WORDS = re.compile(r"`+[^`]*`+|[^\s`]+")  # code in backticks is one
_CORE = re.compile(r"""([(\[{"'“‘]*)((?:\\.|.)+?(?:\(\))?)([)\]}"'”’.,;:!?]*)""")
# What Markdown takes for its own: the backslash of `\.`, the underscores of `__init__`, the stars of `*args`.
_TAKEN = re.compile(r"\\[!-/:-@\[-_{-~]|__|(?<!\w)_\w|\w_(?!\w)|\*\w|\w\*|~~")


@dataclass(frozen=True, slots=True)
class Quote:
    """Passages of hit n (from 0) that follow each other in its section.

    `score` ranks them, `support` is how well they answer the question (0 to 1), `words` are theirs and their headings'.
    """

    hit: int
    passages: tuple[Passage, ...]
    score: float
    support: float
    words: frozenset[str]


def in_order(quotes: Sequence[Quote], hits: Sequence[Hit]) -> tuple[tuple[Quote, ...], tuple[Hit, ...]]:
    """Return the quotes and the hits with those first that are quoted, so that numbers appear in order."""
    order = list(dict.fromkeys([*(quote.hit for quote in quotes), *range(len(hits))]))
    places = {hit: place for place, hit in enumerate(order)}
    return tuple(replace(quote, hit=places[quote.hit]) for quote in quotes), tuple(hits[n] for n in order)


def supports(quotes: Sequence[Quote]) -> dict[int, Support]:
    """Return how well each quoted source answers the question, by its number."""
    return {
        quote.hit + 1: Support(quote.support, quote.support >= SUPPORTED, quote.passages[0].text) for quote in quotes
    }


def write(quotes: Sequence[Quote], hits: Sequence[Hit], *, known: bool = True) -> str:
    """Return the answer: each quote under the heading of its section, `[n]` after its last sentence.

    The headings above that stand in its citation. Before the quotes it says that it is unsure, if it is, or that it
    does not know, with `known` False.
    """
    written = [_write_quote(quote, hits[quote.hit]) for quote in quotes]
    if not known:
        return "\n\n".join([f"{UNKNOWN} This comes closest:", *written])
    unsure = max((quote.support for quote in quotes), default=0.0) < UNSURE
    return "\n\n".join([CLOSEST, *written] if unsure else written)


def bound(passage: Passage, concern: Callable[[str], float]) -> Passage:
    """Return `passage` with what a reader can look through; `concern` tells how much a text is about the question.

    Tables keep their head and lists their order; code stays whole.
    """
    return replace(passage, blocks=tuple(_bound_block(block, concern) for block in passage.blocks))


def _bound_block(block: TextBlock, concern: Callable[[str], float]) -> TextBlock:
    if block.kind is Kind.TABLE:
        head, *rows = block.text.splitlines()
        return replace(block, text="\n".join([head, *_choose_rows(rows, concern)]))
    if block.kind is Kind.LIST:
        return replace(block, text="\n".join(_choose_rows(split_items(block.text), concern)))
    if block.kind is Kind.PROSE and len(block.text.split()) > MOST_PROSE_WORDS:
        return replace(block, text=_whole_sentences(block.text))
    return block


def _choose_rows(rows: Sequence[str], concern: Callable[[str], float]) -> list[str]:
    """Return up to MOST_ROWS rows in their order, with "…" where others are left out."""
    if len(rows) <= MOST_ROWS:
        return list(rows)
    scores = [concern(row) for row in rows]
    least = CONCERNS * max(scores) if max(scores) >= CONCERNS else 0.0  # no row is meant: the first ones
    near = [n for n, score in enumerate(scores) if score >= least]
    kept = sorted(sorted(near, key=lambda n: -scores[n] if least else n)[:MOST_ROWS])
    chosen = [
        text
        for at, n in enumerate(kept)
        for text in ([OMITTED] if n > (kept[at - 1] + 1 if at else 0) else []) + [rows[n]]
    ]
    return chosen + ([OMITTED] if kept[-1] + 1 < len(rows) else [])


def _whole_sentences(prose: str) -> str:
    """Return the first sentences of `prose`, up to MOST_PROSE_WORDS, never less than one."""
    kept, words = "", 0
    for sentence in split_sentences(prose):
        words += len(sentence.split())
        if kept and words > MOST_PROSE_WORDS:
            return f"{kept} {OMITTED}"
        kept = f"{kept} {sentence}".lstrip()
    return kept


def _write_quote(quote: Quote, hit: Hit) -> str:
    written = [_write_passage(passage) for passage in quote.passages]
    prose = [
        (n, at)
        for n, passage in enumerate(quote.passages)
        for at, block in enumerate(passage.blocks)
        if block.kind is Kind.PROSE
    ]
    if prose:
        n, at = prose[-1]
        written[n][at] += f" [{quote.hit + 1}]"
    else:
        written.append([f"[{quote.hit + 1}]"])
    gaps = [n for n, (one, other) in enumerate(itertools.pairwise(quote.passages)) if other.place > one.place + 1]
    for n in gaps:
        written[n].append(OMITTED)
    return "\n\n".join([f"**{keep_signs(own_heading(hit))}**", *itertools.chain.from_iterable(written)])


def _write_passage(passage: Passage) -> list[str]:
    return [_write_block(block) for block in passage.blocks]


def _write_block(block: TextBlock) -> str:
    if block.kind in (Kind.CODE, Kind.TABLE):
        return fence(block.text)
    if block.kind is Kind.LABEL and (is_code(block.text) or "(" in block.text) and "`" not in block.text:
        return f"`{snippet(block.text, LONGEST_SIGNATURE)}`"
    return keep_signs(hide_numbers(block.text))


def hide_numbers(prose: str) -> str:
    """Return prose with its own numbers in brackets, which are no citations, as code."""
    return _NUMBERS.sub(lambda found: f"`{found[0]}`", prose)


def keep_signs(prose: str) -> str:
    """Return prose with the words as code that Markdown would show without their signs, such as `__init__`."""
    return _WORDS.sub(lambda word: _keep_word(word[0]), prose)


def _keep_word(word: str) -> str:
    if word.startswith("`") or "://" in word or not _TAKEN.search(word):
        return word
    parts = _CORE.fullmatch(word)
    if parts is None:
        return word
    before, core, after = parts.groups()
    return f"{before}`{core}`{after}"


def fence(code: str) -> str:
    """Return code as a fenced block, cut if it is long."""
    lines = code.splitlines()
    kept = lines[:MOST_CODE_LINES] + ([OMITTED] if len(lines) > MOST_CODE_LINES else [])
    mark = "`" * max(3, 1 + max((len(run) for run in re.findall(r"`+", code)), default=0))
    return "\n".join([mark, *kept, mark])
