"""Describes the next night of a collection without running it.

Reads the database, start pages and sitemaps; writes nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any

from pipelines.indexing.collection import Collection
from pipelines.indexing.run import plan_reindex
from pipelines.indexing.settings import ReindexOptions
from pipelines.indexing.summary import describe_plan
from pipelines.nights.gate import check_measures
from pipelines.nights.journal import BEGAN, HOURS, NIGHTLY, mark_of, night_steps
from pipelines.nights.regression import known_questions
from pipelines.nights.upkeep import NightUpkeep
from pipelines.records.night_choices import TrainChoices
from pipelines.store import Store
from pipelines.text.counts import counted
from pipelines.text.progress import Progress, describe_seconds, silent
from pipelines.text.sheets import Fact, Sheet

RUNS = 20  # runs to examine, and how many of them give the median for the expected time
OF_THESE = 5
CHANGED = ("new", "changed", "deleted")


def plan_night(
    store: Store,
    collection: Collection,
    options: ReindexOptions,
    *,
    home: Path,
    folder: Path = Path(),
    progress: Progress = silent,
) -> dict[str, Any]:
    """Return the plan of a night as JSON. Raises the errors of `run_night` before its start, and SiteUnreachable."""
    night, name = collection.night, collection.name
    check_measures(night.may_fall)
    upkeep = NightUpkeep(store, name, night, home, folder, progress)
    known = known_questions(store, name, [folder / file for file in night.questions])
    runs = store.last_runs(name, RUNS)
    return {
        "collection": name,
        "reindex": plan_reindex(store, collection, options, progress),
        "goes_on_after": _steps_of_unfinished(runs, mark_of(collection)),
        "expected_s": _median_of_last(runs, lambda run: (run["ended"] - run["started"]).total_seconds()),
        "expected_pages": _median_of_last(
            runs, lambda run: sum(run["counts"].get("pages", {}).get(key, 0) for key in CHANGED)
        ),
        "judge": {
            "questions": str(known),
            "smoke": 0 if known.examples or known.left_out else night.smoke,
            "may_fall": night.may_fall,
            "most_unjudged": night.most_unjudged,
        },
        "upkeep": upkeep.plan() | _trainings(night.train),
    }


def describe_night_plan(plan: Mapping[str, Any]) -> Sheet:
    """Return a plan for a person."""
    facts = []
    if plan["goes_on_after"]:
        facts.append(Fact("continue", f"the last night, after: {', '.join(plan['goes_on_after'])}"))
    facts += describe_plan(plan["reindex"])
    expected = plan["expected_s"]
    known = (
        "not known until a run has finished" if expected is None else f"about {describe_seconds(expected)}, as before"
    )
    facts.append(Fact("time", known))
    if plan["expected_pages"] is not None:
        facts.append(
            Fact(
                "changes", f"about {counted(round(plan['expected_pages']), 'page')} new, changed or deleted, as before"
            )
        )
    judge = plan["judge"]
    asked = f"{counted(judge['smoke'], 'smoke question')} from headings" if judge["smoke"] else judge["questions"]
    when = f"if more than {judge['most_unjudged']:.0%} of the pages change, or a setting: by {asked}"
    falls = ", ".join(f"{name} {fall:g}" for name, fall in judge["may_fall"].items())
    facts.append(Fact("judge", f"{when}\nmay fall: {falls}"))
    facts += [Fact(step, said) for step, said in plan["upkeep"].items()]
    return Sheet(f"the next night of collection {plan['collection']}; nothing is changed now", facts)


def _trainings(chosen: Sequence[TrainChoices]) -> dict[str, str]:
    """Return a description of the trainings to repeat."""
    said = [f"{one.kind} into {one.output} once it is {counted(one.days, 'day')} old" for one in chosen]
    return {"train": ", ".join(said)} if said else {}


def _steps_of_unfinished(runs: Sequence[Mapping[str, Any]], mark: str) -> list[str]:
    """Return the finished steps of the last run, if it is an unfinished night that can be resumed."""
    last = next(iter(runs), None)
    if last is None or last["kind"] != NIGHTLY or last["state"] == "done" or last["alive"]:
        return []
    is_late = datetime.now(UTC) - last["started"] >= timedelta(hours=HOURS)
    goes_on = not is_late and last["steps"].get(BEGAN, {}).get("mark") == mark
    return list(night_steps(last["steps"])) if goes_on else []


def _median_of_last(runs: Sequence[Mapping[str, Any]], value: Callable[[Mapping[str, Any]], float]) -> float | None:
    """Return the median over the last nights, or, without any, over the last other runs over all pages."""
    found: dict[str, list[float]] = {NIGHTLY: [], "reindex": []}
    for run in runs:
        if run["state"] == "done" and run["kind"] in found:
            found[run["kind"]].append(value(run))
    values = (found[NIGHTLY] or found["reindex"])[:OF_THESE]
    return median(values) if values else None
