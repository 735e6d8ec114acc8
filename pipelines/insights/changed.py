"""Finds recorded answers whose cited sections have changed or disappeared."""

from typing import Any

from pipelines.answering.verified.writing import REVIEW, review_answers
from pipelines.insights.insights import Period
from pipelines.insights.masking import mask
from pipelines.store import Store, is_copy

MOST_SECTIONS = 1_000


def changed_answers(store: Store, period: Period, collection: str | None = None) -> dict[str, Any]:
    """Return the cited sections that have changed since, the most cited first.

    Each has its `collection` and `source`, the number of `answers` that cited the old version, the `last` time that one
    did, and the last `questions`, masked. `gone` is set if the live index no longer has the section. `review` counts
    the verified answers that need a person's review. Raises NoSuchCollection.
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
