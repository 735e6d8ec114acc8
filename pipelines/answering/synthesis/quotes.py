"""Quotes: the passages of a hit that an answer quotes, and their form in Markdown.

This module works only on texts, without the question; scores are given to it.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from pipelines.answering.grounding.support import Support
from pipelines.answering.hits import own_heading
from pipelines.answering.sanitizing.markdown import CITES
from pipelines.answering.synthesis.passages import (
    SAID,
    TITLE_WORDS,
    Passage,
    is_definition,
    says_more,
    split_passages,
)
from pipelines.answering.synthesis.shortening import OMITTED
from pipelines.page.blocks import LINE_BREAK, BlockKind, MarkdownBlock
from pipelines.page.markdown import fence, markdown_of
from pipelines.records import Hit

FULL = 250  # words up to which quotes are filled: a cut often omits the decisive part
INTRODUCTION = 100  # the most words of a section that leaves the answer to its subsections

# An answer whose best quote has less support says so at the start. That applies to 6 of 134 graded answers, none of
# them good; and to 16 of 1,306 questions to eleven sites, none of which got the right section.
UNSURE = 0.2

# Of 47 questions to the right site that would get "I do not know", 7 reach this support, all with the right section; of
# 183 questions to other sites, 5 do.
CLEAR = 0.6

# Of 133 questions to other sites, 95 get a closest passage; none of its headings has a share above 0.33.
NAMED = 0.6

# Text that looks like a citation of the answer but isn't one, also as a link's text; and the backticks of code spans.
_NUMBER = re.compile(rf"(?P<ticks>`++)|(?P<number>{CITES})(?:\([^\s()]*\))?")


@dataclass(frozen=True, slots=True)
class Quote:
    """Consecutive passages of hit n (from 0), from its section.

    `score` ranks quotes, and `support` is how well they answer the question (0 to 1). `words` are the words of the
    passages and headings. `headed` is the share of the question's words in the headings, if the question has several
    words. `begins` and `ends` are true if nothing of the section is omitted before and after them. `core` has the
    places of the most important passages. A quote that is `certain` is the answer; others are results for the reader to
    choose from.
    """

    hit: int
    passages: tuple[Passage, ...]
    score: float
    support: float
    words: frozenset[str]
    headed: float = 0.0
    begins: bool = True
    ends: bool = True
    core: frozenset[int] = frozenset()
    certain: bool = False


def in_order(quotes: Sequence[Quote], hits: Sequence[Hit]) -> tuple[tuple[Quote, ...], tuple[Hit, ...]]:
    """Return the quotes, and the hits with the quoted ones first, so that numbers appear in order."""
    order = list(dict.fromkeys([*(quote.hit for quote in quotes), *range(len(hits))]))
    places = {hit: place for place, hit in enumerate(order)}
    return tuple(replace(quote, hit=places[quote.hit]) for quote in quotes), tuple(hits[n] for n in order)


def fill(quotes: Sequence[Quote], hits: Sequence[Hit]) -> tuple[Quote, ...]:
    """Return the quotes with more of their sections: the best one up to FULL words, the others in the room left.

    A single quote also gets its subsections, if its section only introduces them.
    """
    filled: list[Quote] = []
    sections = [split_passages(hits[quote.hit].passage) for quote in quotes]
    for quote, section in zip(quotes, sections, strict=True):
        most = FULL - sum(count_words(one.passages) for one in filled)
        filled.append(fill_section(quote, section, most))
    return tuple([add_below(filled[0], sections[0], hits[filled[0].hit].below)] if len(filled) == 1 else filled)


def fill_section(quote: Quote, section: Sequence[Passage], most: int) -> Quote:
    """Return a quote with the whole section if it fits; otherwise with the passages between and after its own."""
    passages = {passage.place: passage for passage in quote.passages}
    said = sorted({passage.place for passage in section if says_more(passage)} | passages.keys())
    whole = {passage.place: passage for passage in section[said[0] : said[-1] + 1]} | passages
    if count_words(whole.values()) <= most:
        return replace(quote, passages=tuple(whole.values()))
    first, last = quote.passages[0].place, quote.passages[-1].place
    room = most - count_words(quote.passages)
    for passage in section[first:]:
        if passage.place not in passages:
            room -= count_words([passage])
            if room < 0 or is_definition(passage.blocks[0]):
                break
            passages[passage.place] = passage
    ordered = [passages[place] for place in sorted(passages)]
    behind = _without_label([passage for passage in ordered if passage.place > last])
    chosen = (*(passage for passage in ordered if passage.place <= last), *behind)
    return replace(quote, passages=chosen, begins=first <= said[0], ends=chosen[-1].place >= said[-1])


def add_below(quote: Quote, section: Sequence[Passage], text: str, most: int = FULL) -> Quote:
    """Return a quote of a whole, short `section`, extended by as much of its subsections' `text` as fits."""
    words = count_words(quote.passages)
    if words > INTRODUCTION:
        return quote
    quoted = {passage.place for passage in quote.passages}
    if words < count_words(one for one in section if says_more(one) or one.place in quoted):
        return quote
    below: list[Passage] = []
    for passage in split_passages(text):
        words += count_words([passage])
        if words > most:
            break
        below.append(replace(passage, place=passage.place + len(section)))
    return replace(quote, passages=(*quote.passages, *_without_label(below)))


