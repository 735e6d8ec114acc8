"""Defines the declaration of a documentation generator: the markup that it produces.

Independent of specific generators: each is a table in `generators/`.
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
    """A string is not a CSS selector."""


@dataclass(frozen=True, slots=True)
class Generator:
    """A documentation generator, described by the keys of its table: names of classes and roles, and CSS selectors.

    Names are separated by spaces.

    These fields apply to pages of all generators, because themes borrow from one another: `main` selects elements with
    a page's own content. `noise` are names, also ids, of boxes that are not part of the text. `listings` are names on
    pages without their own text. `boxes` are boxes next to the text, `contents` tables of contents, and `sections`
    boxes with an anchor, except that `unlinked_sections` may lack it. `code_lines` are lines of code whose line breaks
    come from a style sheet. `index_terms` are names of elements that only an index links to, and `index_ids` the first
    letters of their ids.

    These fields apply only to pages with one of the names in `marks`: `listing` selects an element that only pages
    without their own text have, `hidden` parts that readers never see, `boxed` additional boxes, and `title` the page
    title. `rewrite` turns the rest into plain HTML, if the page contains an element matching `only_with`, when that is
    set. `sources` finds the folder of sources that the generator publishes. Both are functions of the module next to
    the table; `sources` may instead come from the table's `publishes` (see Publishing). `copies` are folders that the
    generator writes next to its pages.
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
        """Return whether the page `root`, which has one of the marks, contains markup for `rewrite`."""
        return self.rewrite is not None and (not self.only_with or bool(found(self.only_with, root)))


def check_selector(selector: str) -> str:
    """Return `selector`. Raises InvalidSelector."""
    try:
        _compiled(selector)
    except (SelectorError, etree.XPathError) as error:
        raise InvalidSelector(f"{selector!r} is not a CSS selector: {error}") from error
    return selector


def found(selector: str, root: Element) -> list[Element]:
    """Return the elements that match a CSS selector; none for an empty selector."""
    return list(_compiled(selector)(root)) if selector else []


@cache
def _compiled(selector: str) -> etree.XPath:
    return etree.XPath(GenericTranslator().css_to_xpath(selector))
