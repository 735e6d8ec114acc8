"""Summarizes a live index: its title, versions, languages, and the beginnings of its sections.

Every read is bounded, so a large collection costs no more than a medium one.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pipelines.page.stored import plain_text
from pipelines.records import Index
from pipelines.store.chunks import chunk_table
from pipelines.store.collections.documents import Documents

# Limits: pages whose links are counted, pages whose sections are read, and characters per section. For 3,310 pages with
# 6,411 sections, the reads take 0.1 s.
_SAMPLED, _PAGES, _CHARACTERS = 2_000, 800, 600
_MARKDOWN = 3  # characters of Markdown, which includes link targets, per character of plain text
# Versions that mean the newest one, regardless of numbers.
_NEWEST = ("latest", "stable", "current")


@dataclass(frozen=True, slots=True)
class SectionStart:
    """The beginning of a section; `links` is how many of the sampled pages link to its page.

    `language` is the language that the page declares, "" if it declares none.
    """

    url: str
    title: str
    headings: tuple[str, ...]
    text: str
    links: int = 0
    language: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """A page of an index that a reader has open: its URL there, title, version and language.

    `heading` belongs to the section that the reader's URL names, "" if it names none.
    """

    url: str
    title: str
    version: str | None = None
    language: str = ""
    heading: str = ""

    @property
    def subject(self) -> str:
        """The subject on the reader's screen: the section, or the page."""
        return self.heading or self.title


@dataclass(frozen=True, slots=True)
class Outline:
    """A summary of a collection: title and URL of its root page ("" if none), versions (newest first), languages.

    `examples` are questions that a new reader may ask, `logo` is a picture as a `data:` URL.
    """

    title: str = ""
    versions: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    root: str = ""
    logo: str = ""


class Outlines(Documents):
    """Summaries of indexes."""

    def outline(self, collection: str, index: int) -> Outline:
        """Return the summary of an index, without examples."""
        root = self._one("collection_root", {"collection": collection, "index": index})
        versions, languages = order_versions(self.versions(index)), self.languages(index)
        title = re.sub(r"^Welcome to |!$", "", root["title"]) if root else ""
        return Outline(title, tuple(versions), tuple(languages), root=root["url"] if root else "")

    def find_place(self, index: Index, urls: Sequence[str], anchor: str = "") -> Place | None:
        """Return the first of `urls` that is in the index, with its section `anchor`; None if none is."""
        found = self.find_pages(index, urls)
        if not found:
            return None
        url = min(found, key=lambda one: urls.index(one) if one in urls else len(urls))
        row = self._one("find_place", {"url": url, "anchor": anchor}, chunk=chunk_table(index.id))
        if row is None:
            return None
        heading = row["headings"][-1] if anchor and row["anchor"] == anchor and row["headings"] else ""
        return Place(url, row["title"], row["version"], row["language"], heading)

    def section_starts(self, collection: str, index: int) -> list[SectionStart]:
        """Return the beginnings of the sections of the most linked pages of an index."""
        bounds = {"sampled": _SAMPLED, "pages": _PAGES, "characters": _CHARACTERS * _MARKDOWN}
        values = {"collection": collection, "index": index, **bounds}
        rows = self._all("section_starts", values, chunk=chunk_table(index))
        return [
            SectionStart(
                **row | {"headings": tuple(row["headings"]), "text": (plain or plain_text(row["text"]))[:_CHARACTERS]}
            )
            for row in rows
            for plain in [row.pop("plain")]
        ]


def order_versions(versions: Sequence[str]) -> list[str]:
    """Sort versions, newest first: `latest` and `stable`, then by number, then versions without a number."""

    def rank(version: str) -> tuple[bool, bool, list[int], bool, str]:
        release, *early = re.split(r"(?<=\d)[\W_]*(?=[a-z])", version.lower(), maxsplit=1)  # 10.0rc1 comes before 10.0
        numbers = [int(number) for number in re.findall(r"\d{1,9}", release)]
        padded = re.sub(r"\d+", lambda found: found[0].zfill(9), version)  # rc9 comes before rc10
        return version.lower() in _NEWEST, bool(numbers), numbers, not early, padded

    return sorted(versions, key=rank, reverse=True)
