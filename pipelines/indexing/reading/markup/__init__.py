"""Markup: rewrites what generators write in a way of their own into plain HTML.

API entries become sections with a signature, grids become tables, tabs get their labels. Each module does it for one
kind; `rewrite` calls those whose class names, roles or buttons a page has. Runs before the content is looked for.
"""

from collections.abc import Callable

from lxml import etree
from lxml.etree import _Element as Element

from pipelines.indexing.reading.markup.doxygen import rewrite_doxygen
from pipelines.indexing.reading.markup.entries import fill_entries
from pipelines.indexing.reading.markup.grids import rewrite_grids
from pipelines.indexing.reading.markup.headings import mend_headings
from pipelines.indexing.reading.markup.javadoc import rewrite_javadoc
from pipelines.indexing.reading.markup.listings import clean_listings
from pipelines.indexing.reading.markup.pdoc import rewrite_pdoc
from pipelines.indexing.reading.markup.rustdoc import rewrite_rustdoc
from pipelines.indexing.reading.markup.tabs import label_tabs

_REWRITERS: tuple[tuple[frozenset[str], Callable[[Element], None]], ...] = (
    (frozenset(["rustdoc", "code-header"]), rewrite_rustdoc),
    (frozenset(["attr"]), rewrite_pdoc),
    (frozenset(["headertitle", "contents"]), rewrite_doxygen),
    (frozenset(["summary-table", "member-signature", "type-signature", "blockList", "blockListLast"]), rewrite_javadoc),
    (frozenset(["table", "grid", "admonitionblock"]), rewrite_grids),
    (frozenset(["boring", "md-typeset", "lang", "tsd-signature"]), clean_listings),
    (frozenset(["tablist", "radio"]), label_tabs),
)


def rewrite(root: Element, names: frozenset[str]) -> None:
    """Rewrite the page `root`, whose `names_of` are `names`, in place."""
    etree.strip_tags(root, "wbr")  # libxml2 takes what follows for its content
    mend_headings(root)
    fill_entries(root)
    for triggers, rewriter in _REWRITERS:
        if not names.isdisjoint(triggers):
            rewriter(root)
