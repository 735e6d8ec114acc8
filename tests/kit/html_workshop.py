"""Reindexes pages of real HTML in one process, like a run, but without Ray and a crawler."""

from collections.abc import Mapping
from typing import Any

from kit.workshop import BASE, Workshop

from pipelines.fetched import FetchedPage
from pipelines.indexing.chunking.url_rules import UrlRules
from pipelines.indexing.reading.read import read_page
from pipelines.records import Page
from pipelines.store import StagedPage, Store


class HtmlWorkshop(Workshop):
    """A workshop whose pages are {path: HTML}. `version` is the pattern for a page's version in its URL."""

    def __init__(self, store: Store, name: str = "docs", version: str | None = None, **settings: Any) -> None:
        super().__init__(store, name, **settings)
        self.rules = UrlRules(version=version)

    def save(self, run: int, site: Mapping[str, Any]) -> None:
        pages = [FetchedPage(BASE + path, "ok", 200, body=body.encode()) for path, body in site.items()]
        self.store.save_pages(self.name, run, pages)

    def read(self, page: Page, input_hash: str) -> StagedPage:
        document, url = read_page(page), page.url
        chunks = self.chunker(document)
        return StagedPage(
            url, input_hash, document.title, document.language, self.rules.tags_of(url), self.rules.version_of(url),
            len(document.sections), chunks,
        )  # fmt: skip
