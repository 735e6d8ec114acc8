"""Finds the page's own content in its tree, without navigation, footers, buttons and permalinks.

Knows where documentation generators put the content, and the names of everything else. Knows nothing of sections.
"""

import re
from itertools import islice

from lxml import etree
from lxml.etree import _Element as Element

from pipelines.indexing.reading.html import FRAME_SIZE, HEADINGS, drop_element, prose_size
from pipelines.indexing.reading.markup import rewrite
from pipelines.indexing.reading.text import LINE_BREAK, as_paragraph
from pipelines.text.cleaning import clean_page


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_DROP = _names(
    "script style noscript template nav button svg select textarea input iframe object embed canvas dialog audio "
    "video footer link meta title"
)
_REPLACED = ("br", "img", "math")
# Classes, ids and roles of elements that are not the page's own text, exactly as generators write them.
_NOISE = _names(
    # roles
    "navigation contentinfo banner search menu menubar toolbar "
    # Sphinx and its themes
    "headerlink viewcode-link viewcode-back sphinxsidebar related prev-next-area prev-next-bottom prev-next-footer "
    "rst-footer-buttons wy-breadcrumbs bd-sidebar bd-toc bd-header-article page-toc edit-this-page tocsection "
    "copybtn linenos linenodiv lineno skip-link skip-to-content back-to-top csat-widget sd-stretched-link "
    # DocBook, Javadoc, TypeDoc, mkdocstrings, YARD
    "navheader navfooter nav-panel topNav subNav bottomNav skipNav legalCopy tsd-breadcrumb tsd-page-toolbar "
    "tsd-index-group tsd-sources tsd-navigation col-sidebar mkdocstrings-source source_code "
    "summary_toggle inheritanceTree "
    # MkDocs, Docusaurus, VitePress, Hugo, GitHub
    "md-content__button md-source-file md-feedback md-source hash-link headerlink header-anchor "
    "tableOfContents theme-doc-toc-desktop theme-doc-toc-mobile theme-doc-breadcrumbs theme-edit-this-page "
    "theme-doc-footer pagination-nav theme-doc-version-badge breadcrumb breadcrumbs anchorjs-link "
    "td-heading-self-link td-page-meta line-numbers-wrapper footnote-backref fn-backref mw-editsection "
    "zeroclipboard-container "
    # anywhere
    "copy-button clipboard-copy sr-only visually-hidden katex-html MathJax_Preview MathJax"
)
# Only where the page marks no main content: within main content, real text has these names as well.
_OUTSIDE = _names("sidebar header footer menu navbar nav topbar toc breadcrumb breadcrumbs")
_SIGNS = frozenset(["", "¶", "#", "🔗", "§", "⚓", "∞", "link", "permalink", "anchor"])
_NOISY = ("a", "div", "ul", "ol", "p", "table", "td", "aside", "header", "form", "section", "details")
_NOISY_PARTS = etree.XPath(
    ".//label[contains(@class,'view-source')] | .//dt[@class='tag-source'] | .//dd[@class='tag-source'] | "
    ".//div[@class='pdoc-code codehilite'] | "
    ".//span[contains(@class,'lineno') or contains(@class,'viewcode-link') or @class='katex-html' or "
    "contains(@class,'MathJax') or contains(@class,'sr-only') or contains(@class,'visually-hidden')]"
)
# What themes without names of their own (GitBook, sites of utility classes) show below the text.
_ENDING = re.compile(
    r"(was this .{0,20}helpful\W*|(page )?last (updated|modified|edited)\b.{0,60}|edit (this page|on github).{0,20}|"
    r"generated (by|on) .{0,80})",
    re.IGNORECASE,
)
_PAGER = re.compile(r"(previous|prev|next|←|→)", re.IGNORECASE)
_LAST, _LAST_PARTS = 40, 12  # elements in which the ending is looked for, and the most that one consists of
_MAIN = tuple(
    etree.XPath(path)
    for path in (
        "//*[@role='main'] | //main",
        "//article",
        "//div[contains(concat(' ',@class,' '),' markdown-body ')]",
        "//div[@class='body' or @class='rst-content' or @class='document' or @class='bodywrapper']",
        "//*[@id='content' or @id='main' or @id='main-content']",
    )
)

_MAIN_SHARE = 0.15  # an element with a smaller share of the page's text is not its main content
_FOOTNOTES = etree.XPath(".//sup/a[starts-with(@href,'#fn') or starts-with(@href,'#user-content-fn')]")
_TEX = etree.XPath(".//*[local-name()='annotation'][@encoding='application/x-tex']")


