"""Tables of an experiment's runs, as text and as Markdown in a page.

Knows results.json and nothing else.
"""

import html
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pipelines.evaluation.experiments.record import Record
from pipelines.evaluation.metrics import answer_metrics, hit_metrics, is_of_hits, label_of

# The study's columns at its own numbers of chunks.
STUDY = ("experiment", "embedding_model_name", "chunk_size", "num_chunks", "retrieval_score", "quality_score")


class NoPlace(ValueError):
    """A page exists, but has no place for the table."""


class BadStudy(ValueError):
    """A file can't be read as the study's results."""


def best_first(found: Mapping[str, Any]) -> list[Record]:
    """Return the runs by their score in the experiment's metric; failed ones last."""
    return sorted(found["runs"], key=lambda run: -run["scores"].get(found["metric"], [-1])[0])


def score_columns(found: Mapping[str, Any]) -> dict[str, str]:
    """Return the scores of hits that a table shows, with their headings.

    The experiment's metric at each k, or whatever it is, and the metrics that stand beside it.
    """
    names = dict.fromkeys(name for run in found["runs"] for name in run["scores"])
    family, _, k = found["metric"].partition("@")
    columns = {name: name.removeprefix(family) for name in names if name.startswith(f"{family}@")}
    columns = columns or {found["metric"]: label_of(found["metric"])}
    beside = {f"{metric.name}@{k}" if metric.by_k else metric.name: metric for metric in hit_metrics() if metric.beside}
    further = {column: metric.label.removesuffix(" score") for column, metric in beside.items()}
    return columns | {name: heading for name, heading in further.items() if name in names and name not in columns}


def answer_columns(found: Mapping[str, Any]) -> dict[str, str]:
    """Return the scores of answers that any run has, with their headings."""
    names = dict.fromkeys(name for run in found["runs"] for name in run["scores"])
    ordered = dict.fromkeys([*(metric.name for metric in answer_metrics()), *names])
    return {name: label_of(name) for name in ordered if name in names and not is_of_hits(name)}


# ------------------------------------------------------------------------------------------- text


def as_text(found: Mapping[str, Any]) -> str:
    """Return the runs as aligned columns for a terminal, best first; `*` marks the baseline."""
    columns, metric = score_columns(found) | answer_columns(found), found["metric"]
    head = ["run", *columns.values(), f"95 % {columns[metric]}", "to baseline", "p", "ms", "$/1000"]
    runs = best_first(found)
    rows = [head, *(_text_row(run, columns, found) for run in runs if run["state"] == "done")]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))]).rstrip()
        for row in rows
    ]
    failed = [f"{run['name']}: failed: {run['error'].splitlines()[0]}" for run in runs if run["state"] != "done"]
    title = f"{found['name']}: {metric.partition('@')[0]}, {found['dataset']['questions']:,} questions"
    return "\n".join(f"  {line}" if line != title else line for line in [title, *lines, *failed, *stand_ins(found)])


def stand_ins(found: Mapping[str, Any]) -> list[str]:
    """Return which runs measure their models in part only, because these failed for some questions."""
    return [
        f"WARNING: {run['name']}: a model failed for {run['stand_ins']:,} questions, which another agent answered"
        for run in found["runs"]
        if run.get("stand_ins")
    ]


def _text_row(run: Record, columns: Mapping[str, str], found: Mapping[str, Any]) -> list[str]:
    metric = found["metric"]
    score, against = run["scores"].get(metric), run.get("against", {}).get(metric)
    return [
        run["name"] + (" *" if run["name"] == found["baseline"] else ""),
        *(f"{run['scores'][name][0]:.3f}" if name in run["scores"] else "–" for name in columns),
        f"{score[1]:.2f} – {score[2]:.2f}" if score else "",
        f"{against[0]:+.3f} [{against[1]:+.2f}, {against[2]:+.2f}]" if against else "",
        f"{against[3]:.3f}" if against else "",
        f"{run['timings']['total']['p50'] * 1000:.0f}",
        "–" if run["cost_per_1000"] is None else f"{run['cost_per_1000']:.2f}",
    ]


