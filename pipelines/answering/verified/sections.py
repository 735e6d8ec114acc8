"""Reads the sections of an index that answers rely on, and tells whether they have changed.

This module works with chunks; it knows nothing about answers.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from urllib.parse import unquote

from pipelines.page.stored import plain_text
from pipelines.records import Filters, Hit, Index, digest
from pipelines.store import Store
from pipelines.store.collections.verified import PinnedSection


def read_sections(chunks: Iterable[Hit], sources: Iterable[str]) -> dict[str, Hit]:
    """Return each of `sources` found in the chunks as one hit, with the whole section as its `context`.

    A source (`url#anchor` or `url`) means the section itself, without its subsections; if it has no text of its own, it
    means its subsections. An anchor may be percent-encoded, as browsers do.
    """
    known, found = list(chunks), {}
    for source in sources:
        url, _, anchor = source.partition("#")
        of_page = [chunk for chunk in known if chunk.url == url]
        spellings = {anchor, unquote(anchor)}
        own = [chunk for chunk in of_page if chunk.source.partition("#")[2] in spellings]
        below = [chunk for chunk in of_page if not anchor or not spellings.isdisjoint(chunk.anchors)]
        if parts := sorted(own or below, key=lambda chunk: chunk.ordinal):
            found[source] = replace(parts[0], context="\n\n".join(part.text for part in parts))
    return found


def find_sections(store: Store, index: Index, sources: Iterable[str]) -> dict[str, Hit]:
    """Return each of `sources` that an index contains, like `read_sections`."""
    wanted = list(sources)
    return read_sections(store.chunks_of_pages(index.id, {source.partition("#")[0] for source in wanted}), wanted)


def section_hash(section: Hit) -> str:
    """Return the hash of a section's heading and text, independent of chunking and whitespace."""
    heading = section.headings[-1] if section.headings else ""
    return digest("".join(heading.split()), "".join(plain_text(section.passage).split()))


def pin(source: str, section: Hit) -> PinnedSection:
    """Return a record of a section as it is now."""
    return PinnedSection(source, section_hash(section), plain_text(section.passage))


def changed_sections(pinned: Iterable[PinnedSection], now: Mapping[str, Hit]) -> list[str]:
    """Return the sources whose section has changed or is gone."""
    return [one.source for one in pinned if one.source not in now or section_hash(now[one.source]) != one.text_hash]


def are_kept(sections: Sequence[Hit], filters: Filters, version: str | None = None) -> bool:
    """Return whether all sections pass `filters` and none has a version other than `version`."""
    return all(
        (not filters.tags or not set(filters.tags).isdisjoint(hit.tags))
        and filters.version in (None, hit.version)
        and filters.language in (None, hit.language)
        and hit.url.startswith(filters.url_prefix or "")
        and (version is None or hit.version in (None, version))
        for hit in sections
    )