def main_content(root: Element, names: frozenset[str]) -> Element:
    """Return the element with the page's own content, and drop everything else from it. `names` are `names_of(root)`.

    It is the body if the page marks no main content, or one with hardly any text.
    """
    rewrite(root, names)
    body = root.find("body")
    body = root if body is None else body
    main, marked = _find_main(root, body)
    _drop_noise(main, marked)
    return main


def _find_main(root: Element, body: Element) -> tuple[Element, bool]:
    size = _size(body)
    for path in _MAIN:
        found = [element for element in path(root) if element is not root]
        if not found or (len(found) > 1 and path is _MAIN[1]):
            continue
        best = max(found, key=_size)
        if _size(best) > _MAIN_SHARE * size or prose_size(body) - prose_size(best) < FRAME_SIZE:
            return _article(best), True
    return body, False


def _article(main: Element) -> Element:
    """Return the only article of `main` if it holds most of its text (themes put sidebars beside it), else `main`."""
    articles = list(main.iter("article"))
    return articles[0] if len(articles) == 1 and _size(articles[0]) > 0.5 * _size(main) else main


def _size(element: Element) -> int:
    """Return the number of characters outside scripts, styles and navigation."""
    script = sum(len(text) for dropped in element.iter("script", "style", "nav") for text in dropped.itertext())
    return sum(map(len, element.itertext())) - script


def _drop_noise(main: Element, marked: bool) -> None:
    noise = _NOISE if marked else _NOISE | _OUTSIDE
    doomed = [element for element in main.iter(*_DROP) if not _is_kept(element)]
    doomed += _NOISY_PARTS(main)
    doomed += [element for element in main.iter(*_NOISY) if element is not main and _is_noise(element, noise, marked)]
    for element in doomed:
        drop_element(element)
    for mark in _FOOTNOTES(main):
        mark.text = f" [{as_paragraph(''.join(mark.itertext()))}]"
        del mark[:]
    for element in list(main.iter(*_REPLACED)):
        _replace(element)
    for element in list(main.iter("p", "div"))[:-_LAST:-1]:
        if _is_ending(element):
            drop_element(element)


def _is_ending(element: Element) -> bool:
    """Return whether `element` is a line below the text: when it changed, whether it helped, the next page."""
    if next(islice(element.iter(), _LAST_PARTS, None), None) is not None:
        return False
    words = as_paragraph("".join(element.itertext()))
    if _PAGER.match(words):
        linked = " ".join("".join(link.itertext()) for link in element.iter("a"))
        return "".join(linked.split()) == "".join(words.split())
    return bool(_ENDING.fullmatch(words))


def _is_kept(element: Element) -> bool:
    """Return whether a script holds a formula, or a button the words of a heading."""
    if element.tag == "script":
        return (element.get("type") or "").startswith("math/tex")
    parent = element.getparent()
    return element.tag == "button" and parent is not None and parent.tag in HEADINGS


def _is_noise(element: Element, noise: frozenset[str], marked: bool) -> bool:
    if element.tag == "a":
        return _is_permalink(element)
    if element.tag == "header" and not marked and next(element.iter("h1"), None) is None:
        return True
    names = element.get("class", "").split()
    return not noise.isdisjoint((*names, element.get("id", ""), element.get("role", "")))


def _is_permalink(link: Element) -> bool:
    """Return whether `link` is a permalink sign; its heading gets the id it points to, if it has none of its own."""
    href = link.get("href", "")
    if _NOISE.isdisjoint(link.get("class", "").split()) and not _is_sign(link, href):
        return False
    if href.startswith("#") and len(href) > 1:
        _lend_id(link, href[1:])
    return True


def _is_sign(link: Element, href: str) -> bool:
    if not href.startswith("#") or next(link.iter("img"), None) is not None:
        return False
    return as_paragraph("".join(link.itertext())).lower() in _SIGNS


def _lend_id(link: Element, anchor: str) -> None:
    holders = [link.getparent(), link.getprevious(), link.getnext()]
    for holder in holders:
        if holder is not None and holder.tag in HEADINGS and not holder.get("id"):
            holder.set("id", anchor)
            return


def _replace(element: Element) -> None:
    """Replace an element without text of its own by what a reader sees there."""
    if element.tag == "br":
        shown = LINE_BREAK
    elif element.tag == "img":
        shown = f" {element.get('alt') or ''} "
    else:
        shown = _tex(element)
    element.tail = clean_page(shown) + (element.tail or "")  # a text may hold no control that an attribute may
    drop_element(element)


def _tex(math: Element) -> str:
    notes = _TEX(math)
    return (notes[0].text if notes else None) or math.get("alttext") or "".join(math.itertext())
