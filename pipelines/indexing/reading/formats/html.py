"""Reads HTML into sections: parses the tree, determines the kind of page, and extracts its content."""

import re
from collections.abc import Mapping
from itertools import chain, islice
from statistics import fmean
from typing import Any

from lxml.etree import _Element as Element

from pipelines.indexing.reading.formats.plain_text import document_between_tags, file_name
from pipelines.indexing.reading.generator import Generator, found
from pipelines.indexing.reading.generators import ANY, generators_of
from pipelines.indexing.reading.html.content import main_content
from pipelines.indexing.reading.html.elements import holds_words, names_of
from pipelines.indexing.reading.html.page_kind import is_contents, kind_of
from pipelines.indexing.reading.html.parse import parse_html
from pipelines.indexing.reading.html.references import resolve_references
from pipelines.indexing.reading.html.site import generator_of_site
from pipelines.indexing.reading.html.walk import TreeWalker
from pipelines.indexing.reading.language import declared_language
from pipelines.indexing.reading.text import NEEDS_JAVASCRIPT, UnreadablePage, text_of_page
from pipelines.page.builder import SectionBuilder
from pipelines.page.tree import Document, Section, size_of
from pipelines.records import Page

_WORDS = re.compile(r"([a-z]+(?:[-_][a-z0-9]+)+)(?:\.\w{2,5})?")  # a file name that is a title: event-hooks.html


def read_html(page: Page, html: Mapping[str, Any]) -> Document:
    """Read a page of HTML or XHTML, using the collection's selectors `html`. Raises UnreadablePage."""
    return document_of_html(page.url, text_of_page(page), own=generator_of_site(html))


def document_of_html(url: str, text: str, title: str = "", language: str = "", own: Generator = ANY) -> Document:
    """Return the document for an HTML string. `title` and `language` override its own. Raises UnreadablePage."""
    root = parse_html(text)
    resolve_references(root, url)
    names = names_of(root)
    generators = [*generators_of(names), own]
    kind, label = kind_of(root, names, generators, url), _text(*islice(root.iter("title"), 1))
    language = language or declared_language(root, url)
    titles = [
        title for made in generators[::-1] for title in found(made.title, root)
    ]  # may also be outside the content
    main = main_content(root, url, names, generators, listed=kind.listed)
    title = title or _text(*titles[:1]) or _title(main, label)
    sections = () if kind.listed else _sections(url, main)
    shown = size_of(*(section.content for section in sections))
    empty = not shown and not holds_words(main)
    if not kind.listed and (shown or empty) and kind.needs_script(shown):
        raise UnreadablePage(url, NEEDS_JAVASCRIPT)
    if empty and not kind.listed and not is_contents(parse_html(text)):  # as the server sent it
        return document_between_tags(url, text, title)
    first = next(
        chain.from_iterable(section.headings for section in sections[:1]), ""
    )  # a heading after text names only a part
    return Document(url, title or first or _title_from(url), language, sections, label)


def _sections(url: str, main: Element) -> tuple[Section, ...]:
    builder = SectionBuilder(url)
    TreeWalker(url, builder).walk(main)
    return builder.sections()


def _title(main: Element, label: str) -> str:
    """Return the title of a page: its only h1, or one of several that its <title> contains.

    Several h1 may be parts of the page. If the <title> contains none of them, it is the first h1 if half of its words
    are in the <title>, and otherwise the <title>.
    """
    names = [words for heading in main.iter("h1") if (words := _text(heading))]
    if len(names) < 2 or not label:
        return names[0] if names else label
    called = label.casefold()
    first = names[0] if fmean(word in called.split() for word in names[0].casefold().split()) >= 0.5 else label
    return next((name for name in names if name.casefold() in called), first)


def _title_from(url: str) -> str:
    """Return the title that generators derive from a file name: "Event hooks" from event-hooks.html."""
    name = file_name(url)
    words = _WORDS.fullmatch(name)
    return re.sub("[-_]", " ", words[1]).capitalize() if words else name


def _text(*elements: Element) -> str:
    return " ".join("".join(text for element in elements for text in element.itertext()).split())
