"""Passes a tree to rewriters that use BeautifulSoup, and converts the result back.

The soup is built from lxml's tree, so all limits of parsing apply to it. Building one takes many times as long as
parsing, so parts that rewriters never need are left out.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from bs4 import BeautifulSoup, Tag
from lxml import etree
from lxml.etree import _Element as Element

_LEFT_OUT = ("nav", "style")  # never part of a page's text; rustdoc's menu is half of some pages
_UNSAFE = dict.fromkeys((*range(9), 11, 12, *range(14, 32), 0xFFFE, 0xFFFF))  # not allowed in lxml attributes


def rewritten(root: Element, rewriters: Sequence[Callable[[BeautifulSoup], None]]) -> Element:
    """Return the page `root` after `rewriters` have changed its soup."""
    etree.strip_elements(root, *_LEFT_OUT, with_tail=False)
    markup = etree.tostring(root, encoding="unicode", method="html")
    soup = BeautifulSoup(markup, "lxml", preserve_whitespace_tags={"html"})
    for rewrite in rewriters:
        rewrite(soup)
    tree = soup.find("html")
    return _to_element(tree) if isinstance(tree, Tag) else root


def _to_element(tag: Tag, parent: Element | None = None) -> Element:
    attributes = {name: _plain(value) for name, value in tag.attrs.items()}
    if parent is None:
        element = etree.HTMLParser().makeelement(tag.name, attributes)
    else:
        element = etree.SubElement(parent, tag.name, attributes)
    last = None
    for child in tag.contents:
        if isinstance(child, Tag):
            last = _to_element(child, element)
        elif last is None:
            element.text = (element.text or "") + str(child)
        else:
            last.tail = (last.tail or "") + str(child)
    return element


def _plain(value: str | list[str]) -> str:
    return (" ".join(value) if isinstance(value, list) else value).translate(_UNSAFE)


# ---------------------------------------------------------------------------------------------- helpers for rewriters


def by_class(soup: BeautifulSoup) -> Mapping[str, list[Tag]]:
    """Return the elements with each class. One pass replaces a search per selector, which is slow on large pages."""
    found = defaultdict[str, list[Tag]](list)
    for tag in soup.find_all(True):
        for name in tag.attrs.get("class", ()):
            found[name].append(tag)
    return found


def children(tag: Tag) -> list[Tag]:
    """Return the child elements of `tag`."""
    return [child for child in tag.contents if isinstance(child, Tag)]


def listing(soup: BeautifulSoup, text: str) -> Tag:
    """Return a new `<pre>` with `text`."""
    return soup.new_tag("pre", string=text)


def become_listing(tag: Tag, text: str) -> None:
    """Turn `tag` into a `<pre>` with `text`."""
    tag.name, tag.attrs, tag.string = "pre", {}, text


def lines_of(tag: Tag) -> str:
    """Return the text of a signature as a reader sees it: line breaks and inner boxes begin a line."""
    for inner in tag.find_all(["br", "div"]):
        inner.insert_before("\n")
        inner.insert_after("\n")
    lines = tag.get_text().replace("\xa0", " ").split("\n")
    return "\n".join(line.rstrip() for line in lines if line.strip()).strip()
