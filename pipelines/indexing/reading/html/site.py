"""What a collection says of its own HTML, as one more generator.

Its names are content, title, noise and boxes; each is a CSS selector, or several. Knows no collection file.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from pipelines.indexing.reading.generator import Generator, found
from pipelines.indexing.reading.html.parse import parse_html
from pipelines.indexing.reading.text import text_of_page
from pipelines.records import Page


def generator_of_site(html: Mapping[str, Any]) -> Generator:
    """Return the generator that reads pages by the selectors of `html`, as the settings of an index hold them."""
    return Generator(
        "this site",
        main=html.get("content", ""),
        title=html.get("title", ""),
        hidden=", ".join(html.get("noise", ())),
        boxed=", ".join(html.get("boxes", ())),
    )


def selectors_of(html: Mapping[str, Any]) -> dict[str, str]:
    """Return each selector of `html` with the key that holds it."""
    return {text: key for key, said in html.items() for text in ([said] if isinstance(said, str) else said)}


class SelectorCheck:
    """Tells which of `selectors` find something on a page. It pickles."""

    def __init__(self, selectors: Iterable[str]) -> None:
        self._selectors = tuple(selectors)

    def __call__(self, page: Page) -> frozenset[str]:
        """Return the selectors that find something. Raises UnreadablePage."""
        root = parse_html(text_of_page(page))
        return frozenset(text for text in self._selectors if found(text, root))
