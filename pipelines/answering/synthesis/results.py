"""Results: the sections that may answer, in the order of the ranking, as in a search engine.

Each shows its best passage in full if it fits. This module works only on quotes and texts, without the question or
scores.
"""

from collections.abc import Sequence
from dataclasses import replace

from pipelines.answering.hits import own_heading
from pipelines.answering.synthesis.passages import MOST_BARE, Passage, is_bare, says_more, split_passages
from pipelines.answering.synthesis.quotes import (
    UNSURE,
    Quote,
    add_below,
    count_words,
    fill_section,
    is_named,
    write_passages,
)
from pipelines.answering.synthesis.shortening import cut_block, is_cut
from pipelines.page.blocks import MarkdownBlock
from pipelines.page.markdown import markdown_of
from pipelines.records import Hit
from pipelines.text.languages import ENGLISH, join, say

MOST_RESULTS = 5
# Words of all results with their titles, which fit on two screens, and of the first one.
RESULTS, FIRST = 600, 200


def fill_results(quotes: Sequence[Quote], hits: Sequence[Hit]) -> tuple[Quote, ...]:
    """Return the quotes, each filled from its section: the first gets more room, the others share the rest."""
    titles = tell_apart([hits[quote.hit] for quote in quotes])
    shown = [hits[quote.hit] for quote in quotes]
    left = RESULTS - sum(len(title.split()) for title in titles)
    filled: list[Quote] = []
    for n, quote in enumerate(quotes):
        share = left // (len(quotes) - n)
        most = max(FIRST, share) if n == 0 else share
        hit = hits[quote.hit]
        section = split_passages(hit.passage)
        result = fit(quote, section, most)
        apart = not any(_is_below(other, hit) for other in shown)
        filled.append(add_below(result, section, hit.below, most) if apart else result)
        left -= count_words(filled[-1].passages)
    return tuple(filled)


def _is_below(hit: Hit, other: Hit) -> bool:
    """Return whether a hit's section is inside the other one's."""
    above = len(other.headings)
    return hit.url == other.url and len(hit.headings) > above and hit.headings[:above] == other.headings


def fit(quote: Quote, section: Sequence[Passage], most: int) -> Quote:
    """Return a quote of `section` with about `most` words: its best passage, then as much else as fits."""
    if count_words(quote.passages) <= most:
        return fill_section(quote, section, most)
    best = [passage for passage in quote.passages if passage.place in quote.core]
    if count_words(best) <= most:
        return fill_section(replace(quote, passages=tuple(best)), section, most)
    said = [passage.place for passage in section if says_more(passage)]
    begins = not said or best[0].place <= said[0]
    shorter = _cut(best, most)
    marked = is_cut(shorter[-1].blocks[-1])  # already marked as cut; one mark is enough
    return replace(quote, passages=shorter, begins=begins, ends=marked)


def _cut(passages: Sequence[Passage], most: int) -> tuple[Passage, ...]:
    """Return the beginning of passages, with their first code, up to about `most` words.

    A block that only announces another comes with the beginning of that one, however long it is; MOST_BARE of them do.
    """
    code = next((_length(block) for passage in passages for block in passage.blocks if block.has_code), 0)
    left, needs = most, min(code, max(most, 0))  # `needs` is the room reserved for later code
    kept: list[Passage] = []
    bare = MOST_BARE  # blocks that may still come without room, because those before them only announce them
    for passage in passages:
        blocks: list[MarkdownBlock] = []
        for block in passage.blocks:
            without_room = needs > 0 and block.has_code
            needs = 0 if block.has_code else needs
            shorter = cut_block(block, left - needs)
            if not shorter and not without_room and bare:
                without_room = is_bare([*kept, replace(passage, blocks=tuple(blocks))] if blocks else kept)
                bare = bare - 1 if without_room else 0
            if not shorter and without_room:
                shorter = cut_block(block, 0, least=1)
            if shorter:
                blocks.append(shorter)
                left -= _length(shorter)
        kept += [replace(passage, blocks=tuple(blocks))] if blocks else []
    return tuple(kept)


def _length(block: MarkdownBlock) -> int:
    return len(block.plain.split())


def tell_apart(hits: Sequence[Hit]) -> list[str]:
    """Return a title for each hit, its page and heading, with more of its headings if titles would be equal."""
    titles = [_path(hit, inner=1) for hit in hits]
    for inner in (2, 3, 9):
        titles = [
            _path(hit, inner) if titles.count(title) > 1 else title for hit, title in zip(hits, titles, strict=True)
        ]
    return [
        f"{title} ({hit.version or hit.source})" if titles.count(title) > 1 else title
        for hit, title in zip(hits, titles, strict=True)
    ]


def _path(hit: Hit, inner: int) -> str:
    """Return the title of a hit's page and its `inner` last headings."""
    page = hit.title or (hit.headings[0] if hit.headings else "")
    return " › ".join(dict.fromkeys(name for name in (page, *hit.headings[-inner:]) if name)) or own_heading(hit)


def write_results(
    quotes: Sequence[Quote], hits: Sequence[Hit], *, known: bool = True, likely: bool = True, language: str = ENGLISH
) -> str:
    """Return the results: each passage under its title and its number `[n]`.

    The text above them says that they are the best matches. If none fits well or the index isn't `likely` to answer, it
    says that none answers for certain; with `known` False, it says that the answer is unknown.
    """
    titles = tell_apart([hits[quote.hit] for quote in quotes])
    written = [
        f"**{markdown_of(title)}** [{quote.hit + 1}]\n\n{write_passages(quote)}"
        for quote, title in zip(quotes, titles, strict=True)
    ]
    fits = max((quote.support for quote in quotes), default=0.0) >= UNSURE or is_named(quotes)
    above = [say("results" if likely and fits else "unsure", language)]
    if not known:
        above = [say("unknown", language), say("closest_quotes", language)]
    return "\n\n".join([join(above, language), *written])
