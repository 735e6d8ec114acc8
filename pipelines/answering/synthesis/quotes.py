"""Quotes: which passages of which hit an answer quotes, and how they are written as Markdown.

Knows texts only: no question and no score but the one it is given.
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

FULL = 250  # words up to which quotes are filled: a cut often leaves out what decides
INTRODUCTION = 100  # words that a section has at most which leaves the answer to the sections below it

# Quotes whose best support is below this begin by saying so: of 134 graded answers 6, none of which is good; of 1,306
# questions to eleven sites 16, none of which gets the right section.
UNSURE = 0.2

# Of 47 questions to the right site that would get "I do not know" 7 have such a support, all with the right section; of
# 183 to other sites 5.
CLEAR = 0.6

# Of 133 questions to other sites 95 have a closest passage that is shown; the headings of none have more than 0.33.
NAMED = 0.6

# What looks like a citation of the answer and is none, as the name of a link too; and what code begins and ends with.
_NUMBER = re.compile(rf"(?P<ticks>`++)|(?P<number>{CITES})(?:\([^\s()]*\))?")


@dataclass(frozen=True, slots=True)
class Quote:
    """Passages of hit n (from 0) that follow each other in its section.

    `score` ranks them, `support` is how well they answer the question (0 to 1), `words` are theirs and their headings'.
    `headed` is the share of the question's words, if it has several, that the headings have. `begins` and `ends` tell
    that nothing of the section is left out before and behind them. `core` are the places of the passages that matter
    most. One that is `certain` is the answer; others are results, of which a reader chooses.
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
    """Return the quotes and the hits with those first that are quoted, so that numbers appear in order."""
    order = list(dict.fromkeys([*(quote.hit for quote in quotes), *range(len(hits))]))
    places = {hit: place for place, hit in enumerate(order)}
    return tuple(replace(quote, hit=places[quote.hit]) for quote in quotes), tuple(hits[n] for n in order)


def fill(quotes: Sequence[Quote], hits: Sequence[Hit]) -> tuple[Quote, ...]:
    """Return the quotes with more of their sections, the best one up to FULL words, the others up to what it leaves.

    A single one has the sections below its own too, if that only introduces them.
    """
    filled: list[Quote] = []
    sections = [split_passages(hits[quote.hit].passage) for quote in quotes]
    for quote, section in zip(quotes, sections, strict=True):
        most = FULL - sum(count_words(one.passages) for one in filled)
        filled.append(fill_section(quote, section, most))
    return tuple([add_below(filled[0], sections[0], hits[filled[0].hit].below)] if len(filled) == 1 else filled)


def fill_section(quote: Quote, section: Sequence[Passage], most: int) -> Quote:
    """Return a quote with the whole section if that fits, else with what stands between its passages and behind."""
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
    """Return a quote of a whole, short `section` with what fits of the `text` of the sections below it."""
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
    """Return passages without an end that says nothing: the label of what has no room, an aside."""
    while passages and (count_words(passages[-1:]) <= TITLE_WORDS or not says_more(passages[-1])):
        passages.pop()
    return passages


def count_words(passages: Iterable[Passage]) -> int:
    """Return the number of words of passages."""
    return sum(len(passage.plain.split()) for passage in passages)


def supports(quotes: Sequence[Quote]) -> dict[int, Support]:
    """Return how well each quoted source answers the question, by its number. What it says is supported: it is its."""
    return {quote.hit + 1: Support(quote.support, True, quote.passages[0].plain) for quote in quotes}


def is_named(quotes: Sequence[Quote]) -> bool:
    """Return whether the headings of a quote say what is asked: then it is the answer, however little else fits."""
    return any(quote.headed >= NAMED for quote in quotes)


def is_certain(quotes: Sequence[Quote]) -> bool:
    """Return whether quotes are the answer, not results."""
    return bool(quotes) and all(quote.certain for quote in quotes)


def is_answer(quotes: Sequence[Quote]) -> bool:
    """Return whether a quote is the answer although the index hardly has one: it is named, or fits far too well."""
    return is_named(quotes) or any(quote.support >= CLEAR for quote in quotes)


def write(quotes: Sequence[Quote], hits: Sequence[Hit]) -> str:
    """Return the answer: each quote under the heading of its section, `[n]` after its last sentence.

    The headings above that stand in its citation.
    """
    return "\n\n".join(_write_quote(quote, hits[quote.hit]) for quote in quotes)


def _write_quote(quote: Quote, hit: Hit) -> str:
    """Return a quote below its heading, with its number after its last sentence."""
    blocks = _write_blocks(quote)
    written = [text for text, _ in blocks]
    end = max((n for n, (_, takes_mark) in enumerate(blocks, 1) if takes_mark), default=0)
    mark = f"[{quote.hit + 1}]"
    if end == len(written) or (end and not written[end - 1].endswith(":")):
        written[end - 1] += f" {mark}"
    else:  # behind what the last sentence introduces
        written.append(mark)
    title = f"**{markdown_of(own_heading(hit))}**"
    return "\n\n".join([title, *written, *([] if quote.ends else [OMITTED])])


def write_passages(quote: Quote) -> str:
    """Return the passages of a quote as Markdown, with a mark where something is left out."""
    return "\n\n".join([*(text for text, _ in _write_blocks(quote)), *([] if quote.ends else [OMITTED])])


def _write_blocks(quote: Quote) -> list[tuple[str, bool]]:
    """Return the blocks as Markdown, and whether each may have the quote's number behind it."""
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
    """Return whether a mark may end a block: it is said, or a list, and no code or table is its last line."""
    last = written.rpartition("\n")[2].lstrip(" >")
    return kind in (*SAID, BlockKind.LIST) and not last.startswith(("```", "|"))


def _write_block(block: MarkdownBlock) -> str:
    is_plain = "\n" in block.text.replace(LINE_BREAK, "") if block.kind is BlockKind.PROSE else block.text[:2] == ">>"
    if is_plain:  # text that a caller passed, which is no Markdown of ours
        return block.text.replace("\n", LINE_BREAK) if is_definition(block) else fence(block.text.rstrip())
    return hide_numbers(block.text)


def hide_numbers(markdown: str) -> str:
    """Return a text with its own numbers in brackets, which are no citations, as code."""
    ticks: dict[str, list[int]] = {}  # the ends of the runs of backticks, the last one first
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
