"""Shows insights from recorded questions: common questions, and gaps in the documentation.

With --out it writes a report for a browser and the same data as JSON. Without --days and --since it covers all stored
questions. Exit codes: 0 done, 1 failed, 2 bad input.
"""

import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from jobs.cli import DONE, BadInput, Messages, check_range, finish, main, make_folder
from jobs.environment import open_store, read_configuration
from jobs.flags import Json, command
from pipelines.insights.changed import changed_answers
from pipelines.insights.gaps import describe_gap, describe_troubles
from pipelines.insights.insights import Period, embedders_of, gather_insights
from pipelines.insights.report import write_report
from pipelines.text.counts import counted
from pipelines.text.progress import describe_seconds
from pipelines.text.sheets import Fact, Grid, Part, Sheet

SHOWN = 5
MENDING = "to mend one: its section, or an answer by `raydex answers add --asked QUESTION …` (docs/feedback.md)"
OUT = "a folder for insights.html and insights.json, or the name of one file (.html or .json)"


def read_time(flag: str, text: str | None) -> datetime | None:
    """Return a day or time of ISO 8601, in UTC unless it says otherwise; None if the flag was not given."""
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise BadInput(f"{flag} is {text!r}: write a day such as 2026-01-31, or 2026-01-31T12:00") from error
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def run(
    collection: Annotated[str | None, Parameter(help="only questions to this collection (default: to all)")] = None,
    *,
    days: Annotated[float | None, Parameter(help="only the last N days")] = None,
    since: Annotated[str | None, Parameter(help="only from this day or time (UTC) on")] = None,
    until: Annotated[str | None, Parameter(help="only before this day or time (UTC)")] = None,
    changed: Annotated[
        bool, Parameter("--changed-answers", help="list answers whose cited sections have changed since")
    ] = False,
    out: Annotated[
        Path | None,
        Parameter(help=OUT),
    ] = None,
    as_json: Json = False,
) -> int:
    started = time.monotonic()
    check_range("--days", days, 0.01, 36_500)
    period = Period.of(days, read_time("--since", since), read_time("--until", until))
    if changed:
        if out:
            raise BadInput("--out writes the whole report: leave it out, or --changed-answers")
        with open_store() as store:
            found = changed_answers(store, period, collection)
        finish(found, as_json, describe_changed(found))
        return DONE
    if out:
        check_out(out)
    with open_store() as store, Messages() as messages:
        insights = gather_insights(store, embedders_of(store, read_configuration()), period, collection, messages)
        view = insights.view(collection or "")
        written = write_report(out, insights) if out else []
    seconds = time.monotonic() - started
    summary = {**view, "written": [str(path) for path in written], "took": round(seconds, 1)}
    finish(summary, as_json, describe(summary))
    return DONE


def check_out(out: Path) -> None:
    """Create the folder of --out. Raises BadInput for a file that is not a report."""
    is_file = out.suffix in (".html", ".json")
    if out.suffix and not is_file and not out.is_dir():
        raise BadInput(f"--out is {out}: name a folder, or a file that ends with .html or .json")
    make_folder("--out", out.parent if is_file else out)


# ---------------------------------------------------------------------------------------------- text output


def describe(view: Mapping[str, Any]) -> Sheet:
    """Return the summary for a person."""
    totals, pages = view["totals"], view["pages"]
    reports = [f"report: {path}" for path in view["written"]]
    if not totals["questions"]:
        return Sheet("no question was recorded in this time: ask some, or choose a longer time", reports)
    facts = [
        Fact("answers", describe_troubles(totals)),
        Fact("rated", f"{totals['up']:,} up, {totals['down']:,} down"),
        Fact("time", f"{_seconds(totals['seconds'])} an answer"),
        Fact("cost", f"${totals['cost']:,.4f}"),
    ]
    if pages["indexed"]:
        cited = f"{pages['cited']:,} of {pages['indexed']:,} were cited, {pages['never_count']:,} never"
        facts.append(Fact("pages", cited))
    parts: list[Part] = [
        *facts,
        *_table("the documentation lacks", "weight", [(gap["weight"], _gap(gap)) for gap in view["gaps"]]),
        *_table("most asked", "asked", [(top["count"], _shown(top)) for top in view["top"] if top["count"] > 1]),
        *_table("pages that readers opened", "opened",
                [(page["clicks"], page["url"]) for page in view["opened"]["pages"]]),
    ]  # fmt: skip
    if view["gaps"]:
        parts += ["", MENDING]
    parts += ["", *view["notes"]] if view["notes"] else []
    parts += [*reports, f"took {describe_seconds(view['took'])}"]
    return Sheet(f"{counted(totals['questions'], 'question')}{_span(view['days'])}", parts)


def describe_changed(found: Mapping[str, Any]) -> Sheet:
    """Return the cited sections that have changed since, for a person."""
    sections = found["changed"]
    answers = sum(one["answers"] for one in sections)
    head = (
        f"{counted(len(sections), 'section has', 'sections have')} changed since {counted(answers, 'answer')} "
        "cited them:"
    )
    parts: list[Part] = []
    for one in sections:
        lines = [f"{one['source']}: {counted(one['answers'], 'answer')}, the last on {one['last']:%Y-%m-%d}"]
        lines += [f"  {_shown({'question': question})}" for question in one["questions"]]
        parts.append(Fact("gone" if one["gone"] else "changed", "\n".join(lines)))
    if found["review"]:
        parts += [
            "",
            (
                f"{counted(found['review'], 'verified answer rests', 'verified answers rest')} on such sections: "
                "`raydex answers review`"
            ),
        ]
    return Sheet(head if sections else "no recorded answer cites a section that has changed since", parts)


def _table(title: str, unit: str, rows: Sequence[tuple[float, str]]) -> list[Part]:
    """Return the first rows of a list: a number and a text in each."""
    if not rows:
        return []
    return [
        "",
        f"{title} ({len(rows):,}):",
        Grid([unit, ""], [(f"{number:g}", text) for number, text in rows[:SHOWN]], "><"),
    ]


def _gap(gap: Mapping[str, Any]) -> str:
    near = f"; nearest: {gap['nearest']['source']}" if gap["nearest"] else ""
    return f"{describe_gap(gap, _shown(gap))}{near}"


def _shown(meaning: Mapping[str, Any], most: int = 90) -> str:
    text = " ".join(meaning["question"].split())
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _span(days: Mapping[str, Any]) -> str:
    names = list(days)
    return f" on {names[0]}" if len(names) == 1 else f" from {names[0]} to {names[-1]}" if names else ""


def _seconds(quantiles: Mapping[str, float | None]) -> str:
    p50, p95 = quantiles["p50"], quantiles["p95"]
    return "no measured time" if p50 is None or p95 is None else f"{p50:.2f} s (median), {p95:.2f} s (95%)"


app = command("insights", __doc__, run)


if __name__ == "__main__":
    main(app)
