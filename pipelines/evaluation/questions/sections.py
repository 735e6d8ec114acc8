"""Sections of an index as material for questions: first chunks and whole texts.

Knows chunks; no model and no database.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from pipelines.markdown.plain import plain_text
from pipelines.records import Hit, digest

# Characters of a chunk from which it is worth a call: a shorter one is a heading or a signature.
LEAST_TEXT = 150


def section_starts(chunks: Iterable[Hit]) -> list[Hit]:
    """Return the first chunk of each section that has a source of its own; equal texts count once."""
    first: dict[str, Hit] = {}
    for chunk in chunks:
        known = first.get(chunk.source)
        if known is None or chunk.ordinal < known.ordinal:
            first[chunk.source] = chunk
    return list({chunk.text_hash: chunk for chunk in reversed(first.values())}.values())[::-1]


def draw_chunks(chunks: Sequence[Hit], limit: int, seed: int = 0, least: int = LEAST_TEXT) -> list[Hit]:
    """Return `limit` chunks (0: all) of at least `least` characters, one of each page before a second of any.

    The same chunks and seed give the same draw, in whatever order they come; a further page moves few of the others.
    """
    by_page: dict[str, list[Hit]] = {}
    for chunk in sorted(chunks, key=lambda chunk: digest(str(seed), chunk.chunk_id)):
        if len(plain_text(chunk.text)) >= least:
            by_page.setdefault(chunk.url, []).append(chunk)
    rounds = max(map(len, by_page.values()), default=0)
    spread = [of_page[n] for n in range(rounds) for of_page in by_page.values() if n < len(of_page)]
    return spread[: limit or None]


def section_passages(chunks: Iterable[Hit], sources: Collection[str]) -> dict[str, Hit]:
    """Return the text of each of `sources`, subsections included, as one hit; sources without a chunk are left out."""
    wanted, parts = set(sources), dict[str, list[Hit]]()
    for chunk in chunks:
        for source in {chunk.url, *(f"{chunk.url}#{anchor}" for anchor in chunk.anchors)} & wanted:
            parts.setdefault(source, []).append(chunk)
    return {source: _join(found) for source, found in parts.items()}


def _join(chunks: Sequence[Hit]) -> Hit:
    ordered = sorted(chunks, key=lambda chunk: chunk.ordinal)
    return replace(ordered[0], text="\n\n".join(chunk.text for chunk in ordered))
