"""An experiment's results as a page to look at and as a table to put into one. Knows results.json and nothing else.

The page is one file: data, styles and drawing are in it, and it may load nothing. Whatever comes from documents or
questions reaches it as JSON and is shown as text.
"""

import html
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pipelines.evaluation.experiments.comparison import Record

# Questions whose hits the page carries; beyond it a browser takes seconds to open the file.
MOST_QUESTIONS = 1_000
# The study's columns at its own numbers of chunks, and ours beside them.
STUDY = ("experiment", "embedding_model_name", "chunk_size", "num_chunks", "retrieval_score", "quality_score")


class NoPlace(ValueError):
    """A page exists but does not say where the table goes."""


def as_html(found: Mapping[str, Any], gate: Sequence[str] = ()) -> str:
    """The report; `gate` are the gate's verdicts in words."""
    template = Path(__file__).with_name("report.html").read_text(encoding="utf-8")
    parts = {
        "TITLE": html.escape(f"{found['name']}: experiment"),
        "DATA": _inert({**_shown(found), "gate": list(gate)}),
    }
    return re.sub("@@(TITLE|DATA)@@", lambda mark: parts[mark[1]], template)


def _inert(data: Any) -> str:
    """JSON that can't end its script element, nor anything else of the page."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _shown(found: Mapping[str, Any]) -> dict[str, Any]:
    """What the page draws; of very many questions the hits of those alone that set runs apart most."""
    drawn = {*_most_different(found)}
    return {**found, "runs": [_without(run, drawn) for run in found["runs"]]}


def _without(run: Record, drawn: set[int]) -> Record:
    kept = {key: value for key, value in run.items() if key not in ("settings", "index")}
    if "found" in run:
        kept["found"] = [row if number in drawn else None for number, row in enumerate(run["found"])]
    return kept


def _most_different(found: Mapping[str, Any]) -> list[int]:
    """The numbers of at most MOST_QUESTIONS questions, those with the widest spread of scores."""
    count = len(found["questions"])
    values = [run["values"].get(found["metric"], [0.0] * count) for run in found["runs"] if run["state"] == "done"]
    if count <= MOST_QUESTIONS or not values:
        return list(range(count))
    spread = np.nan_to_num(np.nanstd(np.array(values, np.float64), axis=0))
    return [int(number) for number in np.argsort(-spread, kind="stable")[:MOST_QUESTIONS]]


# ------------------------------------------------------------------------------------------- Markdown


def as_markdown(found: Mapping[str, Any], study: Sequence[Mapping[str, Any]] = ()) -> str:
    """The runs as a table, best first, and beside it the study's published runs."""
    family = found["metric"].partition("@")[0]
    columns = [name for name in _metrics(found) if name.startswith(f"{family}@")] or [found["metric"]]
    head = [
        "run",
        *(name.removeprefix(family) or name for name in columns),
        "section",
        "MRR",
        f"to {found['baseline'] or 'none'}",
        "ms",
    ]
    runs = sorted(found["runs"], key=lambda run: -run["scores"].get(found["metric"], [-1])[0])
    rows = [_row(run, columns, found["metric"]) for run in runs]
    asked = found["dataset"]
    title = (
        f"{asked['questions']:,} questions of `{asked['name']}`, collection `{found['collection']}`, "
        f"{found['created'][:10]}: {_words(family)} at each number of chunks, with the 95 % interval at "
        f"{found['metric'].partition('@')[2] or 'all'}; differences are paired."
    )
    theirs = _study_table(study) if study else ""
    return "\n\n".join(part for part in (title, _table(head, rows), theirs) if part) + "\n"


def _metrics(found: Mapping[str, Any]) -> list[str]:
    return next((list(run["scores"]) for run in found["runs"] if run["state"] == "done"), [])


def _words(name: str) -> str:
    return name.replace("_", " ")


def _row(run: Record, columns: Sequence[str], metric: str) -> list[str]:
    if run["state"] != "done":
        return [run["name"], f"failed: {run['error'].splitlines()[0]}", *[""] * (len(columns) + 3)]
    section = run["scores"].get(f"section_score@{metric.partition('@')[2]}")
    against = run.get("against", {}).get(metric)
    return [
        run["name"],
        *(_score(run["scores"].get(name), name == metric) for name in columns),
        _score(section),
        _score(run["scores"].get("mrr")),
        f"{against[0]:+.3f} [{against[1]:+.3f}, {against[2]:+.3f}]" if against else "",
        f"{run['timings']['total']['p50'] * 1000:.0f}",
    ]


def _score(score: Sequence[float] | None, whole: bool = False) -> str:
    if score is None:
        return ""
    return f"**{score[0]:.3f}** [{score[1]:.3f}, {score[2]:.3f}]" if whole else f"{score[0]:.3f}"


def _study_table(study: Sequence[Mapping[str, Any]]) -> str:
    """The study's runs, best first."""
    head = ["the study's run", "embedding model", "chunk size", "chunks", "retrieval score", "quality score"]
    best_first = sorted(study, key=lambda run: -run["retrieval_score"])
    rows = [[_number(run.get(name)) for name in STUDY] for run in best_first]
    return f"The study's {len(rows)} published runs (its own 177 questions):\n\n{_table(head, rows)}"


def _number(value: Any) -> str:
    return f"{value:.3f}" if isinstance(value, float) else "" if value is None else str(value)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *([_cell(text) for text in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(text: str) -> str:
    """A text that stays in its cell of a Markdown table."""
    return html.escape(" ".join(text.split()), quote=False).replace("|", "\\|")


def into_page(path: Path, name: str, text: str) -> None:
    """Put `text` between the marks of experiment `name`; a page that is not there is made.

    The rest of the page stays as it is. Raises NoPlace for a page without the marks.
    """
    before, after = around(path, name)
    path.write_text(f"{before}{text}{after}", encoding="utf-8")


def around(path: Path, name: str) -> tuple[str, str]:
    """What stands before and after the place of experiment `name` in a page, its marks with it. Raises NoPlace."""
    begin, end = (f"<!-- experiment {name}: {mark} -->" for mark in ("begin", "end"))
    page = path.read_text(encoding="utf-8") if path.exists() else f"# Quality\n\n{begin}\n{end}\n"
    if page.count(begin) != 1 or page.count(end) != 1 or page.index(begin) > page.index(end):
        raise NoPlace(f"{path} has no place for the table: put the lines {begin} and {end} where it goes")
    before, rest = page.split(begin)
    return f"{before}{begin}\n", f"{end}{rest.split(end)[1]}"
