"""pdoc: a class or function becomes a section with its id, its name and its signature."""

from bs4 import BeautifulSoup, Tag

from pipelines.indexing.reading.html.soup import lines_of, listing


def rewrite(soup: BeautifulSoup) -> None:
    """Turn a page into plain HTML."""
    for declaration in soup.select("[id] > div.attr"):
        if (holder := declaration.parent) and isinstance(name := declaration.find("span", class_="name"), Tag):
            holder.name = "section"
            declaration.insert_after(listing(soup, " ".join(lines_of(declaration).split())))
            declaration.name, declaration.attrs, declaration.string = "h3", {}, name.get_text()
