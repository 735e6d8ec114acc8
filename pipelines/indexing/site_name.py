"""Finds the name of the site from which a collection was made, as its pages call it.

A title set by an operator comes first, then the common part of most pages' titles, the front page's heading, the host.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from html import unescape
from urllib.parse import urlsplit

from pipelines.indexing.reading.text import UnreadablePage, text_of_page
from pipelines.store import Store

# Titles that are read; the share of them, and the least number, that must have the site's name before or after theirs.
SAMPLE, SHARE, LEAST_PAGES = 24, 0.6, 3
WHOLE = 0.9  # this share of those pages has a longer part in common: half of Django's end in "release notes — Django"
KEPT = 256  # names of collections
_TITLE = re.compile(r"<title\b[^<>]{0,200}>([^<]{1,500})</title", re.IGNORECASE)
_BETWEEN = re.compile(r"(?<!\s)\s++(?:[-–—|·•»›:/]++\s++|[|»]\s*+)|:\s++|[|»]\s*+")


class SiteNames:
    """The names of the collections of `store`, each found once per revision. Its methods wait for the database."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._found = lru_cache(KEPT)(self._find)

    def get(self, row: Mapping[str, object]) -> str:
        """Return the name for readers of the collection in a row of the store; its own name if no other is known."""
        name, index = str(row["name"]), row["index"]
        set_by_hand = str(self._store.collection_settings(name).get("title") or "")
        if set_by_hand or not isinstance(index, int):
            return set_by_hand or name
        return self._found(name, index, row["revision"]) or name

    def _find(self, collection: str, index: int, _: object) -> str:
        titles = self._titles(collection)
        outline, base = self._store.outline(collection, index), self._store.common_url(index)
        front = outline.title if base and outline.root.rpartition("/")[0] == base.rstrip("/") else ""
        return shared_name(titles) or front or urlsplit(base).netloc

    def _titles(self, collection: str) -> list[str]:
        titles: list[str] = []
        sample = list(self._store.layout_sample(collection, 1, SAMPLE))
        for page in self._store.page_bodies(collection, sample[:SAMPLE]):
            with suppress(UnreadablePage):
                found = _TITLE.search(text_of_page(page))
                titles.append(" ".join(unescape(found[1]).split()) if found else "")
        return titles


def shared_name(titles: Sequence[str]) -> str:
    """Return the part that a SHARE of `titles` begin or end with, "" if none does.

    For "Views — Acme 3 documentation" that is "Acme 3 documentation", for "Acme: Documentation: 15: Views" it is "Acme
    Documentation 15".
    """
    parts = [_BETWEEN.split(title.strip()) for title in titles if title.strip()]
    end = _shared([one[::-1] for one in parts], len(titles))
    return end[-1] if end else " ".join(_shared(parts, len(titles)))


def _shared(parts: Sequence[Sequence[str]], pages: int) -> tuple[str, ...]:
    """Return the longest beginning, shorter than the whole, that most of `parts` share."""
    begins = Counter(tuple(one[:n]) for one in parts for n in range(1, len(one)))
    first = max((key for key in begins if len(key) == 1), key=lambda key: begins[key], default=())
    if not first or begins[first] < max(LEAST_PAGES, SHARE * pages):
        return ()
    return max((key for key, count in begins.items() if count >= WHOLE * begins[first]), key=len)
