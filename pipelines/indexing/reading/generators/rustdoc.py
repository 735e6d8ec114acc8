"""rustdoc: an item becomes a section with its id, name, signature as code, and first version.

The id and the signature are in the summary of a `<details>`, and the text follows the summary. An implementation
without text becomes a line.
"""

from bs4 import BeautifulSoup, Tag

from pipelines.indexing.reading.html.soup import become_listing, by_class, children, lines_of, listing

_NAMES = ["fn", "fnname", "constant", "associatedtype", "type"]  # classes of the link with an item's name
_AT_RIGHT = ["rightside", "out-of-band", "sub-heading"]  # versions and source links at the right edge


def rewrite(soup: BeautifulSoup) -> None:
    """Turn a page into plain HTML."""
    tags = by_class(soup)
    for frame in soup.find_all(id="main-content"):
        frame.name = "div"
    for clause in tags["fmt-newline"]:  # a style sheet puts the clause on separate lines
        clause.insert_before("\n")
        clause.insert_after("\n")
    for header in tags["code-header"]:
        _rewrite_item(soup, header)
    for title in tags["main-heading"]:
        title.extend(_versions(soup, title))
    for box in (box for name in _AT_RIGHT for box in tags[name]):
        box.decompose()
    for field in tags["structfield"]:
        declaration = lines_of(field)
        field.name, field.string = "section", ""
        field.extend([soup.new_tag("h3", string=declaration.partition(":")[0]), listing(soup, declaration)])
        _adopt_text(field)
    for table in (table for table in tags["item-table"] if table.name != "dl"):
        table.name = "table"
        for mark in table.find_all("span", class_="stab"):
            mark.string = f" ({mark.get_text()})"
        for row in children(table):
            row.name = "tr"
            for cell in children(row):
                cell.name = "td"


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
        header.insert_after(listing(soup, signature), *_versions(soup, holder))
        header.attrs, header.string = {}, name.get_text()
    if details is None:
        holder.name = "section"
        _adopt_text(holder)
    else:
        details.name, holder.name, summary.name = "section", "div", "div"
        details["id"] = holder.attrs.pop("id")
    for text in (details or holder).find_all("div", class_="docblock", recursive=False):
        for heading in text.find_all(["h2", "h3", "h4", "h5", "h6"]):  # Examples, Panics: an item is one section
            heading.name, heading.string = "p", f"{heading.get_text().strip()}:"


def _versions(soup: BeautifulSoup, holder: Tag) -> list[Tag]:
    """Return a line with the version that introduced the item in `holder`, if it is given."""
    since = holder.find(class_="since")
    if not isinstance(since, Tag):
        return []
    line = soup.new_tag("p", string="Since " if since.get_text()[:1].isdigit() else "")
    line.extend(list(since.contents))
    return [line]


def _adopt_text(holder: Tag) -> None:
    text = holder.find_next_sibling()
    if isinstance(text, Tag) and "docblock" in text.get_attribute_list("class"):
        holder.append(text)
