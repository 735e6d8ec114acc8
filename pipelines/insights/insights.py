"""Reads the recorded questions of a period and computes insights for one view or many.

Knows the store's interface; knows no HTTP and no command line.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache, partial
from typing import Any

from pipelines.answering.factory import make_embedder
from pipelines.answering.settings import AnswerSettings
from pipelines.insights.groups import MOST_WORDINGS, EmbedderOf, Meanings
from pipelines.insights.masking import mask
from pipelines.insights.view import AskedSite, make_view
from pipelines.records import EmbeddingModel
from pipelines.store import AskedQuestion, NoSuchCollection, OpenedSource, Store
from pipelines.text.counts import counted
from pipelines.text.progress import Passing, Progress, silent

# Maximum questions to read, the newest: without the texts of hits, their rows take about 100 MB.
MOST_QUESTIONS = 100_000
# Days that a report can be narrowed to without reloading.
WINDOWS = (30, 7)
# Maximum collections with a separate view in a report; with more it would be slow to open.
MOST_VIEWS_OF = 12


@dataclass(frozen=True, slots=True)
class Period:
    """From `since` (inclusive) to `until` (exclusive); None means the first question, or the last."""

    since: datetime | None = None
    until: datetime | None = None

    @classmethod
    def of(cls, days: float | None, since: datetime | None, until: datetime | None) -> "Period":
        """Return the period between two times, or the last `days` before `until`, by default now. Raises BadPeriod."""
        if days is not None and since is not None:
            raise BadPeriod("days and since both set the beginning: give one of them")
        if since and until and since >= until:
            raise BadPeriod(f"since {since:%Y-%m-%d %H:%M} is not before until {until:%Y-%m-%d %H:%M}")
        if days is not None:
            since = (until or datetime.now(UTC)) - timedelta(days=days)
        return cls(since, until)


class BadPeriod(ValueError):
    """A period has two start times, or ends before it starts."""


class Insights:
    """The questions of a `period`, read and clustered once; `view` filters them. `notes` list omissions."""

    def __init__(
        self,
        rows: Sequence[AskedQuestion],
        sites: Mapping[str, AskedSite],
        period: Period,
        notes: Sequence[str],
        opened: Sequence[OpenedSource] = (),
    ) -> None:
        self._rows, self._sites, self._period, self._notes = rows, sites, period, list(notes)
        self._opened = opened
        self.created = datetime.now(UTC)

    def view(self, collection: str = "", since: datetime | None = None) -> dict[str, Any]:
        """Return the view of one collection ("": all), starting at `since` if that is later than the period's start."""
        start = max((time for time in (since, self._period.since) if time), default=None)
        found = make_view(self._rows, self._sites, collection, start, self._period.until, self._opened)
        return {"created": self.created.isoformat(timespec="seconds"), "notes": self._notes, **found}

    def views(self) -> list[dict[str, Any]]:
        """Return the views of a report: all collections and each one, over the whole period and its last days."""
        names = [name for name in self._sites if name][:MOST_VIEWS_OF]
        chosen = names if len(self._sites) == 1 else ["", *names]
        return [
            {"window": days, **self.view(name, self._last(days) if days else None)}
            for name in chosen or [""]
            for days in (0, *self._windows())
        ]

    def _windows(self) -> list[int]:
        """Return the windows that show less than everything, and something."""
        times = [row.asked_at for row in self._rows]
        return [days for days in WINDOWS if times and min(times) < self._last(days) <= max(times)]

    def _last(self, days: int) -> datetime:
        return (self._period.until or self.created) - timedelta(days=days)


def gather_insights(
    store: Store,
    embedder_of: EmbedderOf,
    period: Period = Period(),
    collection: str | None = None,
    say: Progress = silent,
) -> Insights:
    """Read the questions of a period and cluster them. Raises NoSuchCollection, StoreUnavailable."""
    indexes = {row["name"]: row["index"] for row in store.collections()}
    total = store.count_asked(collection, period.since, period.until)
    if collection is not None and collection not in indexes and not total:
        raise NoSuchCollection(collection, indexes)
    rows = _read(store, collection, period, total, say)
    names = [collection] if collection else sorted({row.collection for row in rows})
    sites = {name: _site(store, name, indexes.get(name), rows, embedder_of, say) for name in names}
    opened = store.opened_sources(collection, period.since, period.until)
    return Insights(rows, sites, period, [*_notes(total, sites)], opened)


def embedders_of(store: Store, settings: AnswerSettings) -> EmbedderOf:
    """Return a function that returns the embedder of a collection's model; each model is loaded once."""
    loaded: dict[EmbeddingModel, Any] = {}

    def embedder_of(collection: str) -> Any:
        model = store.live_index(collection).settings.embedding
        if model not in loaded:
            loaded[model] = make_embedder(settings, model)
        return loaded[model]

    return embedder_of


def _read(store: Store, collection: str | None, period: Period, total: int, say: Progress) -> list[AskedQuestion]:
    """Return the rows, newest first, with masked text."""
    mask_question = lru_cache(None)(mask)
    rows = []
    with store.asked(collection, period.since, period.until, MOST_QUESTIONS) as found:
        for row in found:
            question, comments = mask_question(row.question), tuple(map(mask, row.comments))
            rows.append(replace(row, question=question, comments=comments, answer=mask(row.answer)))
            if len(rows) % 1_000 == 0:
                say(Passing(f"read {len(rows):,} of {counted(min(total, MOST_QUESTIONS), 'question')}"))
    return rows


def _site(
    store: Store, name: str, index: int | None, rows: Sequence[AskedQuestion], embedder_of: EmbedderOf, say: Progress
) -> AskedSite:
    own = [row for row in rows if row.collection == name]
    say(f"{name or 'no collection'}: clustering {counted(len(own), 'question')}")
    embedder = embedder_of(name) if index is not None and own else None
    meanings = Meanings.of(own, embedder, say=say)
    if index is None:
        return AskedSite(meanings)
    return AskedSite(meanings, store.indexed_pages(index), partial(store.indexed_sections, index))


def _notes(total: int, sites: Mapping[str, AskedSite]) -> Iterator[str]:
    """Yield notes for a person about questions that the insights leave out."""
    if total > MOST_QUESTIONS:
        yield (
            f"Only the newest {MOST_QUESTIONS:,} of {counted(total, 'question was', 'questions were')} read: a "
            "shorter time shows the others."
        )
    for name, site in sites.items():
        if left := site.meanings.left_out:
            yield (
                f"{name or 'Without a collection'}: {counted(MOST_WORDINGS, 'wording was', 'wordings were')} "
                "clustered, those asked most often and those without a good answer first; "
                f"{counted(left, 'more forms', 'more form')} a group each."
            )
