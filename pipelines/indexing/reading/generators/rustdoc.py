"""rustdoc: an item becomes a section with its id, its name and its signature as code.

rustdoc puts id and signature of an item into the summary of a `<details>` and its text beside the summary. An
implementation without text becomes a line of the list it stands in.
"""

from bs4 import BeautifulSoup, Tag

from pipelines.indexing.reading.generator import Generator
from pipelines.indexing.reading.html.soup import become_listing, by_class, children, lines_of, listing

_NAMES = ["fn", "fnname", "constant", "associatedtype", "type"]  # classes of the link that is an item's name


def _rewrite(soup: BeautifulSoup) -> None:
    tags = by_class(soup)
    for frame in soup.find_all(id="main-content"):
        frame.name = "div"
    for text in tags["docblock"]:
        for link in text.find_all("a", string="Read more"):
            link.decompose()
    for header in tags["code-header"]:
        _rewrite_item(soup, header)
    for field in tags["structfield"]:
        _rewrite_field(soup, field)
    for table in tags["item-table"]:
        _rewrite_table(table)


def _rewrite_item(soup: BeautifulSoup, header: Tag) -> None:
    holder = header.parent
    if holder is None or holder.parent is None or not holder.get("id"):
        return
    summary, signature = holder.parent, lines_of(header)
    details = summary.parent if summary.name == "summary" else None
    if details is None and {"impl", "trait-impl"} & set(holder.get_attribute_list("class")):
        become_listing(header, signature)
        del holder["id"]
        return
    name = header.find("a", class_=_NAMES)
    if isinstance(name, Tag) and not signature.startswith(("impl", "unsafe impl")):
        header.insert_after(listing(soup, signature))
        header.attrs, header.string = {}, name.get_text()
    if details is None:
        holder.name = "section"
        _adopt_text(holder)
    else:
        details.name, holder.name, summary.name = "section", "div", "div"
        details["id"] = holder.attrs.pop("id")
    _merge_headings(details or holder)


def _merge_headings(item: Tag) -> None:
    """Make paragraphs of the headings in the text of an item (Examples, Panics): it is one section."""
    for text in item.find_all("div", class_="docblock", recursive=False):
        for heading in text.find_all(["h2", "h3", "h4", "h5", "h6"]):
            heading.name, heading.string = "p", f"{heading.get_text().strip()}:"


def _adopt_text(holder: Tag) -> None:
    text = holder.find_next_sibling()
    if isinstance(text, Tag) and "docblock" in text.get_attribute_list("class"):
        holder.append(text)


def _rewrite_field(soup: BeautifulSoup, field: Tag) -> None:
    declaration = lines_of(field)
    field.name, field.string = "section", ""
    field.extend([soup.new_tag("h3", string=declaration.partition(":")[0]), listing(soup, declaration)])
    _adopt_text(field)


def _rewrite_table(table: Tag) -> None:
    """Make a table of the items of a module: name, description."""
    if table.name == "dl":
        return
    for mark in table.find_all("span", class_="stab"):
        mark.string = f" ({mark.get_text()})"
    table.name = "table"
    for row in children(table):
        row.name = "tr"
        for cell in children(row):
            cell.name = "td"


GENERATOR = Generator(
    "rustdoc",
    marks="rustdoc code-header",
    listing="body.src, body.source",
    hidden=":is(#copy-path, #toggle-all-docs, a[class=src], summary.hideme, .rightside, .out-of-band, .srclink, "
    ".test-arrow, .notable-traits, .sub-heading, .rustdoc-breadcrumbs, .tooltip, .information, .doc-anchor, .anchor, "
    ".sub-logo-container)",
    rewrite=_rewrite,
)
