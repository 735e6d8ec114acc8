"""Determines the language of a page from its HTML, else the locale in its URL, else its prose.

A folder such as /cs/ may be a language or anything else, so a locale counts only if the prose does not contradict it.
"""

import re
from collections import Counter
from collections.abc import Iterator
from urllib.parse import unquote, urljoin, urlsplit

from lxml.etree import _Element as Element

from pipelines.page.plain import plain
from pipelines.page.tree import Document, Paragraph, leaves_of
from pipelines.text.detection import (
    DETECTABLE,
    LANGUAGES,
    find_language,
    is_written_in,
    may_be_asked_in,
    relatives_of,
    same_language,
)
from pipelines.text.languages import without_region

PARAGRAPHS, LETTERS = 20, 300  # how many paragraphs to examine, and how many characters of each
_LONGEST = 35  # characters of a tag; BCP 47 requires programs to support this many
_TAG = re.compile(r"[a-z]{2,3}(?:[-_][a-z]{4})?(?:[-_](?:[a-z]{2}|\d{3}))?", re.IGNORECASE)


def declared_language(root: Element, url: str) -> str:
    """Return the language that the HTML of the page at `url` declares, "" if none."""
    own = _tag(root.get("lang") or root.get("xml:lang") or "") or _tag(_named_in_head(root))
    return own or next((tag for link in _alternates(root) if _is_page(link, url) and (tag := _listed(link))), "")


def _named_in_head(root: Element) -> str:
    """Return the language that a page's first `<meta>` of this kind names."""
    for meta in root.iter("meta"):
        if meta.get("property") == "og:locale" or (meta.get("http-equiv") or "").lower() == "content-language":
            return meta.get("content") or ""
    return ""


def _alternates(root: Element) -> Iterator[Element]:
    """Yield the links to versions of a page in other languages."""
    for link in root.iter("link"):
        if "alternate" in (link.get("rel") or "").split(" ") and None not in (link.get("hreflang"), link.get("href")):
            yield link


def language_of(document: Document) -> str:
    """Return the language of a page that declares none, "" if it is not certain."""
    leaves = (leaf for section in document.sections for leaf in leaves_of(section.content))
    prose = [plain(leaf.spans)[:LETTERS] for leaf in leaves if isinstance(leaf, Paragraph)][:PARAGRAPHS]
    spoken = _spoken(prose)
    named = next((tag for tag in _locales(document.url) if _agrees(tag, spoken, prose)), "")
    return named or (spoken if spoken != "und" else "")


def _spoken(prose: list[str]) -> str:
    """Return the most frequent language of the paragraphs, "und" if certainly not English but unclear, "" if unsure.

    A single paragraph may be a name or a quotation, so it counts only for English.
    """
    found = _votes(prose)
    language = max(sorted(found.keys() - {"", "und"}), key=found.__getitem__, default="")
    votes = found[language]
    if relatives_of(language):  # short paragraphs may lack the distinctive letters of a relative
        told = find_language(" ".join(prose))
        if told in relatives_of(language):
            language, votes = told, votes + found[told]
    if language and (language == "en" or votes > 1):
        return language
    return "und" if found["und"] > 1 else ""


def _votes(prose: list[str]) -> Counter[str]:
    """Return how many paragraphs are in each language, counted until the others can't change the most frequent one."""
    found = Counter[str]()
    for left, paragraph in zip(reversed(range(len(prose))), prose, strict=True):
        found[find_language(paragraph)] += 1
        first, second, *_ = *sorted((found[tag] for tag in found.keys() - {"", "und"}), reverse=True), 0, 0
        if first > second + left:
            break
    return found


def _locales(url: str) -> list[str]:
    """Return the parts of a URL that may be language tags, in the order of the path."""
    parts = urlsplit(url)
    names = [re.sub(r"\.html?$", "", name) for name in unquote(parts.path).split("/")]
    names += [names[-1].rpartition(".")[2], (parts.hostname or "").partition(".")[0]]
    return [name.replace("_", "-") for name in names if _TAG.fullmatch(name) and without_region(name) in LANGUAGES]


def _agrees(tag: str, spoken: str, prose: list[str]) -> bool:
    """Return whether prose detected as `spoken` may be in the language `tag`."""
    if same_language(tag, spoken):
        return True
    if spoken in ("", "en") or same_language(tag, "en"):
        return False
    if spoken != "und" and without_region(tag) in DETECTABLE:
        return may_be_asked_in(spoken, tag)
    return is_written_in(" ".join(prose), tag)


def _is_page(link: Element, url: str) -> bool:
    """Return whether an alternate link leads to the page itself."""
    try:
        target = urlsplit(urljoin(url, link.get("href") or ""))
    except ValueError:
        return False
    own = urlsplit(url)
    return (target.netloc, target.path.rstrip("/")) == (own.netloc, own.path.rstrip("/"))


def _listed(link: Element) -> str:
    tag = link.get("hreflang") or ""
    return "" if tag == "x-default" else _tag(tag)


def _tag(text: str) -> str:
    return " ".join(text.replace("_", "-").split())[:_LONGEST]
