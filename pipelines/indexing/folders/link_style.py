"""Infers how the URLs of a folder's pages end, from the absolute links between them.

A site whose generator is unknown still tells its URLs: its authors link from page to page as readers see them, to
`/guide/install/` or `https://docs.example.org/guide/install.html`. This module knows no file system.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable
from urllib.parse import unquote, urlsplit

from pipelines.indexing.reading.formats import HTML, SOURCES, format_of_name
from pipelines.indexing.reading.sources import UrlStyle

# The links of three pages may not be a coincidence, and old links may have another end than today's.
LEAST_PAGES = 3
LEAST_SHARE = 2 / 3
_TARGET = re.compile(rb"(?:\]\(|\bhref=[\"'])<?((?:https?:/)?/[^\s<>()\"'#?]+)")
_PLACEHOLDER = re.compile(r"\{.*\}")
_INDEXES = ("index", "_index", "readme")


def style_of_links(bodies: Iterable[bytes], paths: Collection[str], base_url: str) -> UrlStyle | None:
    """Return the style of the URLs with which `bodies` link to the pages at `paths`, None if too few do.

    `paths` are the paths of the folder's files below its root. Links to a folder's own index say nothing.
    """
    pages = {path.rpartition(".")[0] for path in paths if format_of_name(path) in SOURCES}
    pages = {page for page in pages if page.rpartition("/")[2].lower() not in _INDEXES}
    linked: defaultdict[UrlStyle, set[str]] = defaultdict(set)
    for target in {target for body in bodies for target in _TARGET.findall(body)}:
        page, style = _ending(_below(target.decode("utf-8", "replace"), base_url))
        if page in pages:
            linked[style].add(page)
    style = max(linked, key=lambda each: len(linked[each]), default=None)
    count = len(linked[style]) if style else 0
    enough = count >= max(LEAST_PAGES, LEAST_SHARE * sum(map(len, linked.values())))
    return style if enough else None


def _below(target: str, base_url: str) -> str:
    """Return the path of a link below the base URL, "" if it leads elsewhere.

    A part of the link in braces, such as `/docs/{{version}}/install`, is filled in when the site is built.
    """
    start = (base_url if "://" in target else urlsplit(base_url).path).split("/")[:-1]
    parts = target.split("/")
    same = (part == own or _PLACEHOLDER.fullmatch(part) for part, own in zip(parts, start, strict=False))
    return unquote("/".join(parts[len(start) :])) if all(same) else ""


def _ending(path: str) -> tuple[str, UrlStyle]:
    """Return the page that a URL's path would have without its ending, and the style of this ending."""
    if path.endswith("/"):
        return path[:-1], "directory"
    page, dot, suffix = path.rpartition(".")
    return (page, "html") if dot and suffix == HTML.suffixes[0] else (path, "bare")