def _without_label(passages: list[Passage]) -> list[Passage]:
    """Return passages without trailing ones that say nothing: asides, and labels of omitted text."""
    while passages and (_is_label(passages[-1]) or not says_more(passages[-1])):
        passages.pop()
    return passages


def _is_label(passage: Passage) -> bool:
    """Return whether a passage is as short as a label, and no command."""
    return count_words([passage]) <= TITLE_WORDS and not passage.has_code


def count_words(passages: Iterable[Passage]) -> int:
    """Return the number of words in the passages."""
    return sum(len(passage.plain.split()) for passage in passages)


def supports(quotes: Sequence[Quote]) -> dict[int, Support]:
    """Return how well each quoted source answers the question, by number; a quotation always supports itself."""
    return {quote.hit + 1: Support(quote.support, True, quote.passages[0].plain) for quote in quotes}


def is_named(quotes: Sequence[Quote]) -> bool:
    """Return whether the headings of a quote contain the question, which makes it the answer in any case."""
    return any(quote.headed >= NAMED for quote in quotes)


def is_certain(quotes: Sequence[Quote]) -> bool:
    """Return whether the quotes are the answer rather than results."""
    return bool(quotes) and all(quote.certain for quote in quotes)


def is_answer(quotes: Sequence[Quote]) -> bool:
    """Return whether a quote is the answer although the index hardly has one: by its headings or a high support."""
    return is_named(quotes) or any(quote.support >= CLEAR for quote in quotes)


def write(quotes: Sequence[Quote], hits: Sequence[Hit]) -> str:
    """Return the answer: each quote under the heading of its section, with `[n]` after its last sentence.

    The parent headings are in its citation.
    """
    return "\n\n".join(_write_quote(quote, hits[quote.hit]) for quote in quotes)


def _write_quote(quote: Quote, hit: Hit) -> str:
    """Return a quote under its heading, with its number after its last sentence."""
    blocks = _write_blocks(quote)
    written = [text for text, _ in blocks]
    end = max((n for n, (_, takes_mark) in enumerate(blocks, 1) if takes_mark), default=0)
    mark = f"[{quote.hit + 1}]"
    if end == len(written) or (end and not written[end - 1].endswith(":")):
        written[end - 1] += f" {mark}"
    else:  # after the block that the last sentence introduces
        written.append(mark)
    title = f"**{markdown_of(own_heading(hit))}**"
    return "\n\n".join([title, *written, *([] if quote.ends else [OMITTED])])


def write_passages(quote: Quote) -> str:
    """Return the passages of a quote as Markdown, with a mark for omitted text."""
    return "\n\n".join([*(text for text, _ in _write_blocks(quote)), *([] if quote.ends else [OMITTED])])


def _write_blocks(quote: Quote) -> list[tuple[str, bool]]:
    """Return the blocks as Markdown, each with whether the quote's number may follow it."""
    written = [] if quote.begins else [(OMITTED, False)]
    following = quote.passages[0].place
    for passage in quote.passages:
        written += [(OMITTED, False)] if passage.place > following else []
        following = passage.place + 1
        for block in passage.blocks:
            text = _write_block(block)
            written.append((text, _takes_mark(block.kind, text)))
    return written


def _takes_mark(kind: BlockKind, written: str) -> bool:
    """Return whether a mark may end a block: it is prose or a list, and its last line is no code or table."""
    last = written.rpartition("\n")[2].lstrip(" >")
    return kind in (*SAID, BlockKind.LIST) and not last.startswith(("```", "|"))


def _write_block(block: MarkdownBlock) -> str:
    is_plain = "\n" in block.text.replace(LINE_BREAK, "") if block.kind is BlockKind.PROSE else block.text[:2] == ">>"
    if is_plain:  # text from a caller, which isn't in our form of Markdown
        return block.text.replace("\n", LINE_BREAK) if is_definition(block) else fence(block.text.rstrip())
    return hide_numbers(block.text)


def hide_numbers(markdown: str) -> str:
    """Return a text with its own bracketed numbers, which are no citations, as code."""
    ticks: dict[str, list[int]] = {}  # the ends of backtick runs, the last one first
    for run in re.finditer("`+", markdown):
        ticks.setdefault(run[0], []).append(run.end())
    ticks = {run: ends[::-1] for run, ends in ticks.items()}
    written: list[str] = []
    at = 0
    while found := _NUMBER.search(markdown, at):
        written.append(markdown[at : found.start()])
        at = found.end()
        if found["number"]:
            written.append(f"`{found['number']}`")
            continue
        ends = ticks[found["ticks"]]
        while ends and ends[-1] <= at:
            ends.pop()
        at = ends[-1] if ends else at
        written.append(markdown[found.start() : at])
    return "".join((*written, markdown[at:]))
