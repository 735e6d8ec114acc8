"""The interface of a source of pages, which a run uses for every kind.

Each kind is a file in this folder with a class that yields pages. Sites and folders have their own keys in a collection
file. A kind derived from `ConfiguredSource` is listed under `sources` by its name, and no other file knows it.
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

PAGES_AT_ONCE = 256  # pages committed together


class UnknownKind(ValueError):
    """A collection lists a source of an unknown kind."""


@dataclass(frozen=True, slots=True)
class SourcePage:
    """A page as a source yields it: its URL, and its body of `media_type`.

    `title` is for a page of Markdown or text that does not begin with one.
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
    """The context in which a source is read: a run over a collection, whose pages the store keeps.

    With `read_all`, a source also reads pages that have not changed. `tell` receives messages for a person,
    `count_files` the files that a source leaves out: other formats by suffix, and the number of excluded ones.
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
    """The pages that a run would read from a source: how many are known, and how many of them are not stored yet."""

    name: str
    pages: int
    new_pages: int
    is_remote: bool
    max_pages: int | None = None


class PageSource(ABC):
    """A source of pages: its plan, its pages, and which stored pages belong to it.

    If it `is_remote`, any machine can read it, and its pages are embedded while others are read. Otherwise, the run's
    own machine reads all of it first.
    """

    is_remote: ClassVar[bool] = False

    @property
    @abstractmethod
    def name(self) -> str:
        """Its name in messages and reports."""

    @property
    @abstractmethod
    def prefixes(self) -> Sequence[str]:
        """The prefixes of its pages' URLs; stored pages below them that it no longer has are gone."""

    @property
    def absence(self) -> str:
        """The reason why a page is gone if a complete reading did not find it."""
        return "its source no longer has it"

    @property
    def max_pages(self) -> int | None:
        """The most pages that are read from it."""
        return None

    @property
    def hosts(self) -> Sequence[CrawlSettings]:
        """The hosts that must respond before a run begins."""
        return ()

    @property
    def addresses(self) -> Sequence[str]:
        """The addresses where a person finds its pages."""
        return self.prefixes

    @abstractmethod
    def plan(self, store: Store, collection: str) -> SourcePlan:
        """Return the pages that a run would read; write nothing."""

    @abstractmethod
    def read(self, reading: SourceReading) -> Iterator[list[str]]:
        """Commit its pages; yield the URLs of pages that may be new or changed, batch by batch."""

    @abstractmethod
    def limited_to(self, urls: Collection[str]) -> "PageSource | None":
        """Return a source of only its pages at these URLs, None if none can belong to it."""

    def check(self, relative_paths: bool, tell: Progress) -> None:  # noqa: B027 (most kinds have nothing to check)
        """Raise the reason why it can't be read, or warn about risks.

        Without `relative_paths`, a relative path is refused, because other machines read it.
        """

    def ended(self, report: Mapping[str, Any] | None, tell: Progress, warn: Progress) -> str:
        """Report how its reading ended, from its stored report; return why it is incomplete, "" if it is complete."""
        return ""

    def covers(self, url: str) -> bool:
        """Return whether `url` may belong to it."""
        return url.startswith(tuple(self.prefixes))

    def is_stored(self, store: Store, collection: str) -> bool:
        """Return whether its stored pages are enough to build another index without reading it again."""
        return False

    def count(self, urls: Sequence[str], store: Store, collection: str) -> SourcePlan:
        """Return the plan to read the pages at `urls`."""
        new = set(urls) - store.content_hashes(collection, urls).keys()
        return SourcePlan(self.name, len(urls), len(new), self.is_remote, self.max_pages)


class YieldingSource(PageSource):
    """A source with a single method that yields all of its pages each time."""

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
        known = ", ".join(sorted(kinds)) or "none: sites and folders have their own keys"
        raise UnknownKind(f"kind {keys.get('kind')!r} is not known; the kinds are {known}")
    return kind.model_validate(keys)