def plan_as_text(plan: Mapping[str, Any]) -> str:
    """Return the plan of an experiment for a person."""
    lines = [f"  {name}: {index}" for name, index in plan["runs"].items()]
    lines += [f"  {name}: will fail: {error}" for name, error in plan["failing"].items()]
    head = f"dry run: {plan['questions']:,} questions, {len(lines)} runs"
    return "\n".join([head, *lines, f"indexes to build: {', '.join(plan['to_build']) or 'none'}"])


# ------------------------------------------------------------------------------------------- Markdown


def as_markdown(found: Mapping[str, Any], study: Sequence[Mapping[str, Any]] = ()) -> str:
    """Return the runs as tables, best first: of their hits, of their answers, and the study's published runs.

    An experiment that is ranked by a score of the answers has no table of hits.
    """
    parts = ["" if metric_of_answers(found) else _hit_table(found), _answer_table(found), _study_table(study)]
    return "\n\n".join(part for part in parts if part) + "\n"


def metric_of_answers(found: Mapping[str, Any]) -> bool:
    """Return whether the runs are ranked by a score of their answers."""
    return not is_of_hits(found["metric"])


def _hit_table(found: Mapping[str, Any]) -> str:
    columns, metric = score_columns(found), found["metric"]
    head = ["run", *columns.values(), f"to {found['baseline'] or 'none'}", "ms"]
    rows = [_row(run, list(columns), metric) for run in best_first(found)]
    family, _, k = metric.partition("@")
    title = (
        f"{_described(found)}: {label_of(family)} at each number of chunks, with the 95 % interval at {k or 'all'}; "
        "differences are paired."
    )
    return f"{title}\n\n{_table(head, rows)}"


def _described(found: Mapping[str, Any]) -> str:
    dataset = found["dataset"]
    others = f" ({dataset['unanswerable']:,} about other things)" if dataset.get("unanswerable") else ""
    day = found["created"][:10]
    return (
        f"{dataset['questions']:,} questions{others} of `{dataset['name']}`, collection `{found['collection']}`, {day}"
    )


def _row(run: Record, columns: Sequence[str], metric: str) -> list[str]:
    if run["state"] != "done":
        return [run["name"], f"failed: {run['error'].splitlines()[0]}", *[""] * (len(columns) + 1)]
    against = run.get("against", {}).get(metric)
    return [
        run["name"],
        *(_score(run["scores"].get(name), name == metric) for name in columns),
        f"{against[0]:+.3f} [{against[1]:+.3f}, {against[2]:+.3f}]" if against else "",
        f"{run['timings']['total']['p50'] * 1000:.0f}",
    ]


def _score(score: Sequence[float] | None, with_interval: bool = False) -> str:
    if score is None:
        return ""
    return f"**{score[0]:.3f}** [{score[1]:.3f}, {score[2]:.3f}]" if with_interval else f"{score[0]:.3f}"


def _answer_table(found: Mapping[str, Any]) -> str:
    """Return the scores of the answers with their intervals, and what an answer took; "" without answers."""
    columns, metric = answer_columns(found), found["metric"]
    if not columns:
        return ""
    against = [f"{label_of(metric)} to {found['baseline'] or 'none'}"] if metric_of_answers(found) else []
    head = ["run", *columns.values(), *against, "seconds", "first word", "tokens read", "written", "$/1000"]
    rows = [_answer_row(run, list(columns), metric if against else "") for run in best_first(found)]
    title = (
        f"{_described(found)}: answers, with 95 % intervals; seconds (medians) and tokens (means) are those of the "
        "questions that a language model replied to; differences are paired."
    )
    return "\n\n".join([title, _table(head, rows), *map(_cell, stand_ins(found))])


