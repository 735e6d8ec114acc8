"""Rewrites pdoc: each class and function becomes a section with its id, its name and its signature."""

from lxml.etree import _Element as Element

from pipelines.indexing.reading.markup.elements import drop, lines_of, listing, with_class

_DECLARATIONS = with_class("attr", "div")
_NAMES = with_class("name", "span")
_BUTTONS = with_class("view-source-button")


def rewrite_pdoc(root: Element) -> None:
    """Rewrite the declarations of a pdoc page."""
    drop(_BUTTONS(root))
    for declaration in _DECLARATIONS(root):
        holder, names = declaration.getparent(), _NAMES(declaration)
        if holder is None or not holder.get("id") or not names:
            continue
        holder.tag = "section"
        name, signature = "".join(names[0].itertext()), " ".join(lines_of(declaration).split())
        declaration.clear()
        declaration.tag, declaration.text = "h3", name
        declaration.addnext(listing(signature))
