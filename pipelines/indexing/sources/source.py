"""The interface of a source of pages: what a run asks of any kind.

A kind is a file in this folder: a class that yields pages. Sites and folders have keys of their own in a collection
file; a kind that is derived from `ConfiguredSource` is listed under `sources` by its name, and no other file knows it.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import islice
from pkgutil import iter_modules
from typing import Any, ClassVar

from pydantic import BaseModel

from pipelines.fetched import FetchedPage
from pipelines.indexing.crawling.crawl import CrawlSettings
from pipelines.indexing.reading.formats import MARKDOWN
from pipelines.indexing.reading.links import page_pointers
from pipelines.records import Page, content_hash
from pipelines.store import Store
from pipelines.text.progress import Progress, silent

PAGES_AT_ONCE = 256  # that are committed together


class UnknownKind(ValueError):
    """A collection lists a source of a kind that no file of this folder has."""


@dataclass(frozen=True, slots=True)
class SourcePage:
    """A page as a source yields it: its URL, and its body of `media_type`.

    `title` is that of a page of Markdown or text which does not begin with one.
    """

    url: str
    body: bytes
    media_type: str = MARKDOWN.media_type
    title: str = ""

    def fetched(self, known_hash: str | None) -> FetchedPage:
        """Return the page as it is stored; without its body if the content hash is still `known_hash`."""
        body = f"# {self.title}\n\n".encode() + self.body if self.title else self.body
        links, canonical = page_pointers(Page(self.url, body, self.media_type))
        unchanged = content_hash(body, self.media_type, None) == known_hash
        kept: dict[str, Any] = {} if unchanged else {"body": body, "canonical": canonical}
        return FetchedPage(self.url, "ok", content_type=self.media_type, links=tuple(links), **kept)


@dataclass(frozen=True)
class SourceReading:
    """What a source is read for: a run over a collection, whose pages the store keeps.

    With `read_all` a source also reads pages that have not changed. `tell` gets messages for a person,
    `count_files` of what a source leaves out: other formats by suffix, and how many are excluded.
    """

    store: Store
    database_url: str
    collection: str
    run: int
    read_all: bool = False
    tell: Progress = silent
    count_files: Callable[[Mapping[str, int], int], object] = lambda skipped, excluded: None


@dataclass(frozen=True, slots=True)
class SourcePlan:
    """What a run would read of a source: how many pages it knows of, and how many of them are not stored yet."""

    name: str
    pages: int
    new_pages: int
    is_remote: bool
    max_pages: int | None = None


class PageSource(ABC):
    """A source of pages: its plan, its pages, and which stored pages belong to it.

    An `is_remote` one is read on any machine, and its pages are embedded while others come; else the machine of the
    run reads all of it first.
    """

    is_remote: ClassVar[bool] = False

    @property
    @abstractmethod
    def name(self) -> str:
        """What messages and reports call it."""

    @property
    @abstractmethod
    def prefixes(self) -> Sequence[str]:
        """What the URLs of its pages begin with: stored pages below them that it no longer has are gone."""

    @property
    def absence(self) -> str:
        """Why a page is gone that a complete reading did not find."""
        return "its source no longer has it"

    @property
    def max_pages(self) -> int | None:
        """How many of its pages are read at most."""
        return None

    @property
    def hosts(self) -> Sequence[CrawlSettings]:
        """The hosts that must answer before a run begins."""
        return ()

    @property
    def addresses(self) -> Sequence[str]:
        """Where a person finds its pages."""
        return self.prefixes

    @abstractmethod
    def plan(self, store: Store, collection: str) -> SourcePlan:
        """Return what a run would read; write nothing."""

    @abstractmethod
    def read(self, reading: SourceReading) -> Iterator[list[str]]:
        """Commit its pages; yield the URLs of those that may be new or changed, batch by batch."""

    @abstractmethod
    def limited_to(self, urls: Collection[str]) -> "PageSource | None":
        """Return the source of those of its pages that have one of these URLs, None if none can be its own."""

    def check(self, relative_paths: bool, tell: Progress) -> None:  # noqa: B027 (most kinds have nothing to check)
        """Raise why it can't be read, or tell what to be careful with.

        Without `relative_paths` a relative path is refused: other machines read it.
        """

    def ended(self, report: Mapping[str, Any] | None, tell: Progress, warn: Progress) -> str:
        """Tell how its reading ended, by the report that it stored; return why it is not complete, "" if it is."""
        return ""

    def covers(self, url: str) -> bool:
        """Return whether its pages may lead to `url`."""
        return url.startswith(tuple(self.prefixes))

    def is_stored(self, store: Store, collection: str) -> bool:
        """Return whether its stored pages are enough to build another index, so that it need not be read for that."""
        return False

    def count(self, urls: Sequence[str], store: Store, collection: str) -> SourcePlan:
        """Return the plan to read the pages at `urls`."""
        new = set(urls) - store.content_hashes(collection, urls).keys()
        return SourcePlan(self.name, len(urls), len(new), self.is_remote, self.max_pages)


class YieldingSource(PageSource):
    """A source whose kind says only what its pages are: one method that yields them, each time all of them."""

    @abstractmethod
    def pages(self) -> Iterable[SourcePage]:
        """Yield its pages."""

    def plan(self, store: Store, collection: str) -> SourcePlan:
        return self.count([page.url for page in self.pages()], store, collection)

    def read(self, reading: SourceReading) -> Iterator[list[str]]:
        coming = iter(self.pages())
        while batch := list(islice(coming, PAGES_AT_ONCE)):
            urls = [page.url for page in batch]
            known = reading.store.content_hashes(reading.collection, urls)
            fetched = [page.fetched(known.get(page.url)) for page in batch]
            reading.store.save_pages(reading.collection, reading.run, fetched)
            yield urls

    def limited_to(self, urls: Collection[str]) -> "PageSource | None":
        own = frozenset(filter(self.covers, urls))
        return LimitedSource(self, own) if own else None


@dataclass(frozen=True)
class LimitedSource(YieldingSource):
    """Some pages of another source."""

    whole: YieldingSource
    urls: frozenset[str]

    @property
    def name(self) -> str:
        return self.whole.name

    @property
    def prefixes(self) -> Sequence[str]:
        return self.whole.prefixes

    def pages(self) -> Iterable[SourcePage]:
        return (page for page in self.whole.pages() if page.url in self.urls)


class ConfiguredSource(BaseModel, YieldingSource, extra="forbid", frozen=True):
    """A source as a collection lists it under `sources`; `kind` is the name of its class's kind."""

    kind_name: ClassVar[str] = ""
    kind: str


def configured_source(keys: Any) -> Any:
    """Return the source that keys of a collection describe. Raises UnknownKind."""
    if not isinstance(keys, Mapping):
        return keys
    for module in iter_modules(import_module(__package__ or "").__path__):
        import_module(f"{__package__}.{module.name}")
    kinds = {kind.kind_name: kind for kind in ConfiguredSource.__subclasses__()}
    kind = kinds.get(str(keys.get("kind")))
    if kind is None:
        known = ", ".join(sorted(kinds)) or "none: sites and folders have keys of their own"
        raise UnknownKind(f"kind {keys.get('kind')!r} is not known; the kinds are {known}")
    return kind.model_validate(keys)
