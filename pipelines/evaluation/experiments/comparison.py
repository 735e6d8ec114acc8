"""What the configurations of a sweep came to, side by side: paired differences, and what each setting does.

Knows records as they stand in results.json; no engine and no database.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import numpy as np

from pipelines.evaluation.dataset import Example, as_row
from pipelines.evaluation.evaluator import EvaluationPlan
from pipelines.evaluation.experiments.cost import Point, Price, bill, frontier
from pipelines.evaluation.experiments.routing import routers
from pipelines.evaluation.experiments.sweep import Cell, Sweep, label
from pipelines.evaluation.results import Rows, per_question, summarise
from pipelines.evaluation.statistics import Matrix, bootstrap, paired_test
from pipelines.llm.tokens import estimate
from pipelines.records import Usage

FORMAT = "raydex experiment 1"
# They have their means alone: by question they say little beyond retrieval_score and ndcg.
MEANS_ALONE = ("recall@", "any_source_score@")
USED = ("prompt_tokens", "completion_tokens", "calls", "cost")
# Above it a score at k says more about how long the list is than about its order.
MAIN_K = 9
DECIMALS = 4

Record = dict[str, Any]


class NoSuchRun(LookupError):
    """A run or a metric was named that the experiment does not have."""


# ------------------------------------------------------------------------------------------- one run


def done(cell: Cell, settings: Mapping[str, Any], index: Mapping[str, Any], examples: Sequence[Example], rows: Rows,
         plan: EvaluationPlan, price: Price | None = None, **more: Any) -> Record:  # fmt: skip
    """The record of a cell that was measured: means with intervals, seconds by step, cost, values by question.

    `settings` are all it was made with, `index` describes what it searched, `price` is that of its embedding model.
    Raises NothingToScore.
    """
    result = summarise(examples, rows, plan)
    questions = {question["id"]: question for question in per_question(examples, rows, plan)}
    found = [_found(questions.get(example.id), example) for example in examples]
    return {
        "name": cell.name,
        "state": "done",
        "error": None,
        "settings": dict(settings),
        "index": dict(index),
        "scores": _flat(result),
        "timings": result["timings"],
        **_costs(examples, rows, price or Price()),
        "agents": dict(Counter(one["agent"] for one in found if one["agent"]).most_common()),
        "errors": result["num_errors"],
        "degraded": result["num_degraded"],
        "score_errors": result.get("score_errors", {}),
        "values": _values(examples, questions),
        "found": found,
        **more,
    }


def failed(cell: Cell, settings: Mapping[str, Any], error: Exception, why: str = "") -> Record:
    """The record of a cell that could not be measured; `why` where the error itself says more than that."""
    said = why if why and why != str(error) else f"{type(error).__name__}: {error}"
    return {"name": cell.name, "state": "failed", "error": said, "settings": dict(settings), "scores": {}}


def _costs(examples: Sequence[Example], rows: Rows, price: Price) -> Record:
    """What a question costs and what 1,000 do, with the tokens of one; None where nothing has a price to be asked for.

    Tokens that a question's embedding takes are estimated: endpoints do not say them question by question.
    """
    asked = [example for example in examples if example.id in rows and not rows[example.id].error]
    answers = [answer for example in asked if (answer := rows[example.id].answer)]
    usages = [Usage(**{name: answer[name] for name in USED}) for answer in answers] or [Usage() for _ in asked]
    embedding = price.cost(embedded_tokens=sum(estimate(example.question) for example in asked))
    made = bill(usages, embedding=embedding)
    known = bool(answers or embedding)
    return {
        "cost_per_question": round(made.per_question, 9) if known else None,
        "cost_per_1000": round(made.per_1000, 6) if known else None,
        "embedding_per_1000": round(1000 * embedding / max(1, made.questions), 6),
        "bill": asdict(made) if answers else None,
    }


def _flat(result: Mapping[str, Any]) -> dict[str, list[float]]:
    """{metric or metric@k: [value, low, high]} of what `results` says."""
    flat: dict[str, list[float]] = {}
    for name, bounds in result["intervals"].items():
        if isinstance(bounds, Mapping):
            flat |= {f"{name}@{k}": [result[name][k], *bounds[k]] for k in bounds}
        else:
            flat[name] = [result[name], *bounds]
    return flat


def _values(examples: Sequence[Example], questions: Mapping[str, Any]) -> dict[str, list[float | None]]:
    """The scores of every question by metric, None where it has none."""
    scores = [questions.get(example.id, {}).get("scores", {}) for example in examples]
    names = dict.fromkeys(name for row in scores for name in row)
    return {name: [_round(row.get(name)) for row in scores] for name in names if not name.startswith(MEANS_ALONE)}


def _round(value: float | None) -> float | None:
    return None if value is None else round(value, DECIMALS)


def _found(question: Mapping[str, Any] | None, example: Example) -> Record:
    """What came back for a question, without its scores."""
    if question is None:
        return {"hits": [], "rank": None, "answer": None, "agent": None, "cost": None, "error": "was not asked"}
    answer = question["answered"] or {}
    return {
        "hits": [[hit["sources"][0], hit["title"], _rightness(hit, example)] for hit in question["hits"]],
        "rank": question["rank"],
        "answer": answer.get("text"),
        "agent": answer.get("agent"),
        "cost": answer.get("cost"),
        "error": question["error"],
    }


def _rightness(hit: Mapping[str, Any], example: Example) -> int:
    """2 for a hit in a reference section, 1 for one on a reference page, else 0."""
    wanted, pages = set(example.sources), {source.split("#", 1)[0] for source in example.sources}
    page = hit["sources"][0].split("#", 1)[0]
    return 2 if wanted & {*hit["anchors"], page} else int(page in pages)


# ------------------------------------------------------------------------------------------- all runs


def experiment(
    sweep: Sweep, examples: Sequence[Example], records: Sequence[Record], dataset: str, metric: str, baseline: str = ""
) -> dict[str, Any]:
    """All records as one object, with the differences to `baseline` ("": the first that was measured) and `effects`.

    `dataset` names the questions' content. Raises NoSuchRun for a baseline that is not there.
    """
    runs = [dict(record) for record in records]
    measured = [run["name"] for run in runs if run["state"] == "done"]
    baseline = run_of(runs, baseline)["name"] if baseline else next(iter(measured), "")
    _label(sweep, runs)
    for run in runs:
        if run["state"] == "done" and run["name"] != baseline and baseline in measured:
            run["against"] = differences(run, run_of(runs, baseline))
    return {
        "format": FORMAT,
        "name": sweep.name,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "collection": sweep.collection,
        "dataset": {"name": sweep.dataset.name, "fingerprint": dataset, "questions": len(examples)},
        "ks": list(sweep.ks),
        "metric": metric,
        "baseline": baseline,
        "parameters": list(sweep.parameters),
        "questions": [{"id": example.id, **as_row(example)} for example in examples],
        "effects": effects(runs, sweep.parameters),
        "frontier": unbeaten(runs, metric),
        "routers": routers(runs),
        "places": _places(runs),
        "runs": runs,
    }


def _places(runs: Sequence[Record]) -> list[list[str]]:
    """Every [source, title] that was found, once; hits become [its number, rightness]."""
    places: dict[tuple[str, str], int] = {}
    for run in runs:
        if run["state"] == "done":
            run["found"] = [
                {
                    **row,
                    "hits": [
                        [places.setdefault((source, title), len(places)), right] for source, title, right in row["hits"]
                    ],
                }
                for row in run["found"]
            ]
    return [list(place) for place in places]


def main_metric(ks: Sequence[int]) -> str:
    """The metric that a report opens with: the study's, at the largest k that is not above MAIN_K."""
    return f"retrieval_score@{max((k for k in ks if k <= MAIN_K), default=min(ks))}"


