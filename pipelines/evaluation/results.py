"""What the rows of an evaluation come to, as one JSON object, as a row for each question, and as files.

Knows rows and metrics; no engine and no database.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pipelines.evaluation.dataset import Example, as_row
from pipelines.evaluation.evaluator import Plan, retrieved
from pipelines.evaluation.metrics import rank, summarise
from pipelines.evaluation.statistics import Interval, bootstrap
from pipelines.store import EvaluatedQuestion

# Decimals of what is printed: far beyond what any number of questions can tell.
DECIMALS = 6

Rows = Mapping[str, EvaluatedQuestion]
Means = Mapping[str, Interval | Mapping[int, Interval]]


def results(examples: Sequence[Example], rows: Rows, plan: Plan) -> dict[str, Any]:
    """Every score with its interval, seconds by step, and how many questions failed. `rows` by example id.

    Means are over the questions that did not fail; `num_questions` counts all. Raises NothingToScore.
    """
    done = _done(examples, rows)
    scores = summarise([e for e, _ in done], [retrieved(row) for _, row in done], plan.ks, plan.seed)
    answered = [row for _, row in done]
    means: Means = {**scores.by_k, "mrr": scores.mrr, **_answer_means(answered, plan.seed)}
    return {
        "num_questions": len(examples),
        "num_errors": len(examples) - len(done),
        "num_degraded": sum(bool(row.degraded) for row in answered),
        **{name: _each(mean, lambda i: _rounded(i.value)) for name, mean in means.items()},
        "intervals": {name: _each(mean, lambda i: [_rounded(i.low), _rounded(i.high)]) for name, mean in means.items()},
        **(_answer_counts(answered) if plan.answers else {}),
        "timings": timings(answered),
    }


def per_question(examples: Sequence[Example], rows: Rows, plan: Plan) -> Iterator[dict[str, Any]]:
    """One object for each example: what was asked, what came back, and its scores by names like "mrr"."""
    done = _done(examples, rows)
    scores = summarise([e for e, _ in done], [retrieved(row) for _, row in done], plan.ks, plan.seed) if done else None
    by_id = {example.id: row for (example, _), row in zip(done, scores.rows, strict=True)} if scores else {}
    for example in examples:
        row = rows.get(example.id)
        if row is None:
            continue
        yield {
            "id": example.id,
            **as_row(example),
            "rank": rank(example, retrieved(row)),
            "scores": {**by_id.get(example.id, {}), **row.scores},
            "hits": list(row.hits),
            "answered": row.answer,
            "degraded": list(row.degraded),
            "timings": dict(row.timings),
            "error": row.error,
        }


def timings(rows: Sequence[EvaluatedQuestion]) -> dict[str, dict[str, float]]:
    """Seconds of each step over the questions that took it: mean, p50 and p95."""
    steps = dict.fromkeys(step for row in rows for step in row.timings)
    taken = {step: [row.timings[step] for row in rows if step in row.timings] for step in steps}
    return {
        step: {
            "mean": _rounded(np.mean(seconds)),
            "p50": _rounded(np.quantile(seconds, 0.5)),
            "p95": _rounded(np.quantile(seconds, 0.95)),
        }
        for step, seconds in taken.items()
    }


def write(folder: Path, result: Mapping[str, Any], questions: Iterator[Mapping[str, Any]]) -> None:
    """questions.jsonl, then results.json: where that is, all is there."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.json").unlink(missing_ok=True)
    with (folder / "questions.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(f"{json.dumps(question, default=str)}\n" for question in questions)
    (folder / "results.json").write_text(json.dumps(result, indent=2, default=str) + "\n", encoding="utf-8")


def _done(examples: Sequence[Example], rows: Rows) -> list[tuple[Example, EvaluatedQuestion]]:
    return [(example, rows[example.id]) for example in examples if example.id in rows and not rows[example.id].error]


def _answer_means(rows: Sequence[EvaluatedQuestion], seed: int) -> dict[str, Interval]:
    """The mean of each score of the answers over those that have it."""
    names = dict.fromkeys(name for row in rows for name in row.scores)
    values = {name: [score for row in rows if (score := row.scores.get(name)) is not None] for name in names}
    return {name: bootstrap({name: has}, seed)[name] for name, has in values.items() if has}


def _answer_counts(rows: Sequence[EvaluatedQuestion]) -> dict[str, Any]:
    """How many answers each score is of, how many of each failed, and what the answers cost."""
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


def _each(mean: Interval | Mapping[int, Interval], of: Any) -> Any:
    return of(mean) if isinstance(mean, Interval) else {str(k): of(interval) for k, interval in mean.items()}


def _rounded(value: Any) -> float:
    return round(float(value), DECIMALS)
