"""Formats an experiment's runs as tables, for a terminal and for a Markdown page.

Knows only results.json.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from pipelines.evaluation.experiments.record import Record
from pipelines.evaluation.metrics import answer_metrics, hit_metrics, is_of_hits, label_of
from pipelines.text.counts import counted
from pipelines.text.sheets import Fact, Grid, Part, Sheet
from pipelines.text.tables import TextTable, in_cell, split_between, with_interval
from pipelines.text.tables import as_markdown as table_as_markdown

# A heading, and a function that formats the cell of a measured run.
Column = tuple[str, Callable[[Record], str]]


def score_names_of(found: Mapping[str, Any]) -> list[str]:
    """Return the names of the scores that any run has."""
    return list(dict.fromkeys(name for run in found["runs"] for name in run["scores"]))


def score_columns(found: Mapping[str, Any]) -> dict[str, str]:
    """Return the hit scores that a table shows, with their headings.

    These are the experiment's metric at each k, or just the metric if it has no k, and the metrics with `in_tables`.
    """
    names = score_names_of(found)
    family, _, k = found["metric"].partition("@")
    columns = {name: name.removeprefix(family) for name in names if name.startswith(f"{family}@")}
    columns = columns or {found["metric"]: label_of(found["metric"])}
    always = [metric for metric in hit_metrics() if metric.in_tables]
    further = {
        f"{metric.name}@{k}" if metric.by_k else metric.name: metric.label.removesuffix(" score") for metric in always
    }
    return columns | {name: heading for name, heading in further.items() if name in names and name not in columns}


def answer_columns(found: Mapping[str, Any]) -> dict[str, str]:
    """Return the answer scores that any run has, with their headings."""
    names = score_names_of(found)
    ordered = dict.fromkeys([*(metric.name for metric in answer_metrics()), *names])
    return {name: label_of(name) for name in ordered if name in names and not is_of_hits(name)}


# ------------------------------------------------------------------------------------------- cells


def _tabulate(found: Mapping[str, Any], title: str, columns: Sequence[Column]) -> TextTable:
    """Return a row for each run, sorted by the experiment's metric; failed runs come last, with their errors."""
    runs = sorted(found["runs"], key=lambda run: -run["scores"].get(found["metric"], [-1])[0])
    rows = [
        [run["name"], *(cell(run) for _, cell in columns)]
        if run["state"] == "done"
        else [run["name"], _failure(run), *[""] * (len(columns) - 1)]
        for run in runs
    ]
    return TextTable(title, ["run", *(heading for heading, _ in columns)], rows)


def _failure(run: Record) -> str:
    return f"failed: {run['error'].splitlines()[0]}"


def _shown(part: str, name: str, form: Callable[[Any], str], missing: str = "") -> Callable[[Record], str]:
    """Return a function that formats the value `name` in a run's `part`, such as its scores."""
    return lambda run: missing if (value := (run.get(part) or {}).get(name)) is None else form(value)


def _seconds(step: str) -> Callable[[Record], str]:
    """Return a function for the median seconds of questions with a model's reply, or of all if there are none."""

    def cell(run: Record) -> str:
        timings = (run.get("model") or run)["timings"]
        return f"{timings[step]['p50']:.1f}" if step in timings else ""

    return cell


def _cost(missing: str) -> Column:
    return "$/1000", lambda run: missing if run["cost_per_1000"] is None else f"{run['cost_per_1000']:.2f}"


MEAN = "{0[0]:.3f}".format
MILLISECONDS: Column = ("ms", lambda run: f"{run['timings']['total']['p50'] * 1000:.0f}")


def _bold(form: str) -> Callable[[Sequence[float]], str]:
    """Return a formatter for the score that the runs are ranked by: its value is bold."""
    return lambda score: "**{}** {}".format(*with_interval(score, form).split(" ", 1))


# ------------------------------------------------------------------------------------------- text


def as_sheet(found: Mapping[str, Any], notes: Sequence[Part] = ()) -> Sheet:
    """Return the runs as a table, best first, and `notes` below it; `*` marks the baseline."""
    names, metric, runs = score_columns(found) | answer_columns(found), found["metric"], found["runs"]
    columns: list[Column] = [
        *((heading, _shown("scores", name, MEAN, "–")) for name, heading in names.items()),
        (f"95% {names[metric]}", _shown("scores", metric, "{0[1]:.2f} – {0[2]:.2f}".format)),
        ("to baseline", _shown("against", metric, partial(with_interval, form="+.3f", bounds="+.2f"))),
        ("p", _shown("against", metric, "{0[3]:.3f}".format)),
        MILLISECONDS,
        _cost("–"),
    ]
    marked = [{**run, "name": f"{run['name']} *"} if run["name"] == found["baseline"] else run for run in runs]
    title = f"{found['name']}: {metric.partition('@')[0]}, {counted(found['dataset']['questions'], 'question')}"
    table = _tabulate({**found, "runs": [run for run in marked if run["state"] == "done"]}, title, columns)
    failed = [Fact("failed", f"{run['name']}: {_failure(run)}") for run in runs if run["state"] != "done"]
    return Sheet(title, [Grid(table.head, table.rows), *failed, *stand_ins(found), *notes])


