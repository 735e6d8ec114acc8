"""Publishes the staged pages of a run: in place, or as a new index next to the live one.

It decides which of the two is cheaper, and whether vanished pages may be deleted. The store does the transactions. This
module knows neither Ray nor the source of pages.
"""

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal

from pipelines.records import Index, IndexSettings
from pipelines.store import (
    BuildResources,
    Deleting,
    NoLiveIndex,
    NoSuchIndex,
    Publication,
    RunLock,
    Store,
    build_index,
    promote_index,
    publish_in_place,
    return_to_revision,
    returnable,
)
from pipelines.text.counts import counted

# How many chunks a rebuild builds in the time of one in-place change, at two sizes of the graph. Between and beyond
# them, the ratio grows with the logarithm. Measured on 2 cores, 384 dimensions, all in memory: 0.51 ms in place and
# 0.18 ms in a rebuild with 6% of the chunks changed, 5.7 and 0.66 ms with 0.5% (3.1 and 0.35 ms with
# `ef_construction` 64). benchmarks/results/scale.md has more.
COSTS_IN_PLACE = ((20_000, 2.9), (1_000_000, 8.6))
# Share of its text that an index may lose at once: a cleanup loses less, a new theme that hides the text loses more.
MAX_LOSS = 0.5
# The counts of each publish.
COUNTED = tuple(f"{what}_{how}" for what in ("pages", "chunks") for how in ("added", "changed", "removed"))


def deletion_refusal(deletable: int, pages: int, stopped_by: str, most: float) -> str:
    """Return why vanished pages may not be deleted from an index, "" if they may or none have vanished.

    They may be deleted after a complete run (not `stopped_by`), if they are at most the share `most` of the index.
    """
    if deletable and stopped_by:
        return stopped_by
    if pages and deletable / pages > most:
        return (
            f"{deletable} of {counted(pages, 'page has', 'pages have')} vanished, more than `--max-delete-ratio "
            f"{most:g}` allows: none of them is deleted. Is the site broken? If not, run `raydex index` with a larger "
            "ratio"
        )
    return ""


def loss_refusal(before: int, after: int, most: float, remedy: str) -> str:
    """Return why a run that leaves `after` of `before` bytes of text may not publish, and the `remedy`; "" if it may.

    It may lose the share MAX_LOSS, or `most` if that is more.
    """
    lost = 1 - after / before if before else 0.0
    if lost <= max(most, MAX_LOSS):
        return ""
    return (
        f"{lost:.0%} of the text would be lost: {counted(before, 'byte becomes', 'bytes become')} {after:,}. Nothing "
        "is published. Is the site broken, can its new theme not be read, or do the collection's own patterns "
        f"(`exclude`) or selectors (`html`) leave its text out? If nothing is wrong, {remedy}"
    )


def find_live_index(store: Store, collection: str) -> Index | None:
    """Return the live index, if there is one."""
    with suppress(NoLiveIndex):
        return store.live_index(collection)
    return None


def find_base_index(store: Store, collection: str, settings: IndexSettings) -> Index | None:
    """Return the index that a run updates: the live one, or a candidate, if it has the same settings."""
    for index in (find_live_index(store, collection), store.candidate_index(collection)):
        if index is not None and index.fingerprint == settings.fingerprint:
            return index
    return None


def is_cheaper_in_place(changed: int, chunks: int) -> bool:
    """Return whether changing `changed` chunks of an HNSW index of `chunks` is faster than rebuilding it."""
    return changed * cost_in_place(chunks) <= chunks


def cost_in_place(chunks: int) -> float:
    """Return how many chunks a rebuild builds in the time of one in-place change, in a graph of `chunks`."""
    (small, least), (large, most) = COSTS_IN_PLACE
    grown = math.log(max(chunks, small) / small) / math.log(large / small)
    return least + (most - least) * grown


def publish_run(
    store: Store,
    lock: RunLock,
    run: int,
    settings: IndexSettings,
    base: Index | None,
    delete: Deleting,
    resources: BuildResources,
    publish: bool = True,
) -> Publication:
    """Build or change the index that `run` was staged for, and make it live if `publish`.

    Readers see the old state until the new one is complete. Raises LostCollection, VectorsMissing.
    """
    changed = store.staged_changes(run, base.id) if base else 0
    may_change = publish or (base is not None and base.state == "candidate")  # readers would see the change at once
    in_place = base is not None and is_cheaper_in_place(changed, store.index_stats(base.id)["chunks"])
    if base is not None and (not changes_anything(store, run, base, delete) or (in_place and may_change)):
        publication = publish_in_place(lock, run, base, delete)
    else:
        publication = build_index(lock, run, settings, base, delete, resources)
    if not publish or publication.published:
        return publication
    return replace(publication, revision=promote_index(lock, run, publication.index), published=True)


@dataclass(frozen=True, slots=True)
class KnownState:
    """A state of a collection: the live revision, an earlier one that it can return to, or a retired index.

    `since` is when it was published, and `changes` are that publish's counts: None and empty if no longer known.
    `returned_to` is the revision that a rollback restored with it.
    """

    index: int
    revision: int
    kind: Literal["live", "earlier", "retired"]
    since: datetime | None = None
    changes: Mapping[str, int] = field(default_factory=dict)
    returned_to: int | None = None


def known_states(store: Store, collection: str) -> list[KnownState]:
    """Return the live state, and the states that the collection can return to, latest first. Raises NoLiveIndex."""
    live = store.live_index(collection)
    rows = store.publications(live.id)
    by_revision = {row["revision"]: row for row in rows}
    states = [_state_of(live, live.revision, by_revision)]
    for revision in sorted(returnable(rows, live.revision), reverse=True):
        if any(by_revision[revision + 1][name] for name in COUNTED):  # becoming live again changes no chunk
            states.append(_state_of(live, revision, by_revision))
    return states + [KnownState(one.id, one.revision, "retired") for one in store.retired_indexes(collection)]


def _state_of(live: Index, revision: int, publications: Mapping[int, Mapping[str, Any]]) -> KnownState:
    kind: Literal["live", "earlier"] = "live" if revision == live.revision else "earlier"
    row = publications.get(revision, {})
    changes = {name: row[name] for name in COUNTED if row}
    return KnownState(live.id, revision, kind, row.get("published_at"), changes, row.get("returned_to"))


def rollback(store: Store, lock: RunLock, run: int, to: KnownState | None = None) -> tuple[Index, int, int]:
    """Make an earlier state live again (None: the previous index).

    Return the index that was live, the new one's id and its revision. Raises NoSuchIndex, NoSuchRevision.
    """
    live = store.live_index(lock.collection)
    if to is None:
        to = next((one for one in known_states(store, lock.collection) if one.kind == "retired"), None)
    if to is None:
        raise NoSuchIndex(f"collection {lock.collection!r} has no retired index to return to: see `raydex status`")
    if to.kind == "retired":
        return live, to.index, promote_index(lock, run, to.index)
    return live, to.index, return_to_revision(lock, run, live, to.revision).revision


def changes_anything(store: Store, run: int, base: Index, delete: Deleting) -> bool:
    """Return whether the run would change any row of `base`."""
    staged = store.staged_counts(run)["pages"]
    only = None if isinstance(delete, bool) else delete
    return bool(staged or (delete and store.deletable_pages(base.collection, base.id, only)["deletable"]))
