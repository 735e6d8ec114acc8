"""Brings announced page changes into the live index: one run covers all that are due.

A page that could not be read is tried again, because the site may not be built yet. This module knows no HTTP and no
command line.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pipelines.indexing.collection import Collection
from pipelines.indexing.run import SINGLE_PAGES, open_run
from pipelines.indexing.settings import PageChanges, ReindexOptions
from pipelines.indexing.summary import Outcome, ReindexSummary
from pipelines.store import Announced, Store
from pipelines.text.progress import Progress

# Seconds before the second attempt, doubled for each further one, and the number of attempts: 15 minutes in all.
AGAIN_S, MOST_ATTEMPTS = 60.0, 5


def reindex_announced(
    store: Store, collection: Collection, options: ReindexOptions, progress: Progress
) -> ReindexSummary | None:
    """Index the pages whose announced changes are due; return None if none are. Raises the same errors as `reindex`."""
    if not any(row["due"] for row in store.announced_collections() if row["collection"] == collection.name):
        return None
    with open_run(SINGLE_PAGES, store, collection, options, progress) as (record, work):
        taken = store.take_announcements(collection.name, record.run)
        try:
            limited = replace(work, options=replace(options, changes=join(taken)))
            summary = limited()
        except Exception as error:
            for one in taken:
                _end(store, one, str(error))
            raise
        record.counts, record.remark = summary.as_dict(), "; ".join(summary.warnings) or None
        _end_all(store, taken, limited.unread(), summary)
    return summary


def join(taken: Sequence[Announced]) -> PageChanges:
    """Merge the changes of all announcements; for each page the last announcement wins."""
    last = {url: is_deleted for one in taken for urls, is_deleted in ((one.changed, False), (one.deleted, True))
            for url in urls}  # fmt: skip
    return PageChanges(*(tuple(url for url, deleted in last.items() if deleted is which) for which in (False, True)))


def _end_all(store: Store, taken: Sequence[Announced], unread: Mapping[str, str], summary: ReindexSummary) -> None:
    """End each announcement: as failed, as done, or with the warnings that say why the run published or deleted
    nothing.
    """
    for one in taken:
        failed = "; ".join(f"{url}: {unread[url]}" for url in one.changed if url in unread) or None
        unpublished = summary.outcome in (Outcome.TEXT_LOST, Outcome.NOTHING_INDEXED)
        refused = unpublished or (summary.outcome is Outcome.NOTHING_DELETED and one.deleted)
        if failed or not refused:
            _end(store, one, failed)
        else:
            store.end_announcement(one.id, "; ".join(summary.warnings))


def _end(store: Store, one: Announced, error: str | None) -> None:
    """End one run's attempt at `one`. If pages failed and attempts are left, schedule the next attempt."""
    again = error is not None and one.attempts < MOST_ATTEMPTS
    store.end_announcement(one.id, error, AGAIN_S * 2 ** (one.attempts - 1) if again else None)
