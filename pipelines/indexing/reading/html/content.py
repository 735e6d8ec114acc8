"""Finds a page's own content, without navigation, footers, buttons and permalinks.

Generator-specific markup is converted to plain HTML first. Independent of sections.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import islice
from urllib.parse import urlsplit

from lxml import etree
from lxml.etree import _Element as Element

from pipelines.indexing.reading.generator import Generator, found
from pipelines.indexing.reading.generators import BOXES, GENERATORS, NOISE
from pipelines.indexing.reading.html.elements import HEADINGS, TEXTS
from pipelines.indexing.reading.html.frames import contents_of, drop_pagers, drop_tools, linked_share, menus_of
from pipelines.indexing.reading.html.inline import IN_PARAGRAPH, is_inline
from pipelines.indexing.reading.html.mend import mend_code_tables, mend_entries, mend_grids, mend_headings
from pipelines.indexing.reading.html.page_kind import FRAME_SIZE, prose_size
from pipelines.indexing.reading.html.shown import drop, show, show_controls
from pipelines.indexing.reading.html.signatures import mend_signatures
from pipelines.indexing.reading.html.soup import rewritten
from pipelines.indexing.reading.html.tabs import label_tabs
from pipelines.indexing.reading.text import as_paragraph
from pipelines.text.phrases import read_names, read_phrases

_NAMES = read_names(__name__)
_NOISE = NOISE | _NAMES["noise"]
_OUTSIDE = _NOISE | _NAMES["outside"]
_SIGNS = frozenset(["", "¶", "#", "🔗", "§", "⚓", "∞", "link", "permalink", "anchor"])
_NOISY = ("a", "div", "ul", "ol", "p", "table", "td", "aside", "header", "form", "section", "details")
_NOISY_PARTS = ("lineno", "MathJax", "sr-only", "visually-hidden")  # parts of a span's class names
_KATEX = "katex-html"
_PHRASES = read_phrases(__name__)
_LAST, _LAST_PARTS = 40, 12  # last elements to check for endings, and the most elements inside an ending
_ARTICLES = "article"
# A sidebar is a remark if most of it is prose, next to a paragraph; a line of characters is not a logo or a slogan.
_REMARK_SHARE, _LEAST_PROSE = 0.6, 40
_NEAR = 10  # elements before and after a sidebar that may be a paragraph
_MENU = 0.3  # share of linked letters in a box whose class says that it is a menu
_MAIN = (
    "[role=main], main",
    _ARTICLES,
    *(generator.main for generator in GENERATORS if generator.main),
    "#content, #main, #main-content",
)
_MAIN_SHARE = 0.15  # an element with a smaller share of the page's text is not its main content
_LENGTH = etree.XPath("string-length(.)")


def main_content(
    root: Element, url: str, names: frozenset[str], generators: Sequence[Generator], *, listed: bool
) -> Element:
    """Return the element with the own content of the page at `url`, and drop everything else from it.

    `names` are `names_of(root)`. The content is the element selected by the last of `generators`, the site itself, else
    the marked main content. It is the body if the page marks none, or one with hardly any text. A `listed` page has no
    text to rewrite.
    """
    root = _plain_html(root, generators, names, listed)
    main, marked = _own_main(root, generators[-1]) or _find_main(root, next(root.iter("body"), root))
    if listed:
        etree.strip_elements(main, "pre", with_tail=False)  # such a page has only a title; its code may be long
    show_controls(main, names)
    _drop_noise(main, names, marked)
    _drop_frames(main, url, marked)
    show(main, names)
    _drop_endings(main)
    return main


def _plain_html(root: Element, generators: Sequence[Generator], names: frozenset[str], listed: bool) -> Element:
    """Return the page as plain HTML: without menus and hidden parts, with sections, boxes, tables, tab labels."""
    for generator in generators:
        drop(root, found(generator.hidden, root))
        for box in found(generator.boxed, root):
            box.tag = "div"
            box.set("class", f"{box.get('class', '')} {min(BOXES)}")
    _drop_menus(root, names)
    rewriters = [generator.rewrite for generator in generators if generator.rewrite and generator.rewrites(root)]
    if rewriters and not listed:
        root = rewritten(root, rewriters)
    etree.strip_tags(root, "wbr")  # libxml2 treats the text after it as its content
    mend_headings(root)
    mend_code_tables(root)
    mend_signatures(root)
    mend_entries(root)
    if not names.isdisjoint(("table", "grid")):
        mend_grids(root)
    if not names.isdisjoint(("tablist", "radio")):
        label_tabs(root)
    return root


def _drop_menus(root: Element, names: frozenset[str]) -> None:
    """Drop boxes that are menus by a class name and their links. With a heading, such a box may be the page."""
    named = {name for name in names if name.rpartition("-")[2] in _NAMES["menus"]}
    if named:
        boxes = [box for box in root.iter(*_NOISY) if not named.isdisjoint(box.get("class", "").split())]
        doomed = [box for box in boxes if linked_share(box) > _MENU and next(box.iter(*HEADINGS), None) is None]
        drop(root, doomed)


def _own_main(root: Element, own: Generator) -> tuple[Element, bool] | None:
    """Return the site's own content, selected by its settings, in one element; None if nothing matches."""
    marked = dict.fromkeys(found(own.main, root))
    outer = [element for element in marked if marked.keys().isdisjoint(element.iterancestors())]
    if len(outer) < 2:
        return (outer[0], True) if outer else None
    main = etree.SubElement(root, "div")
    for element in outer:
        element.tail = None
        main.append(element)
    return main, True


