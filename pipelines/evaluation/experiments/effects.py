"""Shows the effect of each setting of a sweep, with all other settings equal.

Knows records in the format of results.json.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from pipelines.evaluation.experiments.record import DECIMALS, Record
from pipelines.evaluation.experiments.sweep import Sweep, label
from pipelines.evaluation.statistics import Matrix, bootstrap


def label_runs(sweep: Sweep, runs: Sequence[Record]) -> None:
    """Add to every run `varied`, the value of each parameter in few words.

    A cell that does not set one has the default.
    """
    pairs = zip(runs, sweep.cells, strict=False)
    known = {(key, label(run["settings"].get(key))): text for run, cell in pairs for key, text in cell.labels.items()}
    for run in runs:
        values = {name: label(run["settings"].get(name)) for name in sweep.parameters}
        run["varied"] = {name: known.get((name, text), text) for name, text in values.items()}


def effects(runs: Sequence[Record], parameters: Sequence[str]) -> list[dict[str, Any]]:
    """Return the effect of each parameter's values.

    `lines` are sets of runs that differ only in the parameter (indices into `runs` by value, None for a missing run).
    `means` has, for each metric, [mean, low, high] of each value over the lines that have every value. Each question
    counts once, with its mean over lines.
    """
    found = []
    for parameter in parameters:
        by_rest: dict[str, dict[str, int]] = {}
        for number, run in enumerate(runs):
            if run["state"] == "done":
                rest = {name: value for name, value in run["varied"].items() if name != parameter}
                by_rest.setdefault(json.dumps(rest), {}).setdefault(run["varied"][parameter], number)
        matched = [line for line in by_rest.values() if len(line) > 1]
        values = _sort_values(dict.fromkeys(value for line in matched for value in line))
        if values:
            lines = [[line.get(value) for value in values] for line in matched]
            found.append({"parameter": parameter, "values": values, "lines": lines, "means": _means(runs, lines)})
    return found


def _sort_values(values: Iterable[str]) -> list[str]:
    """Return numbers by size, words in their original order."""
    values = list(values)
    try:
        return sorted(values, key=float)
    except ValueError:
        return values


def _means(runs: Sequence[Record], lines: Sequence[Sequence[int | None]]) -> dict[str, list[list[float]]]:
    whole = [[runs[number]["values"] for number in line if number is not None] for line in lines if None not in line]
    if not whole:
        return {}
    names = [name for name in whole[0][0] if all(name in run for line in whole for run in line)]
    tables = {name: _mean_over_lines(name, whole) for name in names}
    return {name: _intervals(table) for name, table in tables.items() if table.size}


def _intervals(table: Matrix) -> list[list[float]]:
    """Return [mean, low, high] of each row."""
    spans = bootstrap({str(number): row for number, row in enumerate(table.tolist())}).values()
    return [[round(value, DECIMALS) for value in (span.value, span.low, span.high)] for span in spans]


def _mean_over_lines(name: str, lines: Sequence[Sequence[Mapping[str, Any]]]) -> Matrix:
    """Return the means, with shape (values, questions), of the questions that every run answered."""
    table = np.array([[run[name] for run in line] for line in lines], np.float64).mean(axis=0)
    return table[:, ~np.isnan(table).any(axis=0)]
