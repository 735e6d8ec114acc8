"""Determines the kind of a page: text, a listing, a redirect, contents, or filled by JavaScript.

It examines the tree as the server sent it, before anything is dropped. Independent of sections.
"""

from collections.abc import Iterable, Iterator
from math import inf
from typing import NamedTuple
from urllib.parse import urljoin

from lxml import etree
from lxml.etree import _Element as Element

from pipelines.indexing.reading.generator import Generator, found
from pipelines.indexing.reading.generators import LISTINGS
from pipelines.text.phrases import read_phrases

_RESULTS = etree.XPath("//div[@id='search-results']")
_CONTENT = etree.XPath("boolean(//main or //*[@role='main'])")
# Mount points of single-page applications.
_MOUNTS = etree.XPath(
    "//body//*[@id='root' or @id='app' or @id='__next' or @id='___gatsby' or @id='__nuxt' or @id='swagger-ui' or "
    "@id='redoc' or self::app-root]"
)
_LENGTH = etree.XPath("string-length(.)")
_PHRASES = read_phrases(__name__)
_LITTLE = 200  # characters; before its script runs, an application shows only a name and a footer
_SHELL = 500  # characters of a whole page, including navigation, before its script runs
_UNSEEN = ("script", "style", "noscript", "template", "title")
_FRAMED = ("a", "aside", "button", "footer", "form", "header", "label", "nav", "svg", *_UNSEEN)
FRAME_SIZE = 300  # characters of prose around a page's own content: a slogan, a cookie notice, a line of copyright
_FRAME_SHARE = 0.01  # of the characters of a long table of contents; Python's has 0.2%
_MOST_PROSE = 3000  # characters; a page with this much prose is not a table of contents
_AT_ONCE_S = 10  # seconds; a refresh with a longer delay lets readers read the page first


class PageKind(NamedTuple):
    """The kind of a page, apart from its text.

    `listed`: it lists or redirects to other pages. `waits` and `told`: it shows so little that JavaScript may fill it;
    it appears to wait for a script, or says that it needs one.
    """

    listed: bool
    waits: bool
    told: bool

    def needs_script(self, shown: int) -> bool:
        """Return whether JavaScript fills the page, given the number of readable characters `shown` in its content."""
        return shown < _LITTLE and (self.waits or (self.told and not shown))


def kind_of(root: Element, names: frozenset[str], generators: Iterable[Generator], url: str) -> PageKind:
    """Return the kind of the page `root` at `url`, given its `generators` and `names`, the result of `names_of`."""
    listed = _is_listing(root, names, generators) or _is_redirect(root, url)
    return PageKind(listed, *_unfilled(root))


def _is_listing(root: Element, names: frozenset[str], generators: Iterable[Generator]) -> bool:
    """Return whether a page is a generator's listing: names or code without explanation.

    Listings match nearly every name and would displace the pages that explain it. The Ray docs have 245 among 3,313
    pages.
    """
    searched = _is_textless(root) and prose_size(root, FRAME_SIZE) < FRAME_SIZE
    return searched or not LISTINGS.isdisjoint(names) or any(found(g.listing, root) for g in generators)


def _is_textless(root: Element) -> bool:
    """Return whether a page is a search page or a frameset.

    Themes have the box for results on every page, outside its content.
    """
    if next(root.iter("frameset"), None) is not None:
        return True
    boxes = _RESULTS(root)
    within = (one for box in boxes for one in box.iterancestors())
    return bool(boxes) and (any(one.tag == "main" or one.get("role") == "main" for one in within) or not _CONTENT(root))


def _is_redirect(root: Element, url: str) -> bool:
    """Return whether the page at `url` redirects to another page at once, with next to no text.

    A refresh in `<noscript>` is for readers without scripts, and a page that reloads itself is a normal page.
    """
    leads = any(
        (meta.get("http-equiv") or "").strip().lower() == "refresh"
        and _leads_away(meta.get("content") or "", url)
        and next(meta.iterancestors("noscript"), None) is None
        for meta in root.iter("meta")
    )
    return leads and prose_size(root, _LITTLE) < _LITTLE


def _leads_away(content: str, url: str) -> bool:
    """Return whether a refresh loads another page at once. A different query or fragment is not another page."""
    wait, _, rest = content.replace(",", ";", 1).partition(";")
    name, _, target = rest.partition("=")
    if name.strip().lower() != "url":
        name, target = "", rest  # the target may come without "url="
    seconds = wait.strip().partition(".")[0]
    if not target.strip(" '\"\t\n") or (seconds.isdigit() and int(seconds[:9]) > _AT_ONCE_S):
        return False
    try:
        return _path(urljoin(url, target.strip(" '\"\t\n"))) != _path(url)
    except ValueError:  # not a valid URL
        return False


def _path(url: str) -> str:
    return url.partition("#")[0].partition("?")[0]


def is_contents(root: Element) -> bool:
    """Return whether the page `root` consists of links, with no more prose than a page frame."""
    if next(root.iter("a"), None) is None or (prose := prose_size(root, _MOST_PROSE)) == _MOST_PROSE:
        return False
    if prose >= max(FRAME_SIZE, _FRAME_SHARE * _LENGTH(root)):  # with its blanks, the text is only longer
        return False
    return prose < max(FRAME_SIZE, _FRAME_SHARE * sum(len(text.strip()) for text in root.itertext()))


def _size(texts: Iterable[str], most: float = inf) -> float:
    """Return the number of characters in `texts`, up to `most`, where counting stops."""
    size = 0
    for text in texts:
        size += len(text)
        if size >= most:
            return most
    return size


def _unfilled(root: Element) -> tuple[bool, bool]:
    """Return whether the page waits for a script, and whether it says that it needs one."""
    texts = (" ".join(text.split()) for text in text_outside(root, *_UNSEEN))
    if next(root.iter("script"), None) is None or _size(texts, _SHELL) == _SHELL:
        return False, False
    mounted = any(_is_waiting("".join(text_outside(mount, *_UNSEEN))) for mount in _MOUNTS(root))
    told = any("javascript" in "".join(note.itertext()).lower() for note in root.iter("noscript"))
    return mounted or _is_waiting("".join(text_outside(root, *_UNSEEN))), told


def _is_waiting(text: str) -> bool:
    words = " ".join(text.split())
    return not words or bool(_PHRASES["waiting"].fullmatch(words))


def text_outside(element: Element, *tags: str) -> Iterator[str]:
    """Yield the text of `element` in order, without the text of elements with one of `tags`."""
    walk = etree.iterwalk(element, events=("start", "end"))
    for event, inner in walk:
        if event == "end":
            if inner is not element and inner.tail:
                yield inner.tail
        elif inner.tag in tags:
            walk.skip_subtree()
        elif inner.text:
            yield inner.text


def prose_size(element: Element, most: float = inf) -> float:
    """Return the number of characters outside links and the page frame, at most `most`."""
    return _size(map(str.strip, text_outside(element, *_FRAMED)), most)
