"""Decides when an absent page is gone: once every source that may contain it was read completely."""

from collections.abc import Sequence

from pipelines.indexing.sources.source import PageSource
from pipelines.store import Store


def mark_unseen(
    store: Store, collection: str, run: int, sources: Sequence[PageSource], complete: Sequence[PageSource]
) -> None:
    """Mark pages that `run` did not see as gone: pages of the `complete` sources, and of no source at all.

    `sources` are all sources of the collection. A page stays if it may belong to a source that was cut short or that
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
