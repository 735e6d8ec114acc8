"""What the absence of a page means: it is gone once all that may lead to it was read in full."""

from collections.abc import Sequence

from pipelines.indexing.sources.source import PageSource
from pipelines.store import Store


def mark_unseen(
    store: Store, collection: str, run: int, sources: Sequence[PageSource], complete: Sequence[PageSource]
) -> None:
    """Mark pages as gone that `run` did not see: those of the `complete` sources, and those of no source at all.

    `sources` are all that the collection has. Pages stay that another one may lead to: one that was cut short, or that
    `run` left out.
    """
    others = [source for source in sources if source not in complete]
    known = store.known_urls(collection)
    kept = [url for url in known if any(source.covers(url) for source in others)] if others else []
    gone = {prefix: source.absence for source in complete for prefix in source.prefixes}
    for prefix, reason in gone.items():
        store.mark_unseen(collection, run, prefix, reason, kept)
    claimed = tuple(prefix for source in sources for prefix in source.prefixes)
    if claimed:
        store.mark_unclaimed(collection, run, [url for url in known if not url.startswith(claimed)])
