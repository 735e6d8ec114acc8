"""Finds the links, frames and the canonical URL of a page for the crawler.

It scans the text once with linear-time patterns, so hostile pages cannot stall the crawler. Links inside comments and
scripts do not count. Independent of the page tree and the crawl scope.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from html import unescape
from urllib.parse import urlsplit

from pipelines.indexing.reading.formats import TEXT, format_of_type
from pipelines.indexing.reading.text import decode
from pipelines.indexing.reading.verbatim import matches_outside_code
from pipelines.page.urls import absolute_url
from pipelines.records import Page

# A template that is a shadow root is visible as the content of its element.
HIDDEN = re.compile(
    r"<!--.*?(?:-->|\Z)|<(script|style|template(?![^<>]*\sshadowrootmode)|textarea)\b.*?(?:</\1\b|\Z)",
    re.IGNORECASE | re.DOTALL,
)
# A tag never extends past the next "<". This keeps the scan linear; only links with "<" in an attribute are lost.
_TAG = re.compile(r"""<(a|area|base|link|i?frame|meta)(\s(?>(?:[^<>"']|"[^"<]*"|'[^'<]*')*))>""", re.IGNORECASE)
_ATTRIBUTE = re.compile(
    r"""(?i)(?<![\w-])(href|src|rel|http-equiv|content)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))"""
)
# A link's target or the target of a reference: in angle brackets, or without spaces and with parentheses in pairs.
_MARKDOWN_LINK = re.compile(
    r"(?:\]\(\s*|^[ ]{0,3}\[[^\]\n]{1,300}\]:[ \t]*)(?:<([^<>\n]+)>|([^\s<>()]+(?:\([^\s<>()]*\)[^\s<>()]*)*))",
    re.MULTILINE,
)
_NO_PART = re.compile(r"[\t\r\n\0]")  # characters that browsers drop from a URL
_MAX_URL = 2000  # characters; about the limit that browsers and servers share


def page_pointers(page: Page, place: str | None = None) -> tuple[tuple[str, ...], str | None]:
    """Return the http(s) URLs that `page` links to, and its canonical URL. Never raises.

    With `place`, the URL of its file, links lead from there, also to other files.

    The links are absolute, without fragments, unique, and in page order. `<base href>` is respected (see `base_of`),
    and links with rel=nofollow are left out. Frames and `<meta>` refresh targets count as links. The canonical URL is
    the first `<link rel=canonical>`, or None if it is missing or equal to the page's URL.
    """
    syntax = (format_of_type(page.content_type) or TEXT).links  # unknown types are treated as text
    text = decode(page.body, page.charset, detect=False) if syntax else ""
    place = place or page.url
    if syntax != "html":
        return _absolute(place, markdown_links(text)), None
    base, hrefs, canonical = place, list[str](), list[str]()
    for tag, href, rel in _tags(text):
        if tag == "base" and base == place:
            base = base_of(place, href)
        elif tag not in ("base", "link") and "nofollow" not in rel:
            hrefs.append(href)
        elif tag == "link" and "canonical" in rel:
            canonical.append(href)
    url = _join(page.url, canonical[0]) if canonical else None
    return _absolute(base, hrefs), None if url == page.url else url


def markdown_links(text: str) -> list[str]:
    """Return the targets of links and references in Markdown in order, each once. Code contains no links."""
    return list(dict.fromkeys(link[1] or link[2] for link in matches_outside_code(_MARKDOWN_LINK, text)))


def origin(url: str) -> str:
    """Return scheme, host and port, which identify a site and the scope of a robots.txt."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def base_of(url: str, href: str) -> str:
    """Return the base URL for the links of the page at `url` with this `<base href>`.

    A base on another site is ignored; otherwise a page could turn its relative links into links to that site.
    """
    base = _join(url, href)
    return base if base and urlsplit(base).netloc == urlsplit(url).netloc else url


def _tags(text: str) -> Iterator[tuple[str, str, list[str]]]:
    for name, attributes in _TAG.findall(HIDDEN.sub("", text)):
        href, rel = (_target_of if len(attributes) <= _MAX_URL else _target_of.__wrapped__)(attributes)
        if href is not None:
            yield name.lower(), href, rel


@lru_cache(1 << 14)  # pages of a site repeat the tags of their menus
def _target_of(attributes: str) -> tuple[str | None, list[str]]:
    """Return the target in a tag's attributes, and its relations to the page."""
    values = {name.lower(): "".join(given) for name, *given in reversed(_ATTRIBUTE.findall(attributes))}
    href = values.get("href", values.get("src"))
    if values.get("http-equiv", "").lower() == "refresh":
        href = values.get("content", "").partition("=")[2].strip(" '\"") or None
    return href, values.get("rel", "").lower().split()


def _absolute(base: str, hrefs: list[str]) -> tuple[str, ...]:
    urls = (_join(base, href) for href in dict.fromkeys(hrefs))
    return tuple(dict.fromkeys(url for url in urls if url))


def _join(base: str, href: str) -> str | None:
    """Return `href` as an absolute URL without fragment, or None if it is not an http(s) URL."""
    href = _NO_PART.sub("", unescape(href)).strip()
    if len(href) > _MAX_URL:
        return None
    if href[:1] in ("", "#", "?") or "?" in base:  # relative to the page instead of its folder
        url = absolute_url(base, href)
    else:
        url = absolute_url(base[: base.rfind("/", base.find("//") + 2) + 1] or base, href)
    return url.partition("#")[0].replace(" ", "%20") or None
