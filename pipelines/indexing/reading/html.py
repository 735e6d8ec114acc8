"""Parses HTML into a tree of the page's own content.

Navigation, footers, buttons and permalinks are dropped. Knows where documentation generators put the content, and the
names of everything else. Knows nothing of sections. lxml is used directly: BeautifulSoup on top of it takes several
times as long for the same tree.
"""

import re
from collections.abc import Iterator
from html import unescape

from lxml import etree
from lxml.etree import _Element as Element

from pipelines.indexing.reading.text import LINE_BREAK, as_paragraph

HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")

# libxml2 compares each attribute of a tag with all others: 1,000 take 2 ms, 10,000 take 127 ms, 100,000 two minutes.
_MAX_ATTRIBUTES = 1000
_LONG_TAG = 2 * _MAX_ATTRIBUTES  # the least number of characters of that many attributes


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_DROP = _names(
    "script style noscript template nav button svg select textarea input iframe object embed canvas dialog audio "
    "video footer link meta title"
)
_REPLACED = ("br", "img", "math", "wbr")
# Classes, ids and roles of elements that are not the page's own text, exactly as generators write them.
_NOISE = _names(
    # roles
    "navigation contentinfo banner search menu menubar toolbar "
    # Sphinx and its themes
    "headerlink viewcode-link viewcode-back sphinxsidebar related prev-next-area prev-next-bottom prev-next-footer "
    "rst-footer-buttons wy-breadcrumbs bd-sidebar bd-toc bd-header-article page-toc edit-this-page tocsection "
    "copybtn linenos linenodiv lineno skip-link skip-to-content back-to-top csat-widget sd-stretched-link "
    # DocBook
    "navheader navfooter "
    # MkDocs, Docusaurus, VitePress, Hugo, GitHub
    "md-content__button md-source-file md-feedback md-source hash-link headerlink header-anchor "
    "tableOfContents theme-doc-toc-desktop theme-doc-toc-mobile theme-doc-breadcrumbs theme-edit-this-page "
    "theme-doc-footer pagination-nav theme-doc-version-badge breadcrumb breadcrumbs anchorjs-link "
    "td-heading-self-link td-page-meta mw-editsection zeroclipboard-container "
    # anywhere
    "copy-button clipboard-copy sr-only visually-hidden katex-html MathJax_Preview MathJax"
)
# Only where the page marks no main content: within main content, real text has these names as well.
_OUTSIDE = _names("sidebar header footer menu navbar nav topbar toc breadcrumb breadcrumbs")
_SIGNS = frozenset(["", "¶", "#", "🔗", "§", "⚓", "∞", "link", "permalink", "anchor"])
_NOISY = ("a", "div", "ul", "ol", "p", "td", "aside", "header", "form", "section", "details")
_NOISY_SPAN = etree.XPath(
    ".//span[contains(@class,'lineno') or contains(@class,'viewcode-link') or @class='katex-html' or "
    "contains(@class,'MathJax') or contains(@class,'sr-only') or contains(@class,'visually-hidden')]"
)
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
# Sphinx's listings: source code (viewcode), the index of names, the index of modules.
_LISTING = etree.XPath(
    "boolean(//a[contains(@class,'viewcode-back')] | //div[contains(@class,'viewcode-block')] | "
    "//div[contains(@class,'genindex-jumpbox')] | //div[contains(@class,'modindex-jumpbox')])"
)
_MAIN_SHARE = 0.15  # an element with a smaller share of the page's text is not its main content
_TEX = etree.XPath(".//*[local-name()='annotation'][@encoding='application/x-tex']")


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


def is_listing(root: Element) -> bool:
    """Return whether a page is a generator's listing: names or code without explanation.

    Listings match nearly every name and would push out the pages that explain it: in the Ray docs, 245 of 3,313 pages.
    """
    return bool(_LISTING(root))


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
    for element in (next(main.iter("h1"), None), next(root.iter("title"), None)):
        words = as_paragraph("".join(element.itertext())) if element is not None else ""
        if words:
            return words
    return ""


def language_of(root: Element) -> str:
    """Return the language that `<html lang>` declares, "" if none."""
    return as_paragraph(root.get("lang") or root.get("xml:lang") or "")[:35]


def main_content(root: Element) -> Element:
    """Return the element with the page's own content, and drop everything else from it.

    It is the body if the page marks no main content, or one with hardly any text.
    """
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
        if _size(best) > _MAIN_SHARE * size:
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
    doomed += _NOISY_SPAN(main)
    doomed += [element for element in main.iter(*_NOISY) if element is not main and _is_noise(element, noise, marked)]
    for element in doomed:
        drop_element(element)
    for element in list(main.iter(*_REPLACED)):
        _replace(element)


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
    elif element.tag == "math":
        shown = _tex(element)
    else:
        shown = ""
    element.tail = shown + (element.tail or "")
    drop_element(element)


def _tex(math: Element) -> str:
    notes = _TEX(math)
    return (notes[0].text if notes else None) or math.get("alttext") or "".join(math.itertext())


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


def empty_targets(element: Element) -> Iterator[str]:
    """Yield the ids of empty `a` and `span` elements in `element`, including itself: targets of links."""
    for target in element.iter("a", "span"):
        name = target.get("id") or target.get("name")
        indexed = target.get("class") == "indexterm" or (name or "").startswith("index-")  # generated ones
        if name and not indexed and not "".join(target.itertext()).strip():
            yield name
