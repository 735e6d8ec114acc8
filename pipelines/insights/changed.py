"""Finds recorded answers whose cited sections say something else now, or are gone."""

from typing import Any

from pipelines.answering.verified.writing import REVIEW, review_answers
from pipelines.insights.insights import Period
from pipelines.insights.masking import mask
from pipelines.store import Store, is_copy

MOST_SECTIONS = 1_000


def changed_answers(store: Store, period: Period, collection: str | None = None) -> dict[str, Any]:
    """Return the sections that recorded answers cited and that changed since, those of most answers first.

    Each has its `collection` and `source`, how many `answers` cited it as it was before, the `last` time that one did,
    and the last `questions`, masked; `gone`: the live index has it no more. With them, under `review`, how many
    verified answers a person has to look at. Raises NoSuchCollection.
    """
    rows = [store.find_collection(collection)] if collection else store.collections()
    live = {row["name"]: row["index"] for row in rows if row["index"] is not None and not is_copy(row["name"])}
    sections: list[dict[str, Any]] = [
        {"collection": name, **row, "questions": [*map(mask, row["questions"])]}
        for name, index in live.items()
        for row in store.changed_sections(name, index, period.since, period.until, MOST_SECTIONS)
    ]
    sections.sort(key=lambda one: (-one["answers"], one["source"]))
    review = sum(one.state == REVIEW for name in live for one in review_answers(store, name))
    return {"changed": sections, "review": review}
