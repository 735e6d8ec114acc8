"""Publishes what a run has staged: in place, or as a new index beside the live one.

Decides which of the two is cheaper, and whether vanished pages may be deleted; the transactions are the store's. Knows
neither Ray nor the source of pages.
"""

import math
from dataclasses import dataclass, replace

from pipelines.records import Index, IndexSettings
from pipelines.store import (
    BuildResources,
    NoLiveIndex,
    NoSuchIndex,
    Publication,
    RunLock,
    Store,
    build_index,
    promote_index,
    publish_in_place,
)

# How many chunks a rebuild builds while one is changed in place, at two sizes of the graph; between and beyond them it
# grows with the logarithm. Measured on 2 cores, 384 dimensions, all in memory: 0.51 ms against 0.18 where 6 % were
# changed, and 5.7 against 0.66 where 0.5 % were (with `ef_construction` 64, 3.1 against 0.35); docs/scale.md has more.
COSTS_IN_PLACE = ((20_000, 2.9), (1_000_000, 8.6))


@dataclass(frozen=True, slots=True)
class Deletion:
    """Whether vanished pages may be deleted from the index, and the reason if not."""

    allowed: bool
    reason: str = ""


def decide_deletion(deletable: int, pages: int, complete: bool, stopped_by: str, most: float) -> Deletion:
    """Allow deletion after a complete run, if at most the share `most` of the index's pages has vanished."""
    if not complete:
        return Deletion(False, f"the crawl is not complete ({stopped_by}): nothing is deleted")
    if pages and deletable / pages > most:
        return Deletion(
            False,
            f"{deletable} of {pages} pages have vanished, more than `--max-delete-ratio {most:g}` allows: nothing is "
            "deleted. Is the site broken? If not, run again with a larger ratio",
        )
    return Deletion(True)


def find_live_index(store: Store, collection: str) -> Index | None:
    """Return the live index, if there is one."""
    try:
        return store.live_index(collection)
    except NoLiveIndex:
        return None


def find_own_index(store: Store, collection: str) -> Index | None:
    """Return the index whose model a run goes on with: the live one, else a candidate."""
    return find_live_index(store, collection) or store.candidate_index(collection)


def find_base_index(store: Store, collection: str, settings: IndexSettings) -> Index | None:
    """Return the index that a run brings up to date: the live one, or a candidate, if it has the same settings."""
    for index in (find_live_index(store, collection), store.candidate_index(collection)):
        if index is not None and index.fingerprint == settings.fingerprint:
            return index
    return None


def is_cheaper_in_place(changed: int, chunks: int) -> bool:
    """Return whether changing `changed` chunks of an HNSW index of `chunks` is faster than building all of it anew."""
    return changed * cost_in_place(chunks) <= chunks


def cost_in_place(chunks: int) -> float:
    """Return how many chunks a rebuild builds while one is changed in place, in a graph of `chunks`."""
    (small, least), (large, most) = COSTS_IN_PLACE
    grown = math.log(max(chunks, small) / small) / math.log(large / small)
    return least + (most - least) * grown


def publish_run(
    store: Store,
    lock: RunLock,
    run: int,
    settings: IndexSettings,
    base: Index | None,
    delete: bool,
    resources: BuildResources,
    publish: bool = True,
) -> Publication:
    """Build or change the index that `run` was staged for, and make it live if `publish`.

    Readers see the old state until the new one is complete. Raises LostCollection, VectorsMissing.
    """
    changed = store.staged_changes(run, base.id) if base else 0
    in_place = base is not None and is_cheaper_in_place(changed, store.index_stats(base.id)["chunks"])
    if base is not None and (
        not _changes_anything(store, lock, run, base, delete) or (in_place and _may_change_in_place(base, publish))
    ):
        publication = publish_in_place(lock, run, base, delete)
    else:
        publication = build_index(lock, run, settings, base, delete, resources)
    if not publish or publication.published:
        return publication
    return replace(publication, revision=promote_index(lock, run, publication.index), published=True)


def rollback(store: Store, lock: RunLock, run: int) -> tuple[Index, Index, int]:
    """Make the previous index live again; return the index that was live, that one, and its revision.

    Raises NoSuchIndex.
    """
    live = store.live_index(lock.collection)
    previous = store.previous_index(lock.collection)
    if previous is None:
        raise NoSuchIndex(f"collection {lock.collection!r} has no retired index to return to: see `raydex status`")
    return live, previous, promote_index(lock, run, previous.id)


def _changes_anything(store: Store, lock: RunLock, run: int, base: Index, delete: bool) -> bool:
    """Return whether the run would change any row of `base`."""
    staged = store.staged_counts(run)["pages"]
    return bool(staged or (delete and store.deletable_pages(lock.collection, base.id)[0]))


def _may_change_in_place(base: Index, publish: bool) -> bool:
    """Return whether a change in place may be seen: without publishing, only a candidate may change."""
    return publish or base.state == "candidate"
