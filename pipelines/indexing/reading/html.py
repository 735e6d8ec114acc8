"""Parses HTML into a tree, safely for hostile pages.

Knows a page as a whole: its title, its language, whether it is a listing. Knows nothing of sections. lxml is used
directly: BeautifulSoup on top of it takes several times as long for the same tree.
"""

import re
from collections.abc import Iterator
from html import unescape
from urllib.parse import urlsplit

from lxml import etree
from lxml.etree import _Element as Element

from pipelines.indexing.reading.text import as_paragraph

HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")

# libxml2 compares each attribute of a tag with all others: 1,000 take 2 ms, 10,000 take 127 ms, 100,000 two minutes.
_MAX_ATTRIBUTES = 1000
_LONG_TAG = 2 * _MAX_ATTRIBUTES  # the least number of characters of that many attributes


# Listings: source code (Sphinx's viewcode, rustdoc, Doxygen), and indexes of names (Sphinx, DocBook, Javadoc, Doxygen).
_LISTINGS = frozenset((
    *("viewcode-back", "viewcode-block", "genindex-jumpbox", "modindex-jumpbox", "indextable", "indexdiv"),
    *("classindex", "index-page", "tree-page", "package-tree-page"),
))  # fmt: skip
_DOXYGEN_LISTING = etree.XPath(
    "boolean(//div[@class='fragment']/div[@class='line']/a[@id='l00001' or @name='l00001'] | "
    "//div[@class='contents']/div[@class='textblock'][starts-with(normalize-space(.),'Here is a list of all')])"
)
_SEARCH = etree.XPath("boolean(//div[@id='search-results'])")  # Sphinx's page to search at
_NAMES = etree.XPath("//@class | //@role | //input/@type", smart_strings=False)
# Where single-page applications are drawn.
_MOUNTS = etree.XPath(
    "//body//*[@id='root' or @id='app' or @id='__next' or @id='___gatsby' or @id='__nuxt' or @id='swagger-ui' or "
    "@id='redoc' or self::app-root]"
)
_WAITING = re.compile(
    r"(loading|please wait|initiali[sz]ing)( the| your)?( page| app(lication)?| content| doc(s|umentation))?\W*|"
    r".{0,60}\b(enable|activate|requires|needs|without) javascript\b.{0,60}",
    re.IGNORECASE,
)
_SCRIPT_MARKS = (
    *("<noscript", "<app-root", "enable javascript", "activate javascript", "requires javascript", "needs javascript"),
    *(
        "without javascript",
        'id="root"',
        "id='root'",
        "id=root",
        "__next",
        "___gatsby",
        "__nuxt",
        "swagger-ui",
        "redoc",
        '"app"',
        "'app'",
        "=app",
    ),
    *(">loading", "> loading", ">\nloading", "please wait", "initiali"),
)  # one of them stands in every page that a script fills: looking for them takes a tenth of the time of parsing
_LITTLE = 200  # characters; a page of an application shows a name and a footer before its script has run
_SHELL = 500  # characters of a whole page, with its navigation, before its script has run
_FRAMED = (
    *("a", "aside", "button", "footer", "form", "header", "label", "nav", "svg"),
    *("script", "style", "noscript", "template", "title"),
)
FRAME_SIZE = 300  # characters of prose around a page's own content: a slogan, a cookie notice, a line of copyright
_FRAME_SHARE = 0.01  # of the characters of a long table of contents: Python's has 0.2 %
# Indexes written by programs: of 5,000 lists on five sites, those of at least so many links that are as much as a name
# or two beside each list pages; shorter ones do where they are hardly anything but links.
_INDEX_LINKS, _INDEX_SHARE = 100, 0.4
_CONTENTS_CHARACTERS, _CONTENTS_SHARE = 1500, 0.9  # as many as a chunk holds
_SENTENCES = 0.05  # a link
_AWAY = 0.1  # of the links: a list of links to other sites is what somebody recommends
_SENTENCE = re.compile(r"[^\s.!?]{2}[.!?](?=\s|$)|[。！？]")
_UNSEEN = ("script", "style", "noscript", "template", "title")


class TooDeep(ValueError):
    """Tags are nested deeper than libxml2's 256 levels, where it silently drops text."""


def parse_html(text: str) -> Element | None:
    """Return the tree of an HTML page, None if it is empty. Raises TooDeep."""
    parser = etree.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True, no_network=True)
    try:
        root = etree.fromstring(_limit_attributes(text).encode("utf-8", "ignore"), parser)
    except etree.XMLSyntaxError:
        return None
    if any("Excessive depth" in entry.message for entry in parser.error_log):
        raise TooDeep
    return root


def names_of(root: Element) -> frozenset[str]:
    """Return the class names and roles of all elements and the types of inputs: they tell generators apart."""
    return frozenset(" ".join(_NAMES(root)).split())


def is_listing(root: Element, names: frozenset[str]) -> bool:
    """Return whether a page is a generator's listing: names or code without explanation.

    Listings match nearly every name and would push out the pages that explain it: in the Ray docs, 245 of 3,313 pages.
    """
    if not _LISTINGS.isdisjoint(names):
        return True
    if "rustdoc" in names:
        return _is_rust_source(root)
    return bool(_SEARCH(root)) or (not names.isdisjoint(("fragment", "textblock")) and bool(_DOXYGEN_LISTING(root)))


def _is_rust_source(root: Element) -> bool:
    body = root.find("body")
    return body is not None and not {"src", "source"}.isdisjoint((body.get("class") or "").split())


