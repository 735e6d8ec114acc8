"""An experiment's report: one HTML file that loads nothing.

It contains its data, styles and drawing code. Knows results.json and the metrics' labels. Document and question text
reaches the page as JSON and is shown as plain text.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from pipelines.evaluation.experiments.comparison import summarise_experiment
from pipelines.evaluation.experiments.gate import FloorResult, GateResult
from pipelines.evaluation.experiments.record import Record
from pipelines.evaluation.experiments.table import score_names_of
from pipelines.evaluation.metrics import answer_score_order, is_of_hits, label_of
from pipelines.standalone import StandalonePage

# Questions whose hits the page includes; with more, a browser takes seconds to open the file.
MOST_QUESTIONS = 1_000


def write_report(
    folder: Path, found: Mapping[str, Any], results: Sequence[GateResult | FloorResult] = ()
) -> dict[str, Any]:
    """Write results.json and report.html into `folder`; return the experiment's summary with the gate's `results`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.json").write_text(json.dumps(found, ensure_ascii=False) + "\n", encoding="utf-8")
    (folder / "report.html").write_text(as_html(found, list(map(str, results))), encoding="utf-8")
    return {
        **summarise_experiment(found),
        "gate": [{**asdict(result), "passed": result.passed} for result in results],
        "report": str(folder / "report.html"),
        "results": str(folder / "results.json"),
    }


def as_html(found: Mapping[str, Any], gate: Sequence[str] = ()) -> str:
    """Return the report; `gate` has the lines of the gate."""
    template, script = (
        Path(__file__).with_name(f"report.{kind}").read_text(encoding="utf-8") for kind in ("html", "js")
    )
    data = {**_page_data(found), "gate": list(gate), **_metric_data(found)}
    # Its charts set inline styles as they draw.
    page = StandalonePage.of(
        template, data, script=script, title=f"{found['name']}: experiment", also="style-src 'unsafe-inline'"
    )
    return page.text


def _metric_data(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the page's data on metrics: labels, hit metrics, and the answer metrics in order of preference."""
    columns = score_names_of(found)
    return {
        "labels": {name: label_of(name) for name in columns},
        "of_hits": [name for name in columns if is_of_hits(name)],
        "of_answers": answer_score_order(),
    }


def _page_data(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data that the page draws; with too many questions, only the hits on which the runs differ most."""
    drawn = {*_most_different(found)}
    return {**found, "runs": [_without_hits(run, drawn) for run in found["runs"]]}


def _without_hits(run: Record, drawn: set[int]) -> Record:
    kept = {key: value for key, value in run.items() if key not in ("settings", "index")}
    if "found" in run:
        kept["found"] = [row if number in drawn else None for number, row in enumerate(run["found"])]
    return kept


def _most_different(found: Mapping[str, Any]) -> list[int]:
    """Return the numbers of at most MOST_QUESTIONS questions, those with the widest spread of scores."""
    count = len(found["questions"])
    values = [run["values"].get(found["metric"], [0.0] * count) for run in found["runs"] if run["state"] == "done"]
    if count <= MOST_QUESTIONS or not values:
        return list(range(count))
    spread = np.nan_to_num(np.nanstd(np.array(values, np.float64), axis=0))
    return [int(number) for number in np.argsort(-spread, kind="stable")[:MOST_QUESTIONS]]
