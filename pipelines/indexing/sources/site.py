"""A site as a source of pages: the crawl of one host.

The crawler's own process commits the pages; a report says how the crawl ended.
"""

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipelines import tracing
from pipelines.indexing.crawling.crawl import CrawlFailed, CrawlReport, CrawlSettings, crawl, survey
from pipelines.indexing.crawling.frontier.queue import DEFAULT_MAX_PAGES
from pipelines.indexing.crawling.scope import DEFAULT_PORTS, site
from pipelines.indexing.sources.source import PageSource, SourcePlan, SourceReading
from pipelines.store import Store
from pipelines.text.counts import counted
from pipelines.text.progress import Progress


@dataclass(frozen=True)
class SiteSource(PageSource):
    """The pages of one host; `host` defines how to crawl it."""

    host: CrawlSettings

    is_remote = True

    @property
    def absence(self) -> str:
        return "a complete crawl did not find it"

    @property
    def name(self) -> str:
        return self.host.start_urls[0]

    @property
    def prefixes(self) -> Sequence[str]:
        return [f"{scheme}://{site(self.name)}/" for scheme in DEFAULT_PORTS]  # http may redirect to https

    @property
    def hosts(self) -> Sequence[CrawlSettings]:
        return (self.host,)

    @property
    def max_pages(self) -> int | None:
        return self.host.max_pages

    @property
    def addresses(self) -> Sequence[str]:
        return self.host.start_urls

    def check(self, relative_paths: bool, tell: Progress) -> None:
        if self.host.ignore_robots:
            tell(f"WARNING: robots.txt of {', '.join(self.addresses)} is IGNORED (--ignore-robots)")

    def plan(self, store: Store, collection: str) -> SourcePlan:
        """Return how many pages its start pages and seeds list. Raises CrawlFailed."""
        return self.count(survey(self.host, store.url, collection), store, collection)

    def read(self, reading: SourceReading) -> Iterator[list[str]]:
        """Crawl: yield URLs as they are committed, and store the report at the end."""
        store, began = reading.store, time.time()
        report = CrawlReport(complete=False, stopped_by="error: ended without a report")

        def note_queue(urls: int) -> None:
            store.save_crawl(reading.run, self.name, report.complete, report.stopped_by, {"queued": urls})

        pages = crawl(self.host, reading.database_url, reading.collection, reading.run, note_queue=note_queue)
        try:
            while True:
                yield next(pages)
        except StopIteration as stop:
            report = stop.value
        except CrawlFailed as error:
            report = CrawlReport(complete=False, stopped_by=f"error: {error}")
        finally:
            counts = {**report.counts, "began": began, "seconds": report.seconds, "traps": report.traps,
                      "below": report.below}  # fmt: skip
            store.save_crawl(reading.run, self.name, report.complete, report.stopped_by, counts)

    def ended(self, report: Mapping[str, Any] | None, tell: Progress, warn: Progress) -> str:
        """Report traps, a start page that turned out to be a folder, and an early end."""
        counts = report["counts"] if report else {}
        began, took = (counts.get(name, 0) for name in ("began", "seconds"))
        if report:
            tracing.past("crawl", began, began + took, {"url.full": self.name})
        self._warn_of_traps(counts.get("traps", {}), warn)
        for folder in counts.get("below", ()):
            tell(f"the crawl of {self.name} stays in {folder}, where its start page leads (--parent lifts this limit)")
        if report and report["complete"]:
            return ""
        stopped_by = report["stopped_by"] if report else "error: ended without a report"
        self._tell_end(stopped_by, tell, warn)
        return stopped_by

    def _warn_of_traps(self, traps: Mapping[str, int], warn: Progress) -> None:
        if traps:
            most = max(traps, key=lambda pattern: traps[pattern])
            warn(
                f"{counted(sum(traps.values()), 'URL')} of {self.name} skipped: pages link to ever new URLs, such as "
                f"{most}; --exclude PATTERN excludes them all"
            )

    def _tell_end(self, stopped_by: str, tell: Progress, warn: Progress) -> None:
        if stopped_by.startswith("error"):
            warn(f"the crawl of {self.name} was cut short ({stopped_by})")
        else:
            default = f" (by default {DEFAULT_MAX_PAGES:,}; set another with --max-pages)"
            why = f"{stopped_by}{default if stopped_by == 'max_pages' and self.max_pages is None else ''}"
            tell(f"the crawl of {self.name} ended because of {why}: a normal end, but nothing is deleted")

    def covers(self, url: str) -> bool:
        return url in self.host.scope

    def is_stored(self, store: Store, collection: str) -> bool:
        return bool(store.known_page(collection, self.name))

    def limited_to(self, urls: Collection[str]) -> "SiteSource | None":
        limited = self.host.limited_to(urls)
        return SiteSource(limited) if limited else None