def stand_ins(found: Mapping[str, Any]) -> list[str]:
    """Return warnings for runs whose models failed on some questions, so that their scores mix in other agents."""
    return [
        f"WARNING: {run['name']}: a model failed for {counted(run['stand_ins'], 'question')}, which another agent "
        "answered"
        for run in found["runs"]
        if run.get("stand_ins")
    ]


def describe_plan(plan: Mapping[str, Any]) -> Sheet:
    """Return the plan of an experiment for a person."""
    rows = [*plan["runs"].items(), *((name, f"will fail: {error}") for name, error in plan["failing"].items())]
    title = f"dry run: {counted(plan['questions'], 'question')}, {counted(len(rows), 'run')}"
    return Sheet(title, [Grid(["run", "index"], rows, "<"), Fact("to build", ", ".join(plan["to_build"]) or "none")])


# ------------------------------------------------------------------------------------------- Markdown


def as_markdown(found: Mapping[str, Any]) -> str:
    """Return the runs as tables, best first: their hits, then their answers.

    An experiment that is ranked by an answer score has no table of hits.
    """
    of_answers = bool(answer_columns(found))
    parts = [
        *([table_as_markdown(_hit_table(found))] if is_of_hits(found["metric"]) else []),
        *([table_as_markdown(_answer_table(found)), *map(in_cell, stand_ins(found))] if of_answers else []),
    ]
    return "\n\n".join(parts) + "\n"


def _hit_table(found: Mapping[str, Any]) -> TextTable:
    metric = found["metric"]
    forms = {metric: _bold(".3f")}
    columns: list[Column] = [
        *((head, _shown("scores", name, forms.get(name, MEAN))) for name, head in score_columns(found).items()),
        (f"to {found['baseline'] or 'none'}", _shown("against", metric, partial(with_interval, form="+.3f"))),
        MILLISECONDS,
    ]
    family, _, k = metric.partition("@")
    title = (
        f"{_described(found)}: {label_of(family)} at each number of chunks, with the 95% interval at {k or 'all'}; "
        "differences are paired."
    )
    return _tabulate(found, title, columns)


def _described(found: Mapping[str, Any]) -> str:
    dataset = found["dataset"]
    others = f" ({dataset['unanswerable']:,} about other things)" if dataset.get("unanswerable") else ""
    day = found["created"][:10]
    return (
        f"{counted(dataset['questions'], 'question')}{others} of `{dataset['name']}`, collection "
        f"`{found['collection']}`, {day}"
    )


def _answer_table(found: Mapping[str, Any]) -> TextTable:
    """Return the answer scores with their intervals, and the time, tokens and cost of an answer."""
    metric, plain, forms = found["metric"], partial(with_interval, form=".2f"), {found["metric"]: _bold(".2f")}
    to_baseline = f"{label_of(metric)} to {found['baseline'] or 'none'}"
    difference = _shown("against", metric, partial(with_interval, form="+.2f"))
    columns: list[Column] = [
        *((head, _shown("scores", name, forms.get(name, plain))) for name, head in answer_columns(found).items()),
        *([] if is_of_hits(metric) else [(to_baseline, difference)]),
        ("seconds", _seconds("total")),
        ("first word", _seconds("first_delta")),
        ("tokens read", _shown("model", "prompt_tokens", "{:,.0f}".format)),
        ("written", _shown("model", "completion_tokens", "{:,.0f}".format)),
        _cost(""),
    ]
    title = (
        f"{_described(found)}: answers, with 95% intervals; seconds (medians) and tokens (means) are those of the "
        "questions that a language model replied to; differences are paired."
    )
    return _tabulate(found, title, columns)


# ------------------------------------------------------------------------------------------- the page


def write_into_page(path: Path, name: str, text: str) -> None:
    """Put `text` between the markers of experiment `name`; create a missing page, and keep the rest of an existing one.

    Raises NoPlace for a page without the markers.
    """
    before, after = split_page(path, name)
    path.write_text(f"{before}{text}{after}", encoding="utf-8")


def split_page(path: Path, name: str) -> tuple[str, str]:
    """Return the page before and after the section of experiment `name`, including its markers. Raises NoPlace."""
    begin, end = (f"<!-- experiment {name}: {mark} -->" for mark in ("begin", "end"))
    page = path.read_text(encoding="utf-8") if path.exists() else f"# Quality\n\n{begin}\n{end}\n"
    return split_between(page, begin, end, path)


def file_name(name: str) -> str:
    """Return the name of an experiment as a folder name."""
    return "".join(c if c.isalnum() or c in "-_." else "-" for c in name)
