"""What a documentation generator writes in its own way: one declaration says all of it.

Knows no generator: each is a table in `generators/`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from bs4 import BeautifulSoup
from cssselect import GenericTranslator, SelectorError
from lxml import etree
from lxml.etree import _Element as Element

from pipelines.indexing.reading.sources import Read, SourceFolder


class InvalidSelector(ValueError):
    """A text is not a CSS selector."""


@dataclass(frozen=True, slots=True)
class Generator:
    """A generator by its names (of classes and roles, separated by spaces) and by CSS selectors: the keys of its table.

    What holds for a page of any generator, because themes borrow from one another: `main` are elements with a page's
    own content. `noise` are names, also ids, of boxes that are not its text. `listings` are names on pages without
    text of their own. `boxes` stand beside the text, `contents` are tables of contents, `sections` are boxes with an
    anchor, of which `unlinked_sections` may lack it, `code_lines` are lines of code whose breaks a style sheet makes.
    `index_terms` are names of elements that only an index leads to, `index_ids` are the first letters of their ids.

    What holds for the pages that have one of the names `marks`: `listing` is an element that only pages without text
    have, `hidden` are parts that no reader sees, `boxed` are further boxes, `title` is the title of a page, `rewrite`
    makes plain HTML of the rest (`only_with` an element, if it is given). `sources` finds the folder of sources that
    the generator publishes: both are functions of the module beside the table, or `sources` is that of the Publishing
    which the table has as `publishes`. `copies` are folders that it puts beside its pages.
    """

    name: str
    marks: str = ""
    main: str = ""
    noise: str = ""
    listings: str = ""
    boxes: str = ""
    contents: str = ""
    sections: str = ""
    unlinked_sections: str = ""
    code_lines: str = ""
    index_terms: str = ""
    index_ids: str = ""
    listing: str = ""
    hidden: str = ""
    only_with: str = ""
    copies: str = ""
    title: str = ""
    boxed: str = ""
    rewrite: Callable[[BeautifulSoup], None] | None = None
    sources: Callable[[Read, str], SourceFolder | None] | None = None

    def rewrites(self, root: Element) -> bool:
        """Return whether the page `root`, which bears a mark, holds what `rewrite` changes."""
        return self.rewrite is not None and (not self.only_with or bool(found(self.only_with, root)))


def check_selector(selector: str) -> str:
    """Return `selector`. Raises InvalidSelector."""
    try:
        _compiled(selector)
    except (SelectorError, etree.XPathError) as error:
        raise InvalidSelector(f"{selector!r} is not a CSS selector: {error}") from error
    return selector


def found(selector: str, root: Element) -> list[Element]:
    """Return the elements that a CSS selector finds, none for an empty one."""
    return list(_compiled(selector)(root)) if selector else []


@cache
def _compiled(selector: str) -> etree.XPath:
    return etree.XPath(GenericTranslator().css_to_xpath(selector))
