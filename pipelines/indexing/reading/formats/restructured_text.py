"""Reads reStructuredText into sections by way of docutils' HTML.

Nothing but the page itself is read: directives that insert a file or raw HTML have no effect.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from docutils import nodes
from docutils.frontend import get_default_settings
from docutils.parsers.rst import Parser
from docutils.parsers.rst.states import NestedStateMachine, RSTState
from docutils.readers.standalone import Reader
from docutils.transforms.writer_aux import Admonitions
from docutils.utils import new_document
from docutils.writers.html5_polyglot import HTMLTranslator, Writer

from pipelines.indexing.reading.formats.html import document_of_html
from pipelines.indexing.reading.formats.rst_directives import LABEL, understand_all
from pipelines.indexing.reading.text import text_of_page
from pipelines.page.tree import Document
from pipelines.records import Page

_SETTINGS = {
    # Docutils inserts nothing: no files, no raw nodes, no configuration files.
    "file_insertion_enabled": False,
    "raw_enabled": False,
    "_disable_config": True,
    "line_length_limit": 1_000_000,  # a minified table may have long lines; the default rejects a page at 10,000
    # As on published pages; section ids depend on these.
    "auto_id_prefix": "id",
    "doctitle_xform": False,
    "docinfo_xform": False,
    "sectsubtitle_xform": False,
    "initial_header_level": 1,
    # Text instead of markup that only a style sheet needs.
    "syntax_highlight": "none",
    "math_output": "LaTeX",
    "embed_stylesheet": False,
    "stylesheet_path": None,
    # Never stop or print: a broken construct appears as written.
    "report_level": 5,
    "halt_level": 5,
    "warning_stream": False,
}


# Levels of nested blocks; deeper ones would exceed Python's recursion limit of 1,000 and libxml2's 256 levels of HTML.
MOST_NESTED = 30

# A reference without a role: `~module.name` shows the last part, `words <name>` the words.
_SHORTENED = re.compile(r"~!?(?:[\w.]*\.)?(\w+(?:\(\))?)|([^<>]*[^<>\s])\s+<[^<>\s]+>")
# Names that Sphinx fills in from its configuration. Only some folders show their values.
_FILLED_BY_SPHINX = frozenset(("version", "release", "today"))
# Sphinx's own pages, by their labels.
_OWN_PAGES = {"genindex": "Index", "modindex": "Module Index", "search": "Search Page"}


class _Translator(HTMLTranslator):
    """Writes HTML that marks code, with line breaks in the paragraph of a poem or an address."""

    def visit_literal(self, node: nodes.literal) -> None:
        self.body.append("<code>")

    def depart_literal(self, node: nodes.literal) -> None:
        self.body.append("</code>")

    def visit_line(self, node: nodes.line) -> None:
        pass

    def depart_line(self, node: nodes.line) -> None:
        self.body.append("<br>")


def read_restructured_text(page: Page) -> Document:
    """Read a page of reStructuredText with any directives and roles. Raises UnreadablePage."""
    return document_of_html(page.url, f"<body><main>{render(text_of_page(page))}</main>")


def render(text: str) -> str:
    """Return the HTML of `text`."""
    document = _parse(text)
    _drop_page_fields(document)
    _show_broken(document)
    _show_images(document)
    _name_labels(document)
    _shorten_names(document)
    _set_dashes(document)
    Admonitions(document).apply()  # the translator supports no other admonitions
    translator = _Translator(document)
    document.walkabout(translator)
    return "".join(translator.body)


def _parse(text: str) -> nodes.document:
    settings = get_default_settings(Parser, Reader, Writer)
    for name, value in _SETTINGS.items():
        setattr(settings, name, value)
    document = new_document("page", settings)
    with understand_all(), _bound_nesting():
        Parser().parse(text, document)
    _fill_undefined(document)
    document.transformer.populate_from_components((Reader(), Parser()))
    document.transformer.apply_transforms()
    return document


def _fill_undefined(document: nodes.document) -> None:
    """Show a substitution that the page does not define as written; docutils may fail on one within another."""
    for reference in list(document.findall(nodes.substitution_reference)):
        name = nodes.fully_normalize_name(reference["refname"])
        if name not in document.substitution_names:
            shown = "" if name in _FILLED_BY_SPHINX else f"|{reference.astext()}|"
            reference.parent.replace(reference, nodes.Text(shown))


class _ShallowStateMachine(NestedStateMachine):
    """Parses nested blocks. Blocks nested deeper than MOST_NESTED become a single paragraph of their text."""

    def run(self, input_lines: Any, input_offset: int, memo: Any, node: nodes.Element, *more: Any, **named: Any) -> Any:
        depth = getattr(memo, "nesting", 0)
        if depth < MOST_NESTED or self.initial_state != "Body":
            memo.nesting = depth + (self.initial_state == "Body")
            try:
                return super().run(input_lines, input_offset, memo, node, *more, **named)
            finally:
                memo.nesting = depth
        self.node = node  # pyrefly: ignore[bad-assignment]  any element may contain the blocks
        self.input_offset, self.line_offset = input_offset, len(input_lines) - 1
        node += nodes.paragraph("", "\n".join(input_lines))
        return []


@contextmanager
def _bound_nesting() -> Iterator[None]:
    """Make docutils read deeply nested blocks as text in this context, instead of failing with RecursionError."""
    states: Any = RSTState
    own, cached = states.nested_sm, states.nested_sm_cache
    states.nested_sm, states.nested_sm_cache = _ShallowStateMachine, []
    try:
        yield
    finally:
        states.nested_sm, states.nested_sm_cache = own, cached


def _drop_page_fields(document: nodes.document) -> None:
    """Remove fields for the generator, such as `:orphan:`, before the page's first text."""
    silent = nodes.comment | nodes.target | nodes.system_message | nodes.substitution_definition
    first = next((child for child in document.children if not isinstance(child, silent)), None)
    if isinstance(first, nodes.field_list):
        document.remove(first)


