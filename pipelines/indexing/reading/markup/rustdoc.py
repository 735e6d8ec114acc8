"""Rewrites rustdoc: an item becomes a section with its id, its name and its signature as code.

rustdoc puts id and signature of an item into the summary of a `<details>` and its text beside the summary. An
implementation without text becomes a line of the list it stands in.
"""

from lxml import etree
from lxml.etree import _Element as Element

from pipelines.indexing.reading.markup.elements import (
    become_listing,
    classes,
    drop,
    lines_of,
    listing,
    move,
    with_class,
)

_NOISE = etree.XPath(
    ".//*[@id='copy-path' or @id='toggle-all-docs' or self::a[@class='src' or .='Read more'] or "
    "self::summary[contains(@class,'hideme')] or contains(concat(' ',@class,' '),' rightside ') or "
    "@class='out-of-band' or @class='srclink' or @class='test-arrow' or @class='notable-traits' or "
    "@class='sub-heading' or @class='rustdoc-breadcrumbs' or @class='tooltip' or @class='information' or "
    "@class='doc-anchor' or @class='anchor' or @class='anchor field' or @class='sub-logo-container']"
)
_FRAME = etree.XPath(".//section[@id='main-content']")
_HEADERS = with_class("code-header")
_FIELDS = with_class("structfield", "span")
_TABLES = with_class("item-table")
_NAME = etree.XPath(
    ".//a[@class='fn' or @class='fnname' or @class='constant' or @class='associatedtype' or @class='type']"
)


def rewrite_rustdoc(root: Element) -> None:
    """Rewrite the items, and the tables of items, of a rustdoc page."""
    drop(_NOISE(root))
    for frame in _FRAME(root):
        frame.tag = "div"
    for header in _HEADERS(root):
        _rewrite_item(header)
    for field in _FIELDS(root):
        _rewrite_field(field)
    for table in _TABLES(root):
        _rewrite_table(table)


def _rewrite_item(header: Element) -> None:
    holder = header.getparent()
    summary = holder.getparent() if holder is not None else None
    if holder is None or summary is None or not holder.get("id"):
        return
    signature = lines_of(header)
    details = summary.getparent() if summary.tag == "summary" else None
    if details is None and {"impl", "trait-impl"} & set(classes(holder)):
        become_listing(header, signature)
        del holder.attrib["id"]
        return
    if names := [] if signature.startswith(("impl", "unsafe impl")) else _NAME(header):
        header.addnext(listing(signature))
        _rename(header, "".join(names[0].itertext()))
    if details is not None:
        details.tag = "section"
        details.set("id", holder.attrib.pop("id"))
        holder.tag = summary.tag = "div"
    else:
        holder.tag = "section"
        _adopt_text(holder)
    _merge_headings(holder if details is None else details)


def _merge_headings(item: Element) -> None:
    """Make paragraphs of the headings in the text of an item (Examples, Panics): it is one section."""
    for text in item.iterchildren("div"):
        if "docblock" in classes(text):
            for heading in text.iter("h2", "h3", "h4", "h5", "h6"):
                heading.tag, heading.text = "p", f"{''.join(heading.itertext()).strip()}:"
                del heading[:]


def _rename(header: Element, name: str) -> None:
    tag, tail = header.tag, header.tail
    header.clear()
    header.tag, header.text, header.tail = tag, name, tail


def _adopt_text(holder: Element) -> None:
    text = holder.getnext()
    if text is not None and "docblock" in classes(text):
        move(text, holder, len(holder))


def _rewrite_field(field: Element) -> None:
    declaration = lines_of(field)
    header = etree.Element("h3")
    header.text = declaration.partition(":")[0]
    for child in list(field):
        field.remove(child)
    field.tag = "section"
    field.extend([header, listing(declaration)])
    _adopt_text(field)


def _rewrite_table(table: Element) -> None:
    """Make a table of the items of a module: name, description."""
    if table.tag == "dl":
        return
    table.tag = "table"
    for mark in table.iter("span"):
        if "stab" in classes(mark):
            mark.text = f" ({''.join(mark.itertext())})"
            del mark[:]
    for row in table:
        row.tag = "tr"
        for cell in row:
            cell.tag = "td"
