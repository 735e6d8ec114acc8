"""Summarizes the rows of an evaluation, as JSON and as files.

Knows rows and metrics; knows no engine and no database.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pipelines.answering.writing.agents import ExtractiveAgent
from pipelines.evaluation.dataset import Example, as_row
from pipelines.evaluation.evaluator import EvaluationPlan, failed_agents, has_reply, hit_sources
from pipelines.evaluation.metrics import hit_metrics, is_share, rank, score_hits
from pipelines.evaluation.result_text import answers_page
from pipelines.evaluation.statistics import Interval, NothingToScore, bootstrap
from pipelines.records import VERIFIED
from pipelines.store import EvaluatedQuestion

# Decimals in results: far more than any number of questions can resolve.
DECIMALS = 6

Rows = Mapping[str, EvaluatedQuestion]
Means = Mapping[str, Interval | Mapping[int, Interval]]


def summarise(examples: Sequence[Example], rows: Rows, plan: EvaluationPlan) -> dict[str, Any]:
    """Return every score with its interval, the seconds of each step and the counts. `rows` are by example id.

    Means are over the questions that did not fail; `num_questions` counts all. Hits are scored only for questions with
    a source. Raises NothingToScore.
    """
    done = _done(examples, rows)
    answered = [row for _, row in done]
    means: Means = {**_hit_means(done, plan), **_answer_means(answered, plan.seed)}
    return {
        "num_questions": len(examples),
        "num_errors": len(examples) - len(done),
        "num_degraded": sum(bool(row.degraded) for row in answered),
        "num_unanswerable": sum(not example.answerable for example in examples),
        **{name: _each(mean, lambda i: _round(i.value)) for name, mean in means.items()},
        "intervals": {name: _each(mean, lambda i: [_round(i.low), _round(i.high)]) for name, mean in means.items()},
        **(_answer_counts(answered) if plan.answers else {}),
        "timings": timings(answered),
    }


def per_question(examples: Sequence[Example], rows: Rows, plan: EvaluationPlan) -> Iterator[dict[str, Any]]:
    """Yield an object for each example: the question, the hits, the answer, and its scores by names like "mrr"."""
    done = _answerable(_done(examples, rows))
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
    """Return the seconds of each step over the questions that ran it: mean, p50 and p95."""
    steps = dict.fromkeys(step for row in rows for step in row.timings)
    taken = {step: [row.timings[step] for row in rows if step in row.timings] for step in steps}
    return {
        step: {"mean": _round(np.mean(seconds)), **{f"p{p}": _round(np.percentile(seconds, p)) for p in (50, 95)}}
        for step, seconds in taken.items()
    }


def write_results(folder: Path, result: Mapping[str, Any], questions: Iterable[Mapping[str, Any]]) -> None:
    """Write questions.jsonl, then answers.md if there are answers, then results.json.

    If that exists, all are complete.
    """
    folder.mkdir(parents=True, exist_ok=True)
    questions = list(questions)
    for name in ("results.json", "answers.md"):
        (folder / name).unlink(missing_ok=True)
    with (folder / "questions.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(f"{json.dumps(question, default=str)}\n" for question in questions)
    if "agents" in result:
        (folder / "answers.md").write_text(answers_page(result, questions), encoding="utf-8")
    (folder / "results.json").write_text(json.dumps(result, indent=2, default=str) + "\n", encoding="utf-8")


# ------------------------------------------------------------------------------------------- means


def _done(examples: Sequence[Example], rows: Rows) -> list[tuple[Example, EvaluatedQuestion]]:
    return [(example, rows[example.id]) for example in examples if example.id in rows and not rows[example.id].error]


def _answerable(done: Sequence[tuple[Example, EvaluatedQuestion]]) -> list[tuple[Example, EvaluatedQuestion]]:
    return [(example, row) for example, row in done if example.answerable]


def _score(done: Sequence[tuple[Example, EvaluatedQuestion]], plan: EvaluationPlan) -> list[dict[str, float]]:
    return score_hits([example for example, _ in done], [hit_sources(row) for _, row in done], plan.ks)


def _hit_means(done: Sequence[tuple[Example, EvaluatedQuestion]], plan: EvaluationPlan) -> Means:
    """Return the means of the hit scores, as {k: mean} for scores by k; {} if no question has a source.

    Raises NothingToScore.
    """
    if not done:
        raise NothingToScore
    done = _answerable(done)
    if not done:
        return {}
    rows, ks = _score(done, plan), sorted(set(plan.ks))
    means = bootstrap({column: [row[column] for row in rows] for column in rows[0]}, plan.seed)
    return {
        metric.name: {k: means[f"{metric.name}@{k}"] for k in ks} if metric.by_k else means[metric.name]
        for metric in hit_metrics()
    }


def _answer_means(rows: Sequence[EvaluatedQuestion], seed: int) -> dict[str, Interval]:
    """Return the mean of each answer score over the answers that have it."""
    names = dict.fromkeys(name for row in rows for name in row.scores)
    values = {name: [score for row in rows if (score := row.scores.get(name)) is not None] for name in names}
    return {name: bootstrap({name: has}, seed)[name] for name, has in values.items() if has}


def _answer_counts(rows: Sequence[EvaluatedQuestion]) -> dict[str, Any]:
    """Return how many answers each score covers, how many could not be scored, who answered, and the cost."""
    names = list(dict.fromkeys(name for row in rows for name in row.scores))
    answers = [row.answer for row in rows if row.answer is not None]
    return {
        "num_scored": {name: sum(row.scores.get(name) is not None for row in rows) for name in names},
        "num_true": {name: sum(row.scores.get(name) == 1 for row in rows) for name in names if is_share(name)},
        "claims": count_all_claims(answers),
        "agents": dict(Counter(answer.get("agent", "") for answer in answers).most_common()),
        "extractive": _why_extractive(answers),
        "num_verified": sum(answer.get("agent") == VERIFIED for answer in answers),
        "model": _model_work([row for row in rows if row.answer and has_reply(row.answer)]),
        "num_stand_ins": sum(bool(failed_agents(answer)) for answer in answers),
        "score_errors": {name: sum(name in row.scores and row.scores[name] is None for row in rows) for name in names},
        "num_unknown": sum(not answer["known"] for answer in answers),
        "usage": {
            name: sum(answer[name] for answer in answers)
            for name in ("prompt_tokens", "completion_tokens", "calls", "cost")
        },
    }


def count_all_claims(answers: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Return how many claims the known answers make in total, and how many are cited and supported."""
    claims = [answer.get("claims", {}) for answer in answers if answer["known"]]
    return {name: sum(one.get(name, 0) for one in claims) for name in ("total", "cited", "supported")}


def _why_extractive(answers: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Return how many answers are extractive because no model was asked, one found no answer, or all failed."""
    why = Counter(
        "failed" if failed_agents(answer) else "found_none" if has_reply(answer) else "not_asked"
        for answer in answers
        if answer.get("agent") == ExtractiveAgent.name
    )
    return {reason: why[reason] for reason in ("not_asked", "found_none", "failed")}


def _model_work(replied: Sequence[EvaluatedQuestion]) -> dict[str, Any] | None:
    """Return the seconds and mean tokens of the questions that a model replied to; None if it replied to none."""
    if not replied:
        return None
    seconds, answers = timings(replied), [row.answer for row in replied if row.answer]
    tokens = {
        name: _round(np.mean([answer[name] for answer in answers])) for name in ("prompt_tokens", "completion_tokens")
    }
    steps = {step: seconds[step] for step in ("total", "first_delta") if step in seconds}
    return {"questions": len(replied), **tokens, "timings": steps}


def _each(mean: Interval | Mapping[int, Interval], of: Callable[[Interval], Any]) -> Any:
    return of(mean) if isinstance(mean, Interval) else {str(k): of(interval) for k, interval in mean.items()}


def _round(value: Any) -> float:
    return round(float(value), DECIMALS)