def needs_javascript(text: str, shown: int) -> bool:
    """Return whether a script fills the page `text`, of whose own content `shown` characters can be read."""
    root = parse_html(text) if shown < _LITTLE and (not shown or _has_marks(text.lower())) else None
    if root is None or next(root.iter("script"), None) is None:
        return False
    told = any("javascript" in "".join(note.itertext()).lower() for note in root.iter("noscript"))
    etree.strip_elements(root, *_UNSEEN, with_tail=False)
    seen = as_paragraph("".join(root.itertext()))
    mounted = any(_is_waiting("".join(mount.itertext())) for mount in _MOUNTS(root))
    return len(seen) < _SHELL and (mounted or _is_waiting(seen) or (told and not shown))


def _has_marks(text: str) -> bool:
    return any(mark in text for mark in _SCRIPT_MARKS)


def is_redirect(root: Element) -> bool:
    """Return whether the page sends its reader to another one at once."""
    return any(
        (meta.get("http-equiv") or "").lower() == "refresh" and "url=" in (meta.get("content") or "").lower()
        for meta in root.iter("meta")
    )


def _is_waiting(text: str) -> bool:
    words = as_paragraph(text)
    return not words or bool(_WAITING.fullmatch(words))


def holds_words(element: Element) -> bool:
    """Return whether `element` has any text."""
    return any(map(str.strip, element.itertext()))


def is_contents(text: str) -> bool:
    """Return whether the page `text` is a table of contents: links, and no more prose than a page's frame has."""
    root = parse_html(text)
    if root is None or next(root.iter("a"), None) is None:
        return False
    return prose_size(root) < max(FRAME_SIZE, _FRAME_SHARE * _characters(root))


def is_index(items: Element, site: str) -> bool:
    """Return whether a list is an index of the pages of `site`: long, most of it links, and no sentences."""
    links = [link for link in items.iter("a") if link.get("href")]
    if len(links) < _INDEX_LINKS and sum(map(len, items.itertext())) < _CONTENTS_CHARACTERS:
        return False
    share = sum(map(letters, links)) / (letters(items) or 1)
    if share < (_INDEX_SHARE if len(links) >= _INDEX_LINKS else _CONTENTS_SHARE):
        return False
    if sum(leads_away(link.get("href") or "", site) for link in links) > _AWAY * len(links):
        return False
    between = " ".join("".join(_unlinked(items)).split())
    return len(_SENTENCE.findall(between)) <= _SENTENCES * len(links)


def _unlinked(element: Element) -> Iterator[str]:
    """Yield the text of `element` that is no link."""
    if element.tag != "a":
        yield element.text or ""
        for child in element:
            yield from _unlinked(child)
            yield child.tail or ""


def leads_away(href: str, site: str) -> bool:
    """Return whether a link leads to another site, or nowhere."""
    return not href or (href.startswith(("http:", "https:")) and urlsplit(href).netloc != site)


def letters(element: Element) -> int:
    """Return the number of letters in `element`."""
    return sum(map(str.isalpha, "".join(element.itertext())))


def prose_size(element: Element) -> int:
    """Return the number of characters that are neither a link nor part of a page's frame."""
    framed = (inner for inner in element.iter(*_FRAMED) if next(inner.iterancestors(*_FRAMED), None) is None)
    return _characters(element) - sum(map(_characters, framed))


def _characters(element: Element) -> int:
    return sum(len(text.strip()) for text in element.itertext())


def _limit_attributes(text: str) -> str:
    """Return `text` without the attributes of tags that have more than _MAX_ATTRIBUTES."""
    parts = text.split("<")
    if max(map(len, parts)) <= _LONG_TAG:
        return text
    return "<".join(part if len(part) <= _LONG_TAG else _cut_attributes(part) for part in parts)


def _cut_attributes(part: str) -> str:
    """Return `part`, the text after a "<", without the tag's attributes if there are too many."""
    quoted = re.match(r"""(?:[^>"']|"[^"]*"|'[^']*')*+""", part)
    end = quoted.end() if quoted and part[quoted.end() : quoted.end() + 1] == ">" else part.find(">")
    end = len(part) if end < 0 else end
    words = re.sub(r""""[^"]*"|'[^']*'""", "", part[:end]).split(None, _MAX_ATTRIBUTES)
    return words[0] + part[end:] if len(words) > _MAX_ATTRIBUTES else part


def strip_tags(text: str) -> str:
    """Return the text between tags in linear time: for pages that can't be parsed."""
    kept, skipping = [], ""
    for part in text.split("<"):
        tag, sign, rest = part.partition(">")
        name = tag.split(None, 1)[0].lower() if tag.strip() else ""
        if skipping:
            skipping = "" if name == "/" + skipping else skipping
        elif name in ("script", "style"):
            skipping = name
        if not skipping:
            kept.append(rest if sign else "")
    return unescape("\n".join(kept))


def title_of(root: Element, main: Element) -> str:
    """Return the page's first h1, else its <title>, else ""."""
    heading = next(main.iter("h1"), None)
    return _words(heading) or label_of(root)


def label_of(root: Element) -> str:
    """Return the page's <title>, "" if it has none."""
    return _words(next(root.iter("title"), None))


def _words(element: Element | None) -> str:
    return as_paragraph("".join(element.itertext())) if element is not None else ""


def language_of(root: Element) -> str:
    """Return the language that `<html lang>` declares, "" if none."""
    return as_paragraph(root.get("lang") or root.get("xml:lang") or "")[:35]


def drop_element(element: Element) -> None:
    """Remove `element` from its tree, but keep the text after it."""
    parent = element.getparent()
    if parent is None:
        return
    if element.tail:
        before = element.getprevious()
        if before is None:
            parent.text = (parent.text or "") + element.tail
        else:
            before.tail = (before.tail or "") + element.tail
    parent.remove(element)
