"""How the crawls of a run ended: traps, ends before their time, and pages that are gone."""

from collections.abc import Mapping, Sequence

from pipelines import tracing
from pipelines.indexing.collection import Collection
from pipelines.indexing.crawling.crawl import CrawlSettings
from pipelines.indexing.crawling.frontier.queue import DEFAULT_MAX_PAGES
from pipelines.indexing.crawling.scope import DEFAULT_PORTS, site
from pipelines.indexing.summary import RunLog
from pipelines.store import Store


def note_ends(
    store: Store, run: int, hosts: Sequence[CrawlSettings], log: RunLog
) -> tuple[list[CrawlSettings], list[str]]:
    """Tell how the crawls of a run ended; return those that are complete, and why each of the others ended early."""
    reports, complete, early = {row["host"]: row for row in store.crawls(run)}, list[CrawlSettings](), list[str]()
    for crawled in reports.values():
        began, took = (crawled["counts"].get(name, 0) for name in ("began", "seconds"))
        tracing.past("crawl", began, began + took, {"url.full": crawled["host"]})
    for host in hosts:
        url = host.start_urls[0]
        report = reports.get(url)
        _warn_of_traps(url, report["counts"].get("traps", {}) if report else {}, log)
        for folder in report["counts"].get("below", ()) if report else ():
            log.tell(
                f"the crawl of {url} stays in {folder}: its start page leads there (`--parent` allows the whole site)"
            )
        if report and report["complete"]:
            complete.append(host)
        else:
            early.append(report["stopped_by"] if report else "error: ended without a report")
            _tell_end(url, early[-1], host.max_pages, log)
    return complete, early


def mark_unseen(store: Store, collection: Collection, run: int, complete: Sequence[CrawlSettings]) -> None:
    """Mark pages as gone that `run` did not see: below its folders, and on the sites of its `complete` crawls.

    So are those of a host or base URL that the collection no longer has. Pages stay that another crawl of the
    collection may lead to: one that was cut short, or that `run` left out. Pages of a site that leads from http to
    https have the other scheme than its start URL.
    """
    others = [host.scope for each in collection.sites for host in each.hosts() if host not in complete]
    known = store.known_urls(collection.name)
    kept = [url for url in known if any(url in scope for scope in others)] if others else []
    gone = {folder.base_url: f"its file under {folder.path} is gone" for folder in collection.folders}
    roots = {f"{scheme}://{site(host.start_urls[0])}/" for scheme in DEFAULT_PORTS for host in complete}
    gone |= dict.fromkeys(roots, "a complete crawl did not find it")
    for prefix, reason in gone.items():
        store.mark_unseen(collection.name, run, prefix, reason, kept)
    store.mark_unclaimed(collection.name, run, [url for url in known if not _is_claimed(url, collection)])


def _is_claimed(url: str, collection: Collection) -> bool:
    """Return whether a source of the collection may have a page at `url`."""
    hosts = {site(start) for each in collection.sites for start in each.start_urls}
    return site(url) in hosts or any(url.startswith(folder.base_url) for folder in collection.folders)


def _warn_of_traps(url: str, traps: Mapping[str, int], log: RunLog) -> None:
    if traps:
        most = max(traps, key=lambda pattern: traps[pattern])
        log.warn(
            f"{sum(traps.values()):,} URLs of {url} were left alone: equal pages lead to ever new ones, as {most}; "
            "--exclude PATTERN leaves out all of them"
        )


def _tell_end(url: str, stopped_by: str, max_pages: int | None, log: RunLog) -> None:
    if stopped_by.startswith("error"):
        log.warn(f"the crawl of {url} was cut short ({stopped_by})")
    else:
        default = f" (by default {DEFAULT_MAX_PAGES:,}; set another with --max-pages)"
        why = f"{stopped_by}{default if stopped_by == 'max_pages' and max_pages is None else ''}"
        log.tell(f"the crawl of {url} was ended by {why}: a normal end, but nothing is deleted")
