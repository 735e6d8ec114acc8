"""Reports on a collection's last days: how fresh it is, what changed, what readers asked.

Knows the store and insights; does not know the recipients.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from pipelines.answering.settings import AnswerSettings
from pipelines.indexing.publish import COUNTED
from pipelines.insights.gaps import TROUBLES, describe_gap, describe_troubles
from pipelines.insights.insights import Period, embedders_of, gather_insights
from pipelines.nights.journal import NIGHTLY
from pipelines.nights.notices.notice import Notice
from pipelines.nights.result import outcome_of
from pipelines.store import Store
from pipelines.text.counts import counted
from pipelines.text.progress import Progress, describe_seconds
from pipelines.text.sheets import Fact, Part, Sheet

RUNS, GROUPS = 200, 10  # runs to examine, groups of unanswered questions to show
UPDATING = (NIGHTLY, "reindex")
TOTALS = ("questions", "unknown", "low", "failed", "up", "down")


def report_on(
    store: Store, settings: AnswerSettings, collection: str, days: float, with_questions: bool, say: Progress
) -> dict[str, Any]:
    """Return the report as JSON; without `with_questions`, a group of questions is shown by its nearest section.

    Raises NoLiveIndex.
    """
    now = datetime.now(UTC)
    live, status = store.live_index(collection), store.status(collection, RUNS)
    since = now - timedelta(days=days)
    updates = [run for run in status["runs"] if run["kind"] in UPDATING]
    good = status["freshness"]["last_run"]
    published = [row for row in store.publications(live.id) if row["published_at"] >= since]
    view = gather_insights(store, embedders_of(store, settings), Period(since), collection, say).view(collection)
    return {
        "collection": collection,
        "days": days,
        "revision": live.revision,
        "pages": status["pages"],
        "updated": good and good.isoformat(timespec="seconds"),
        "updated_s": (now - good).total_seconds() if good else None,
        "nights": dict(
            Counter(outcome_of(run) for run in updates if run["kind"] == NIGHTLY and run["started"] >= since)
        ),
        "changed": {name: sum(row[name] for row in published) for name in COUNTED},
        "questions": {name: view["totals"][name] for name in TOTALS},
        "unanswered": [_group(gap, with_questions) for gap in view["gaps"][:GROUPS]],
    }


def describe_report(report: Mapping[str, Any]) -> Sheet:
    """Return a report for a person."""
    pages = ", ".join(f"{count:,} {state}" for state, count in report["pages"].items())
    updated = "never" if report["updated_s"] is None else f"{describe_seconds(report['updated_s'])} ago"
    nights = ", ".join(f"{count:,} {outcome}" for outcome, count in report["nights"].items())
    asked = report["questions"]
    return Sheet(
        f"Raydex: the last {counted(report['days'], 'day')} of {report['collection']}",
        [
            Fact("fresh", f"last full run {updated}; revision {report['revision']}"),
            Fact("pages", pages or "none"),
            Fact("nights", nights or "none"),
            Fact("changed", f"{_changes(report['changed'], 'pages')}; {_changes(report['changed'], 'chunks')}"),
            Fact("asked", f"{counted(asked['questions'], 'question')}: {describe_troubles(asked)}"),
            Fact("rated", f"{asked['up']:,} up, {asked['down']:,} down"),
            *_unanswered(report["unanswered"]),
        ],
    )


def report_notice(report: Mapping[str, Any]) -> Notice:
    """Return a report as a notice."""
    sheet = describe_report(report)
    return Notice(uuid4().hex, "report", report["collection"], sheet.title, sheet.lines(), report)


def _changes(changed: Mapping[str, int], what: str) -> str:
    added, other, removed = (changed[f"{what}_{how}"] for how in ("added", "changed", "removed"))
    return f"{what} +{added:,} ~{other:,} -{removed:,}"


def _group(gap: Mapping[str, Any], with_questions: bool) -> dict[str, Any]:
    shown = ("count", "kind", *TROUBLES, *(("question",) if with_questions else ()))
    return {**{name: gap[name] for name in shown}, "nearest": gap["nearest"] and gap["nearest"]["source"]}


def _unanswered(groups: Sequence[Mapping[str, Any]]) -> Iterator[Part]:
    if groups:
        yield f"unanswered, in {counted(len(groups), 'group')}:"
    for group in groups:
        near = f"\nnearest: {group['nearest']}" if group["nearest"] else ""
        yield Fact(f"{group['count']:,} ×", f"{describe_gap(group, group.get('question', ''))}{near}")
