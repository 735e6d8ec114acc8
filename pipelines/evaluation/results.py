"""Sums up the rows of an evaluation, as JSON, as text and as files.

Knows rows and metrics; no engine and no database.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pipelines.evaluation.dataset import Example, as_row
from pipelines.evaluation.evaluator import EvaluationPlan, hit_sources
from pipelines.evaluation.metrics import METRICS, hit_metrics, rank, score_hits
from pipelines.evaluation.statistics import Interval, NothingToScore, bootstrap
from pipelines.store import EvaluatedQuestion

# Decimals of what is printed: far beyond what any number of questions can tell.
DECIMALS = 6

Rows = Mapping[str, EvaluatedQuestion]
Means = Mapping[str, Interval | Mapping[int, Interval]]


def summarise(examples: Sequence[Example], rows: Rows, plan: EvaluationPlan) -> dict[str, Any]:
    """Return every score with its interval, the seconds of each step and the counts. `rows` are by example id.

    Means are over the questions that did not fail; `num_questions` counts all. Raises NothingToScore.
    """
    done = _done(examples, rows)
    answered = [row for _, row in done]
    means: Means = {**_hit_means(done, plan), **_answer_means(answered, plan.seed)}
    return {
        "num_questions": len(examples),
        "num_errors": len(examples) - len(done),
        "num_degraded": sum(bool(row.degraded) for row in answered),
        **{name: _each(mean, lambda i: _round(i.value)) for name, mean in means.items()},
        "intervals": {name: _each(mean, lambda i: [_round(i.low), _round(i.high)]) for name, mean in means.items()},
        **(_answer_counts(answered) if plan.answers else {}),
        "timings": timings(answered),
    }


def per_question(examples: Sequence[Example], rows: Rows, plan: EvaluationPlan) -> Iterator[dict[str, Any]]:
    """Yield an object for each example: the question, the hits, the answer, and its scores by names like "mrr"."""
    done = _done(examples, rows)
    scores = _score(done, plan) if done else []
    by_id = {example.id: row for (example, _), row in zip(done, scores, strict=True)}
    for example in examples:
        row = rows.get(example.id)
        if row is None:
            continue
        yield {
            "id": example.id,
            **as_row(example),
            "rank": rank(example, hit_sources(row)),
            "scores": {**by_id.get(example.id, {}), **row.scores},
            "hits": list(row.hits),
            "answered": row.answer,
            "degraded": list(row.degraded),
            "timings": dict(row.timings),
            "error": row.error,
        }


def timings(rows: Sequence[EvaluatedQuestion]) -> dict[str, dict[str, float]]:
    """Return the seconds of each step over the questions that took it: mean, p50 and p95."""
    steps = dict.fromkeys(step for row in rows for step in row.timings)
    taken = {step: [row.timings[step] for row in rows if step in row.timings] for step in steps}
    return {
        step: {
            "mean": _round(np.mean(seconds)),
            "p50": _round(np.quantile(seconds, 0.5)),
            "p95": _round(np.quantile(seconds, 0.95)),
        }
        for step, seconds in taken.items()
    }


def write_results(folder: Path, result: Mapping[str, Any], questions: Iterator[Mapping[str, Any]]) -> None:
    """Write questions.jsonl, then results.json: where the second file is, both are complete."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.json").unlink(missing_ok=True)
    with (folder / "questions.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(f"{json.dumps(question, default=str)}\n" for question in questions)
    (folder / "results.json").write_text(json.dumps(result, indent=2, default=str) + "\n", encoding="utf-8")


# ------------------------------------------------------------------------------------------- for a person


def as_text(result: Mapping[str, Any]) -> str:
    """Return the result of an evaluation as lines for a person: a row for each k, then the scores without a k."""
    counts = {"failed": result["num_errors"], "degraded": result["num_degraded"]}
    remarks = "".join(f", {count:,} {what}" for what, count in counts.items() if count)
    questions = f"{result['num_questions']:,} questions of {result['dataset']}{remarks}"
    total = result["timings"]["total"]
    shown = [metric for metric in hit_metrics() if metric.shown != "no"]
    by_k, single = [m for m in shown if m.by_k], [m for m in shown if not m.by_k]
    widths = [max(22 if metric.shown == "interval" else 8, len(metric.label) + 2) for metric in by_k]

    def line(k: str, cells: Sequence[str]) -> str:
        return f"  {k:>3}  {''.join(f'{cell:{width}}' for cell, width in zip(cells, widths, strict=True))}".rstrip()

    lines = [
        f"collection {result['collection']}, index {result['index']} revision {result['revision']}: {questions}",
        line("k", [metric.label for metric in by_k]),
        *(line(k, [_cell(result, metric.name, k) for metric in by_k]) for k in result[by_k[0].name]),
        *(f"  {metric.label} {_cell(result, metric.name)}" for metric in single),
        *(f"  {name} {_with_interval(result, name)}" for name in result.get("num_scored", {}) if name in result),
        *(f"  {name}: {n:,} could not be scored" for name, n in result.get("score_errors", {}).items() if n),
        f"  seconds a question {total['mean']:.3f}, 95 % within {total['p95']:.3f}; {result['seconds']:.1f} in all",
    ]
    return "\n".join(lines)


def _cell(result: Mapping[str, Any], name: str, k: str = "") -> str:
    if METRICS[name].shown == "interval":
        return _with_interval(result, name, k)
    return f"{result[name][k] if k else result[name]:.3f}"


def _with_interval(result: Mapping[str, Any], name: str, k: str = "") -> str:
    value, bounds = result[name], result["intervals"][name]
    value, (low, high) = (value[k], bounds[k]) if k else (value, bounds)
    return f"{value:.3f} [{low:.3f}, {high:.3f}]"


# ------------------------------------------------------------------------------------------- means


def _done(examples: Sequence[Example], rows: Rows) -> list[tuple[Example, EvaluatedQuestion]]:
    return [(example, rows[example.id]) for example in examples if example.id in rows and not rows[example.id].error]


def _score(done: Sequence[tuple[Example, EvaluatedQuestion]], plan: EvaluationPlan) -> list[dict[str, float]]:
    return score_hits([example for example, _ in done], [hit_sources(row) for _, row in done], plan.ks)


def _hit_means(done: Sequence[tuple[Example, EvaluatedQuestion]], plan: EvaluationPlan) -> Means:
    """Return the means of the hits' scores, those by k as {k: mean}. Raises NothingToScore."""
    if not done:
        raise NothingToScore
    rows, ks = _score(done, plan), sorted(set(plan.ks))
    means = bootstrap({column: [row[column] for row in rows] for column in rows[0]}, plan.seed)
    return {
        metric.name: {k: means[f"{metric.name}@{k}"] for k in ks} if metric.by_k else means[metric.name]
        for metric in hit_metrics()
    }


def _answer_means(rows: Sequence[EvaluatedQuestion], seed: int) -> dict[str, Interval]:
    """Return the mean of each score of the answers over those that have it."""
    names = dict.fromkeys(name for row in rows for name in row.scores)
    values = {name: [score for row in rows if (score := row.scores.get(name)) is not None] for name in names}
    return {name: bootstrap({name: has}, seed)[name] for name, has in values.items() if has}


def _answer_counts(rows: Sequence[EvaluatedQuestion]) -> dict[str, Any]:
    """Return how many answers each score is of, how many could not be scored, and what the answers cost."""
    names = list(dict.fromkeys(name for row in rows for name in row.scores))
    answers = [row.answer for row in rows if row.answer is not None]
    return {
        "num_scored": {name: sum(row.scores.get(name) is not None for row in rows) for name in names},
        "score_errors": {name: sum(name in row.scores and row.scores[name] is None for row in rows) for name in names},
        "num_unknown": sum(not answer["known"] for answer in answers),
        "usage": {
            name: sum(answer[name] for answer in answers)
            for name in ("prompt_tokens", "completion_tokens", "calls", "cost")
        },
    }


def _each(mean: Interval | Mapping[int, Interval], of: Callable[[Interval], Any]) -> Any:
    return of(mean) if isinstance(mean, Interval) else {str(k): of(interval) for k, interval in mean.items()}


def _round(value: Any) -> float:
    return round(float(value), DECIMALS)
