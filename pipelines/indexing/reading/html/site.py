"""Turns a collection's HTML settings into an additional generator.

The settings are content, title, noise and boxes; each is one or more CSS selectors. Independent of the collection file.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from pipelines.indexing.reading.generator import Generator, found
from pipelines.indexing.reading.html.parse import parse_html
from pipelines.indexing.reading.text import text_of_page
from pipelines.records import Page


def generator_of_site(html: Mapping[str, Any]) -> Generator:
    """Return a generator that reads pages by the selectors in `html`, as stored in the index settings."""
    return Generator(
        "this site",
        main=html.get("content", ""),
        title=html.get("title", ""),
        hidden=", ".join(html.get("noise", ())),
        boxed=", ".join(html.get("boxes", ())),
    )


def selectors_of(html: Mapping[str, Any]) -> dict[str, str]:
    """Return each selector in `html` with its key."""
    return {text: key for key, said in html.items() for text in ([said] if isinstance(said, str) else said)}


class SelectorCheck:
    """Finds which of `selectors` match elements of a page. It can be pickled."""

    def __init__(self, selectors: Iterable[str]) -> None:
        self._selectors = tuple(selectors)

    def __call__(self, page: Page) -> frozenset[str]:
        """Return the selectors that match something. Raises UnreadablePage."""
        root = parse_html(text_of_page(page))
        return frozenset(text for text in self._selectors if found(text, root))
