"""How the crawls of a run ended: pages that are gone, traps, and ends before their time."""

from collections.abc import Mapping, Sequence

from pipelines import tracing
from pipelines.indexing.crawling.crawl import CrawlSettings
from pipelines.indexing.crawling.frontier.queue import DEFAULT_MAX_PAGES
from pipelines.indexing.reading.links import origin
from pipelines.indexing.summary import RunLog
from pipelines.store import Store


class CrawlEnds:
    """What the reports of a run's crawls come to.

    `stopped_by` is the reason why a crawl ended early ("" if none did), and `failed` whether that was a failure.
    """

    def __init__(self, store: Store, collection: str, run: int, log: RunLog) -> None:
        self._store, self._collection, self._run, self._log = store, collection, run, log
        self.stopped_by, self.failed = "", False

    def note(self, hosts: Sequence[CrawlSettings]) -> None:
        """Mark pages that a complete crawl did not see as gone, and note crawls that were not complete."""
        reports = {row["host"]: row for row in self._store.crawls(self._run)}
        for crawled in reports.values():
            began, took = (crawled["counts"].get(name, 0) for name in ("began", "seconds"))
            tracing.past("crawl", began, began + took, {"url.full": crawled["host"]})
        for host in hosts:
            url = host.start_urls[0]
            report = reports.get(url)
            self._note_traps(url, report["counts"].get("traps", {}) if report else {})
            if report is None or not report["complete"]:
                reason = report["stopped_by"] if report else "error: ended without a report"
                self._note_incomplete(url, reason, host.max_pages)
            elif host.follows_links:
                self._store.mark_unseen(
                    self._collection, self._run, f"{origin(url)}/", "a complete crawl did not find it"
                )

    def _note_traps(self, url: str, traps: Mapping[str, int]) -> None:
        if traps:
            most = max(traps, key=lambda pattern: traps[pattern])
            self._log.warn(
                f"{sum(traps.values()):,} URLs of {url} were left alone: equal pages lead to ever new ones, as {most}; "
                "--exclude PATTERN leaves out all of them"
            )

    def _note_incomplete(self, url: str, stopped_by: str, max_pages: int | None) -> None:
        self.stopped_by = stopped_by
        if stopped_by.startswith("error"):
            self.failed = True
            self._log.warn(f"the crawl of {url} was cut short ({stopped_by})")
        else:
            default = f" (by default {DEFAULT_MAX_PAGES:,}; set another with --max-pages)"
            why = f"{stopped_by}{default if stopped_by == 'max_pages' and max_pages is None else ''}"
            self._log.tell(f"the crawl of {url} was ended by {why}: a normal end, but nothing is deleted")