def _show_broken(document: nodes.document) -> None:
    """Replace docutils' error messages by the source that it could not parse."""
    for message in list(document.findall(nodes.system_message)):
        source = [child for child in message.children if isinstance(child, nodes.literal_block)]
        message.parent.replace(message, source)
    for problem in list(document.findall(nodes.problematic)):
        problem.parent.replace(problem, nodes.Text(problem.astext()))


def _set_dashes(document: nodes.document) -> None:
    """Convert the dashes in titles as published pages do."""
    for text in [text for title in document.findall(nodes.title) for text in title.findall(nodes.Text)]:
        if "--" in text and not isinstance(text.parent, nodes.literal):
            text.parent.replace(text, nodes.Text(text.replace("---", "—").replace("--", "–")))


def _show_images(document: nodes.document) -> None:
    """Replace images by their alternative text."""
    for image in list(document.findall(nodes.image)):
        shown = nodes.inline("", image.get("alt", ""))
        inline = isinstance(image.parent, nodes.TextElement)
        image.parent.replace(image, shown if inline else nodes.paragraph("", "", shown))


def _name_labels(document: nodes.document) -> None:
    """Show a reference to a label on this page as the title of the section that the label precedes."""
    for reference in document.findall(nodes.inline):
        label = " ".join(reference.get(LABEL, "").lower().split())
        name = document.nameids.get(label)
        place = document.ids.get(name) if name else None
        title = place.next_node(nodes.title) if isinstance(place, nodes.section) else None
        if title is not None:
            reference.children = [nodes.Text(title.astext())]
        elif label in _OWN_PAGES:
            reference.children = [nodes.Text(_OWN_PAGES[label])]


def _shorten_names(document: nodes.document) -> None:
    """Show `~tornado.web.Application` without a role as its last part, and `words <name>` as its words.

    This is how Sphinx shows them with its default role.
    """
    for name in document.findall(nodes.title_reference):
        if found := _SHORTENED.fullmatch(name.astext()):
            name.children = [nodes.Text(found[1] or found[2])]