def run_of(runs: Iterable[Record], name: str) -> Record:
    """The run of that name. Raises NoSuchRun."""
    runs = list(runs)
    for run in runs:
        if run["name"] == name:
            return run
    raise NoSuchRun(f"there is no run {name!r}; there are: {'; '.join(run['name'] for run in runs)}")


def best(runs: Iterable[Record], metric: str) -> Record | None:
    """The measured run with the highest score, the first of equals."""
    measured = [run for run in runs if metric in run["scores"]]
    return max(measured, key=lambda run: run["scores"][metric][0], default=None)


def unbeaten(runs: Iterable[Record], metric: str) -> list[str]:
    """The names of the runs that none beats in both score and cost, from the cheapest to the best."""
    measured = [run for run in runs if metric in run["scores"]]
    points = [Point(run["name"], run["scores"][metric][0], run["cost_per_1000"] or 0.0) for run in measured]
    return [point.name for point in frontier(points)]


def differences(run: Record, other: Record) -> dict[str, list[float]]:
    """By metric [difference, low, high, p]: how much better `run` is than `other`, over what both answered."""
    return {name: difference(run, other, name) for name in run["values"] if _pairs(run, other, name)}


def difference(run: Record, other: Record, metric: str) -> list[float]:
    """[difference, low, high, p] of one metric. Raises NoSuchRun for a metric that one of them lacks."""
    pairs = _pairs(run, other, metric)
    if not pairs:
        raise NoSuchRun(f"{run['name']!r} and {other['name']!r} have no question with {metric!r} in common")
    test = paired_test([a for a, _ in pairs], [b for _, b in pairs])
    return [round(value, DECIMALS) for value in (test.difference, test.low, test.high, test.p)]