def _find_main(root: Element, body: Element) -> tuple[Element, bool]:
    least = _MAIN_SHARE * _size(body)
    for selector in _MAIN:
        marked = [element for element in found(selector, root) if element is not root]
        if not marked or (len(marked) > 1 and selector is _ARTICLES):
            continue
        best = max(marked, key=_size)
        if _size(best) > least or prose_size(body) - prose_size(best) < FRAME_SIZE:
            return _article(best), True
    return body, False


def _article(main: Element) -> Element:
    """Return the only article of `main` if it has most of its text (themes add sidebars next to it), else `main`."""
    articles = list(main.iter("article"))
    return articles[0] if len(articles) == 1 and _size(articles[0]) > 0.5 * _size(main) else main


def _size(element: Element) -> int:
    """Return the number of characters outside scripts, styles and navigation."""
    return int(_LENGTH(element) - sum(map(_LENGTH, element.iter("script", "style", "nav"))))


def _drop_noise(main: Element, names: frozenset[str], marked: bool) -> None:
    noise = _NOISE if marked else _OUTSIDE
    doomed = [element for element in main.iter(*_NAMES["dropped"]) if not _is_kept(element)]
    if any(map(_is_noisy_part, names)):
        doomed += [span for span in main.iterdescendants("span") if _is_noisy_part(span.get("class") or "")]
    boxes = [element for element in main.iter(*_NOISY) if element is not main and _is_noise(element, noise, marked)]
    # A box with the title and most of the text is the page itself: its end tag is missing or misplaced.
    doomed += [box for box in boxes if marked or box.find(".//h1") is None or 2 * prose_size(box) < prose_size(main)]
    drop(main, doomed)


def _drop_frames(main: Element, url: str, marked: bool) -> None:
    """Drop tables of contents of the page and links to sources; also menus if no main content is marked."""
    drop_tools(main)
    drop_pagers(main)
    drop(main, contents_of(main, urlsplit(url).path.rpartition("/")[2]))
    if not marked:
        drop(main, menus_of(main))


def _drop_endings(main: Element) -> None:
    for element in list(main.iter("p", "div"))[:-_LAST:-1]:
        if _is_ending(element):
            drop(main, [element])


def _is_ending(element: Element) -> bool:
    """Return whether `element` is a line below the text: when it changed, whether it helped, the next page."""
    if next(islice(element.iter(), _LAST_PARTS, None), None) is not None:
        return False
    words = as_paragraph("".join(element.itertext()))
    if _PHRASES["pager"].match(words):
        linked = " ".join("".join(link.itertext()) for link in element.iter("a"))
        return "".join(linked.split()) == "".join(words.split())
    return bool(_PHRASES["ending"].fullmatch(words))


def _is_kept(element: Element) -> bool:
    """Return whether a script contains a formula, or a button the words of a heading."""
    if element.tag == "script":
        return (element.get("type") or "").startswith("math/tex")
    parent = element.getparent()
    return element.tag == "button" and parent is not None and parent.tag in HEADINGS


@lru_cache(1 << 12)  # pages of a site repeat their class names
def _is_noisy_part(names: str) -> bool:
    return names == _KATEX or any(part in names for part in _NOISY_PARTS)


def _is_noise(element: Element, noise: frozenset[str], marked: bool) -> bool:
    if element.tag == "a":
        return _is_permalink(element)
    if element.tag == "header" and not marked and next(element.iter("h1"), None) is None:
        return True
    names = element.get("class", "").split()
    if not marked and "sidebar" in names and _is_remark(element):
        return False
    # A section's id comes from its heading, which may be "Search" or "Menu".
    headed = marked and (element.tag == "section" or "section" in names) and any(e.tag in HEADINGS for e in element)
    return not noise.isdisjoint((*names, "" if headed else element.get("id", ""), element.get("role", "")))


def _is_remark(sidebar: Element) -> bool:
    """Return whether a sidebar is a remark next to the text of a book: prose with a paragraph nearby."""
    if prose_size(sidebar) <= _size(sidebar) * _REMARK_SHARE:
        return False
    around = (*islice(sidebar.itersiblings(), _NEAR), *islice(sidebar.itersiblings(preceding=True), _NEAR))
    return any(_is_text(one) and prose_size(one) > _LEAST_PROSE for one in around)


def _is_text(element: Element) -> bool:
    return element.tag in TEXTS or (element.tag == "div" and is_inline(element, IN_PARAGRAPH - {"div"}))


def _is_permalink(link: Element) -> bool:
    """Return whether `link` is a permalink. A heading without an id gets the id that its permalink points to."""
    href = link.get("href", "")
    if _NOISE.isdisjoint(link.get("class", "").split()) and not _is_sign(link, href):
        return False
    if href.startswith("#") and len(href) > 1:
        _lend_id(link, href[1:])
    return True


def _is_sign(link: Element, href: str) -> bool:
    if not href.startswith("#") or next(link.iter("img"), None) is not None:
        return False
    return " ".join("".join(link.itertext()).split()).lower() in _SIGNS


def _lend_id(link: Element, anchor: str) -> None:
    around = next(link.iterancestors(*HEADINGS), None)
    for holder in (around, link.getprevious(), link.getnext()):
        if holder is not None and holder.tag in HEADINGS and not holder.get("id"):
            holder.set("id", anchor)
            return
