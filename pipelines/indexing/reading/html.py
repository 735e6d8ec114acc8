"""HTML becomes a tree of a page's own content, without navigation, footers, buttons and permalink signs.

Knows where documentation generators put their content and what they call the rest; knows nothing of sections.
lxml is used directly: BeautifulSoup on top of it takes several times as long for the same tree.
"""

import re
from collections.abc import Iterator
from html import unescape

from lxml import etree
from lxml.etree import _Element as Element

from pipelines.indexing.reading.text import LINE_BREAK, paragraph

HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")

# libxml2 compares each attribute of a tag with all others: 1,000 take 2 ms, 10,000 take 127 ms, 100,000 two minutes.
_MAX_ATTRIBUTES = 1000
_LONG_TAG = 2 * _MAX_ATTRIBUTES  # characters that so many attributes need at least


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_DROP = _names(
    "script style noscript template nav button svg select textarea input iframe object embed canvas dialog audio "
    "video footer link meta title"
)
_REPLACED = ("br", "img", "math", "wbr")
# Classes, ids and roles of what is not the page's own text, each exactly as a generator writes it.
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
# Only where the page marks no main content: inside it these names are also given to real text.
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
# Sphinx's pages that list and do not tell: source code (viewcode), the index of names, the index of modules.
_LISTING = etree.XPath(
    "boolean(//a[contains(@class,'viewcode-back')] | //div[contains(@class,'viewcode-block')] | "
    "//div[contains(@class,'genindex-jumpbox')] | //div[contains(@class,'modindex-jumpbox')])"
)
_MAIN_SHARE = 0.15  # a main content with less of the page's text than this is not believed
_TEX = etree.XPath(".//*[local-name()='annotation'][@encoding='application/x-tex']")


class TooDeep(ValueError):
    """Tags are nested beyond libxml2's 256 levels, where it silently drops text: read the page as plain text."""


def parse(text: str) -> Element | None:
    """The tree of an HTML page, None where there is nothing in it. Raises TooDeep."""
    parser = etree.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True, no_network=True)
    try:
        root = etree.fromstring(_tamed(text).encode("utf-8", "ignore"), parser)
    except etree.XMLSyntaxError:
        return None
    if any("Excessive depth" in entry.message for entry in parser.error_log):
        raise TooDeep
    return root


def is_listing(root: Element) -> bool:
    """Whether a page is one of a generator's listings: names and code without a word about them.

    They match nearly every name and push out the pages that explain it: on the Ray docs, 245 of 3,313 pages.
    """
    return bool(_LISTING(root))


def _tamed(text: str) -> str:
    """`text` with the attributes taken off tags that have absurdly many."""
    parts = text.split("<")
    if max(map(len, parts)) <= _LONG_TAG:
        return text
    return "<".join(part if len(part) <= _LONG_TAG else _tame(part) for part in parts)


def _tame(part: str) -> str:
    """What follows a "<", with the attributes cut out up to the tag's end if there are too many."""
    quoted = re.match(r"""(?:[^>"']|"[^"]*"|'[^']*')*+""", part)
    end = quoted.end() if quoted and part[quoted.end() : quoted.end() + 1] == ">" else part.find(">")
    end = len(part) if end < 0 else end
    words = re.sub(r""""[^"]*"|'[^']*'""", "", part[:end]).split(None, _MAX_ATTRIBUTES)
    return words[0] + part[end:] if len(words) > _MAX_ATTRIBUTES else part


def plain_text(text: str) -> str:
    """The text between the tags of `text`, in linear time whatever it holds: for pages that no tree can be made of."""
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
    """The page's first h1, else its <title>, "" where it has neither."""
    for element in (next(main.iter("h1"), None), next(root.iter("title"), None)):
        words = paragraph("".join(element.itertext())) if element is not None else ""
        if words:
            return words
    return ""


def language_of(root: Element) -> str:
    """What `<html lang>` declares, "" if nothing."""
    return paragraph(root.get("lang") or root.get("xml:lang") or "")[:35]


def main_content(root: Element) -> Element:
    """The element that holds the page's own content, with everything else dropped from it.

    A page that marks none, or marks one with hardly any of its text, gives its body.
    """
    body = root.find("body")
    body = root if body is None else body
    main, marked = _marked(root, body)
    _drop_noise(main, marked)
    return main


def _marked(root: Element, body: Element) -> tuple[Element, bool]:
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
    """The one article of `main` where it holds most of it: theme sidebars stand beside it."""
    articles = list(main.iter("article"))
    return articles[0] if len(articles) == 1 and _size(articles[0]) > 0.5 * _size(main) else main


def _size(element: Element) -> int:
    """Characters of text that is not script, roughly."""
    script = sum(len(text) for dropped in element.iter("script", "style", "nav") for text in dropped.itertext())
    return sum(map(len, element.itertext())) - script


def _drop_noise(main: Element, marked: bool) -> None:
    noise = _NOISE if marked else _NOISE | _OUTSIDE
    doomed = [element for element in main.iter(*_DROP) if not _kept(element)]
    doomed += _NOISY_SPAN(main)
    doomed += [element for element in main.iter(*_NOISY) if element is not main and _is_noise(element, noise, marked)]
    for element in doomed:
        drop(element)
    for element in list(main.iter(*_REPLACED)):
        _replace(element)


def _kept(element: Element) -> bool:
    """Scripts that hold a formula, and buttons that hold a heading's words."""
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
    """A sign that links to where it stands. The id it points to is left to its heading, if that has none."""
    href = link.get("href", "")
    if _NOISE.isdisjoint(link.get("class", "").split()) and not _is_sign(link, href):
        return False
    if href.startswith("#") and len(href) > 1:
        _lend_id(link, href[1:])
    return True


def _is_sign(link: Element, href: str) -> bool:
    if not href.startswith("#") or next(link.iter("img"), None) is not None:
        return False
    return paragraph("".join(link.itertext())).lower() in _SIGNS


def _lend_id(link: Element, anchor: str) -> None:
    holders = [link.getparent(), link.getprevious(), link.getnext()]
    for holder in holders:
        if holder is not None and holder.tag in HEADINGS and not holder.get("id"):
            holder.set("id", anchor)
            return


def _replace(element: Element) -> None:
    """Leave in place of an element without text of its own what a reader sees there."""
    if element.tag == "br":
        shown = LINE_BREAK
    elif element.tag == "img":
        shown = f" {element.get('alt') or ''} "
    elif element.tag == "math":
        shown = _tex(element)
    else:
        shown = ""
    element.tail = shown + (element.tail or "")
    drop(element)


def _tex(math: Element) -> str:
    notes = _TEX(math)
    return (notes[0].text if notes else None) or math.get("alttext") or "".join(math.itertext())


def drop(element: Element) -> None:
    """Take `element` out of its tree and leave the text that follows it."""
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
    """The ids of the empty `a` and `span` elements in `element`, itself among them: places to link to."""
    for target in element.iter("a", "span"):
        name = target.get("id") or target.get("name")
        indexed = target.get("class") == "indexterm" or (name or "").startswith("index-")  # made by generators
        if name and not indexed and not "".join(target.itertext()).strip():
            yield name
