"""Joins a hit with its neighbors in the section, the sections below it, and the rest of its page.

This module works only on texts; the store finds the neighbors.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain, groupby, takewhile, zip_longest
from math import log
from operator import attrgetter

from pipelines.answering.hits import full_text, own_heading
from pipelines.page.blocks import BlockKind, read_blocks
from pipelines.page.markdown import markdown_of
from pipelines.records import Hit

OMITTED = "…"  # the line of a chunk that separates repeated text of the previous chunk from new text
FENCE = "```"
LEAST_CUT = 400  # characters; only a listing that is longer than a chunk is cut, and no model reads less than this
# Least share of the question's words, rarer ones counting more, in a section that no search found. Chosen on 36
# questions to two sites: benchmarks/results/readers-own-words.md.
LEAST_SHARE = 0.2
EXTRA = "extra"  # the score kind of a section that a capable model gets in addition to the hits
MARKS = " >*-\\"  # markers of lists, notes and line breaks around a line

_WORD = re.compile(r"\S+")


def with_neighbours(hit: Hit, section: Sequence[Hit], reach: int, overlap: int) -> Hit:
    """Return `hit` with its neighbors as `context`; `section` has the hit and its neighbors in reading order.

    Chunks of its own section more than `reach` places after it are kept only if they continue a code block. Chunks
    under later headings, the subsections, become its `below`. A hit without neighbors is unchanged. A chunk repeats at
    most `overlap` words of the previous one.
    """
    last = hit.ordinal + reach
    section = [one for one in section if one.ordinal <= last or one.headings != hit.headings or _goes_on(one.text)]
    if len(section) < 2:
        return hit
    parts = [list(chunks) for _, chunks in groupby(section, key=attrgetter("headings"))]
    own, *below = parts
    if below and own[-1].ordinal + 1 < below[0][0].ordinal:  # other chunks of the section are in between
        below = []
    texts = [f"**{markdown_of(own_heading(part[0]))}**\n\n{_join(part, overlap)}" for part in below]
    return replace(hit, context=_join(own, overlap) if len(own) > 1 else "", below="\n\n".join(texts))


@dataclass(frozen=True, slots=True)
class PageSections:
    """The sections without a hit: introductions to a hit's section, sections of short pages, and the others.

    The others alternate between pages. On each page, the section with the most words of the question comes first; rarer
    words count more. Sections with less than LEAST_SHARE of the words are left out.
    """

    leads: Sequence[Hit]
    short: Sequence[Hit]
    others: Sequence[Hit]


def other_sections(
    question: str,
    hits: Sequence[Hit],
    pages: Sequence[Hit],
    overlap: int,
    short: Collection[str],
    words_of: Callable[[str], frozenset[str]],
) -> PageSections:
    """Return the sections of `pages` without a hit; `pages` has chunks in reading order, `short` has URLs.

    `words_of` returns the words of a text that carry meaning.
    """
    found = {(hit.url, hit.headings) for hit in hits}
    parts = by_section(pages)
    others = [as_section(part, overlap) for part in parts if (part[0].url, part[0].headings) not in found]
    leads = [hit for hit in others if any(url == hit.url and _leads(hit.headings, below) for url, below in found)]
    asked = words_of(question)
    words = {hit.chunk_id: asked & words_of(full_text(hit)) for hit in others}
    number = Counter(chain.from_iterable(words.values()))
    rarity = {word: log(1 + (1 + len(others)) / (1 + number[word])) for word in asked}
    shares = {id: sum(map(rarity.__getitem__, own)) / sum(rarity.values()) for id, own in words.items() if own}
    kept = [hit for hit in others if hit not in leads]
    rest = [hit for hit in kept if hit.url not in short and shares.get(hit.chunk_id, 0.0) >= LEAST_SHARE]
    by_page = (sorted(own, key=lambda hit: -shares[hit.chunk_id]) for _, own in groupby(rest, key=attrgetter("url")))
    return PageSections(
        leads,
        [hit for hit in kept if hit.url in short],
        list(filter(None, chain.from_iterable(zip_longest(*by_page)))),
    )


def _leads(above: Sequence[str], headings: Sequence[str]) -> bool:
    """Return whether the section under `headings` is inside the one under `above`."""
    return len(above) < len(headings) and tuple(above) == tuple(headings[: len(above)])


def by_section(pages: Sequence[Hit]) -> list[list[Hit]]:
    """Return the chunks of each section of `pages`, which has chunks in reading order."""
    return [list(part) for _, part in groupby(pages, key=attrgetter("url", "headings"))]


def as_section(part: Sequence[Hit], overlap: int) -> Hit:
    """Return the chunks of one section as a hit that no search found."""
    first = part[0]
    context = _join(part, overlap) if len(part) > 1 else ""
    return replace(first, context=context, score_kind=EXTRA, sources=first.sources or (first.source,))


def _join(section: Sequence[Hit], overlap: int) -> str:
    return reduce(lambda text, following: join_chunks(text, following.text, overlap), section[1:], section[0].text)


def join_chunks(text: str, following: str, overlap: int) -> str:
    """Join both texts without the repetition in the second: lines before "…", a table head, overlapping words."""
    repeated, rest = _divide(following)
    if rest and all(line.strip(MARKS) in text for line in repeated):
        before, _, last = text.rstrip().rpartition("\n")
        if not any(line.strip(MARKS).startswith(FENCE) for line in repeated):
            first = _go_on(rest[0])
            return "\n".join([text.rstrip(), *([""] if _is_paragraph(first) else []), first, *rest[1:]])
        if last.strip(MARKS).startswith(FENCE):  # the code continues in place of its closing fence
            return "\n".join([before, *rest])
    if _cut_listing(text, following):
        return "\n".join([text.rstrip().rpartition("\n")[0], *following.split("\n")[1:]])
    ending = _WORD.findall(text)[-overlap:] if overlap > 0 else []
    words = list(_WORD.finditer(following))[: len(ending)]
    beginning = [word[0] for word in words]
    for length in range(len(beginning), 0, -1):
        if ending[-length:] == beginning[:length]:
            return text.rstrip() + following[words[length - 1].end() :]
    return f"{text}\n\n{_go_on(following)}"


def _cut_listing(text: str, following: str) -> bool:
    """Return whether `following` begins with the rest of the listing that ends `text`.

    A chunk that begins within a listing, but in no scope of it, repeats no line. Its listing has the same language.
    """
    lines, rest = text.rstrip().split("\n"), _go_on(following).split("\n")
    if not (lines[-1].strip(MARKS) == FENCE and rest[0].strip(MARKS).startswith(FENCE)):
        return False
    size = sum(map(len, takewhile(lambda line: line.strip(MARKS) != FENCE, rest[1:])))
    for line in reversed(lines[:-1]):
        if line.strip(MARKS).startswith(FENCE):
            return line == rest[0] and size >= LEAST_CUT
        size += len(line)
    return False


def _go_on(following: str) -> str:
    """Return the following text without the empty list items on its first line, which reopen lists already open."""
    first, *rest = following.split("\n")
    return "\n".join([re.sub(r"(?<![^\s>])[-*](?= {3})", " ", first), *rest])


def _is_paragraph(line: str) -> bool:
    """Return whether a line begins a paragraph, rather than a continued item, row or listing."""
    is_prose = [block.kind for block in read_blocks(line)] == [BlockKind.PROSE]
    return is_prose and not line.strip(MARKS).startswith("|")


def _goes_on(text: str) -> bool:
    """Return whether a chunk begins inside a code block that the previous chunk opens."""
    lines = [line.strip(MARKS) for line in text.split("\n")]
    repeated = lines[: lines.index(OMITTED)] if OMITTED in lines else []
    return sum(line.startswith(FENCE) for line in repeated) % 2 == 1


def _divide(following: str) -> tuple[list[str], list[str]]:
    """Return the lines of a chunk that may be repeated, and the lines after them; both empty if none may be."""
    lines = following.split("\n")
    for n, line in enumerate(lines):
        if line.strip(MARKS) == OMITTED:
            return lines[:n], lines[n + 1 :]
        if line.strip(MARKS).startswith("|"):
            return lines[: n + 2], lines[n + 2 :]
    return [], []