def _pairs(run: Record, other: Record, metric: str) -> list[tuple[float, float]]:
    both = zip(run.get("values", {}).get(metric, ()), other.get("values", {}).get(metric, ()), strict=False)
    return [(a, b) for a, b in both if a is not None and b is not None]


# ------------------------------------------------------------------------------------------- what a setting does


def _label(sweep: Sweep, runs: Sequence[Record]) -> None:
    """Give every run the value of each parameter in few words, as `varied`; a cell that names none has the default."""
    known = {(name, label(cell.varied[name])): text for cell in sweep.cells for name, text in cell.labels.items()}
    for run in runs:
        told = {name: label(run["settings"].get(name)) for name in sweep.parameters}
        run["varied"] = {name: known.get((name, text), text) for name, text in told.items()}


def effects(runs: Sequence[Record], parameters: Sequence[str]) -> list[dict[str, Any]]:
    """For each parameter what its values do with all else equal.

    `lines` are sets of runs that differ in nothing but it (indices into `runs` by value, None where there is none).
    `means` by metric are [mean, low, high] for each value over the lines that have every value: each question counts
    once, by its mean over lines.
    """
    found = []
    for parameter in parameters:
        by_rest: dict[str, dict[str, int]] = {}
        for number, run in enumerate(runs):
            if run["state"] == "done":
                rest = {name: value for name, value in run["varied"].items() if name != parameter}
                by_rest.setdefault(json.dumps(rest), {}).setdefault(run["varied"][parameter], number)
        matched = [line for line in by_rest.values() if len(line) > 1]
        values = _ordered(dict.fromkeys(value for line in matched for value in line))
        if values:
            lines = [[line.get(value) for value in values] for line in matched]
            found.append({"parameter": parameter, "values": values, "lines": lines, "means": _means(runs, lines)})
    return found


def _ordered(values: Iterable[str]) -> list[str]:
    """Numbers by size, words as they came."""
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
    """[mean, low, high] of each row."""
    spans = bootstrap({str(number): row for number, row in enumerate(table.tolist())}).values()
    return [[round(value, DECIMALS) for value in (span.value, span.low, span.high)] for span in spans]


def _mean_over_lines(name: str, lines: Sequence[Sequence[Mapping[str, Any]]]) -> Matrix:
    """(values, questions): a question that one of the runs did not answer is left out."""
    table = np.array([[run[name] for run in line] for line in lines], np.float64).mean(axis=0)
    return table[:, ~np.isnan(table).any(axis=0)]
