"""Sections of an index as material for questions: their beginnings and full texts.

Knows chunks; knows no model and no database.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from itertools import accumulate

from pipelines.page.stored import plain_of
from pipelines.records import Hit, digest

# Minimum characters of a section worth a model call: a shorter one is a heading or a signature.
LEAST_TEXT = 150


def section_starts(chunks: Iterable[Hit]) -> list[Hit]:
    """Return the beginning of each section that has its own source; duplicate texts count once.

    A beginning is the first chunk, plus following ones up to LEAST_TEXT characters, because an index may have small
    chunks.
    """
    sections: dict[str, list[Hit]] = {}
    for chunk in chunks:
        sections.setdefault(chunk.source, []).append(chunk)
    starts = [_start(section) for section in sections.values()]
    return list({start.text_hash: start for start in reversed(starts)}.values())[::-1]


def _start(section: Sequence[Hit]) -> Hit:
    ordered = sorted(section, key=lambda chunk: chunk.ordinal)
    lengths = accumulate(len(plain_of(chunk)) for chunk in ordered)
    return _join(ordered[: 1 + sum(length < LEAST_TEXT for length in lengths)])


def draw_chunks(chunks: Sequence[Hit], limit: int, seed: int = 0, least: int = LEAST_TEXT) -> list[Hit]:
    """Return `limit` chunks (0: all) of at least `least` characters, one from each page before a second from any.

    The same chunks and seed give the same draw, in any input order. Another page changes few of the other draws.
    """
    by_page: dict[str, list[Hit]] = {}
    for chunk in sorted(chunks, key=lambda chunk: digest(str(seed), chunk.chunk_id)):
        if len(plain_of(chunk)) >= least:
            by_page.setdefault(chunk.url, []).append(chunk)
    rounds = max(map(len, by_page.values()), default=0)
    spread = [of_page[n] for n in range(rounds) for of_page in by_page.values() if n < len(of_page)]
    return spread[: limit or None]


def section_passages(chunks: Iterable[Hit], sources: Collection[str]) -> dict[str, Hit]:
    """Return the text of each of `sources`, including subsections, as one hit; sources without a chunk are left out."""
    wanted, parts = set(sources), dict[str, list[Hit]]()
    for chunk in chunks:
        for source in {chunk.url, *(f"{chunk.url}#{anchor}" for anchor in chunk.anchors)} & wanted:
            parts.setdefault(source, []).append(chunk)
    return {source: _join(found) for source, found in parts.items()}


def _join(chunks: Sequence[Hit]) -> Hit:
    ordered = sorted(chunks, key=lambda chunk: chunk.ordinal)
    text_hash = digest(*(chunk.text_hash for chunk in ordered))
    text = "\n\n".join(chunk.text for chunk in ordered)
    return replace(ordered[0], text=text, plain="", text_hash=text_hash)