def _answer_row(run: Record, columns: Sequence[str], metric: str) -> list[str]:
    if run["state"] != "done":
        return [run["name"], f"failed: {run['error'].splitlines()[0]}", *[""] * (len(columns) + 4 + bool(metric))]
    against, model = run.get("against", {}).get(metric), run.get("model") or {}
    seconds = model["timings"] if model else run["timings"]
    difference = f"{against[0]:+.2f} [{against[1]:+.2f}, {against[2]:+.2f}]" if against else ""
    return [
        run["name"],
        *(_mean(run["scores"].get(name), name == metric) for name in columns),
        *([difference] if metric else []),
        *(f"{seconds[step]['p50']:.1f}" if step in seconds else "" for step in ("total", "first_delta")),
        *(f"{model[tokens]:,.0f}" if model else "" for tokens in ("prompt_tokens", "completion_tokens")),
        "" if run["cost_per_1000"] is None else f"{run['cost_per_1000']:.2f}",
    ]


def _mean(score: Sequence[float] | None, ranked_by: bool) -> str:
    if score is None:
        return ""
    value = f"{score[0]:.2f}"
    return f"{f'**{value}**' if ranked_by else value} [{score[1]:.2f}, {score[2]:.2f}]"


def read_study(path: Path) -> list[dict[str, Any]]:
    """Return the runs of the study, a JSON list of objects with retrieval_score. Raises BadStudy."""
    try:
        runs = json.loads(path.read_text(encoding="utf-8"))
        return [{**run, "retrieval_score": float(run["retrieval_score"])} for run in runs]
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise BadStudy(f"--study {path} can't be read as a list of runs with retrieval_score: {error!r}") from error


def _study_table(study: Sequence[Mapping[str, Any]]) -> str:
    """Return the study's runs, best first."""
    if not study:
        return ""
    head = ["the study's run", "embedding model", "chunk size", "chunks", "retrieval score", "quality score"]
    ranked = sorted(study, key=lambda run: -run["retrieval_score"])
    rows = [[_number(run.get(name)) for name in STUDY] for run in ranked]
    return f"The study's {len(rows)} published runs (its own 177 questions):\n\n{_table(head, rows)}"


def _number(value: Any) -> str:
    return f"{value:.3f}" if isinstance(value, float) else "" if value is None else str(value)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *([_cell(text) for text in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(text: str) -> str:
    """Return a text that stays in its cell of a Markdown table."""
    return html.escape(" ".join(text.split()), quote=False).replace("|", "\\|")


# ------------------------------------------------------------------------------------------- the page


def write_into_page(path: Path, name: str, text: str) -> None:
    """Put `text` between the marks of experiment `name`; a missing page is made, the rest of a page stays.

    Raises NoPlace for a page without the marks.
    """
    before, after = split_page(path, name)
    path.write_text(f"{before}{text}{after}", encoding="utf-8")


def split_page(path: Path, name: str) -> tuple[str, str]:
    """Return what stands before and after the place of experiment `name`, its marks included. Raises NoPlace."""
    begin, end = (f"<!-- experiment {name}: {mark} -->" for mark in ("begin", "end"))
    page = path.read_text(encoding="utf-8") if path.exists() else f"# Quality\n\n{begin}\n{end}\n"
    return split_between(page, begin, end, path)


def split_between(page: str, begin: str, end: str, path: Path) -> tuple[str, str]:
    """Return what stands before and after the place between two marks, the marks included. Raises NoPlace."""
    if page.count(begin) != 1 or page.count(end) != 1 or page.index(begin) > page.index(end):
        raise NoPlace(f"{path} has no place for the table: put the lines {begin} and {end} where it goes")
    before, rest = page.split(begin)
    return f"{before}{begin}\n", f"{end}{rest.split(end)[1]}"


def file_name(name: str) -> str:
    """Return the name of an experiment as that of a folder."""
    return "".join(c if c.isalnum() or c in "-_." else "-" for c in name)
