"""Reads a source folder like a run, up to its documents, and a generator's output folder as its site.

Knows no generator. The site's folder is the content of a static host: `a/index.html` at `a/` (and `a`, which
redirects), `a.html` at that name, and at `a` if the site links to one of its files that way.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urldefrag, urljoin, urlsplit

from lxml import html as lxml_html

from pipelines.fetched import FetchedPage
from pipelines.indexing.collection import Folder
from pipelines.indexing.folders.files import save_files
from pipelines.page.tree import Document, List, Node, Paragraph, Span, leaves_of
from pipelines.records import Page

HOST = "https://docs.example.org/"  # the URL at which every site of the corpus is published
NO_PAGE = re.compile(r"(^|/)(404|search|genindex|py-modindex|modindex|print|toc)(\.html|/index\.html)$")
_MOVED = re.compile(rb"http-equiv=[\"']?refresh", re.IGNORECASE)


@dataclass
class _Kept:
    """Collects the pages that a folder saves, instead of the database."""

    pages: list[FetchedPage] = field(default_factory=list)

    def see_files(self, collection: str, run: int, stamps: Sequence[str]) -> dict[str, str]:
        return {}

    def content_hashes(self, collection: str, urls: Sequence[str]) -> dict[str, str]:
        return {}

    def save_pages(self, collection: str, run: int, pages: Sequence[FetchedPage]) -> None:
        self.pages += pages


def pages_of_sources(folder: Path, base_url: str, url_style: str = "") -> tuple[list[Page], str]:
    """Return the pages that `raydex index FOLDER --base-url URL` saves, and the generator that it recognizes."""
    style = {"url_style": url_style} if url_style else {}
    settings = Folder.model_validate({"path": str(folder), "base_url": base_url, **style}).recognised()
    kept = _Kept()
    save_files(settings, settings.files(), kept, "", 0)  # type: ignore[arg-type]
    pages = [Page(page.url, page.body, page.content_type) for page in kept.pages if page.body is not None]
    return sorted(pages, key=lambda page: page.url), settings.sources.generator if settings.sources else ""


def without_contents(document: Document) -> Document:
    """Return a page without its own table of contents (lists whose links all lead into the page), which is layout."""
    sections = (
        replace(section, content=[node for node in section.content if not _is_contents(node, document.url)])
        for section in document.sections
    )
    return replace(document, sections=tuple(sections))


def _is_contents(node: Node, url: str) -> bool:
    leaves = list(leaves_of([node])) if isinstance(node, List) else []
    spans = [span for leaf in leaves for span in (leaf.spans if isinstance(leaf, Paragraph) else (Span("?"),))]
    within = [span.target.startswith(f"{url}#") for span in spans if any(map(str.isalnum, span.text))]
    return len(leaves) > 1 and all(within)


@dataclass(frozen=True)
class BuiltPage:
    """A file of a built site: its URL on the site, and the page."""

    path: str
    url: str
    file: Path

    @cached_property
    def ids(self) -> frozenset[str]:
        """The fragments that exist in the page."""
        root = _parsed(self.file)
        return frozenset(map(str, root.xpath("//@id | //a/@name"))) if root is not None else frozenset()

    @property
    def text(self) -> str:
        """The whole text of its main part or body."""
        root = _parsed(self.file)
        main = root.xpath("//main | //*[@role='main'] | //body") if root is not None else ()
        return str(main[-1].text_content()) if main else ""

    @property
    def page(self) -> Page:
        """The page as a crawl would fetch it."""
        return Page(self.url, self.file.read_bytes(), "text/html")


class BuiltSite:
    """The pages of a built site, published at the URL `root`, by each URL at which readers get them."""

    def __init__(self, folder: Path, root: str) -> None:
        files = {str(path.relative_to(folder)): path for path in sorted(folder.rglob("*.html")) if path.is_file()}
        shown = {name: path for name, path in files.items() if not _MOVED.search(path.read_bytes()[:4000])}
        linked = _linked(shown, root)
        self.moved = {unquote(root + url) for name in files.keys() - shown.keys() for url in _urls(name)}
        # A host drops suffixes if the site links to one of its files without a suffix.
        bare = any(root + name.removesuffix(".html") in linked for name in shown if not name.endswith("index.html"))
        self.pages: list[BuiltPage] = []
        self._by_url: dict[str, BuiltPage] = {}
        for name, path in shown.items():
            urls = [root + url for url in _urls(name)]
            if len(urls) == 2:  # not the index of a folder
                urls = urls[::-1] if bare else urls[:1]
            page = BuiltPage(name, quote(next((url for url in urls if url in linked), urls[0]), safe="/:%"), path)
            if not NO_PAGE.search(name):
                self.pages.append(page)
            self._by_url |= {unquote(url): page for url in urls}

    def __getitem__(self, url: str) -> BuiltPage | None:
        """Return the page that a reader gets at `url`, or None if there is none."""
        return self._by_url.get(unquote(urldefrag(url)[0]))


def _linked(names: Mapping[str, Path], root: str) -> Collection[str]:
    """Return the URLs that pages link to."""
    found: set[str] = set()
    for name, path in names.items():
        parsed, place = _parsed(path), root + _urls(name)[0]
        targets = parsed.xpath("//a/@href") if parsed is not None else ()
        found |= {urldefrag(urljoin(place, str(target).strip()))[0] for target in targets if _is_url(target)}
    return found


def _is_url(target: str) -> bool:
    with suppress(ValueError):
        return bool(urlsplit(urljoin(HOST, target.strip())))
    return False


def _urls(name: str) -> list[str]:
    """Return the paths at which a static host serves a file, simplest first."""
    if name == "index.html":
        return ["", name, "/"]
    if name.endswith("/index.html"):
        return [name.removesuffix("index.html"), name.removesuffix("/index.html"), name]
    return [name, name.removesuffix(".html")]


def _parsed(path: Path) -> Any:
    body = path.read_bytes()
    return lxml_html.fromstring(body, parser=lxml_html.HTMLParser(encoding="utf-8")) if body.strip() else None
