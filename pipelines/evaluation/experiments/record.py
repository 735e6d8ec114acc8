"""The record of one run of a sweep, in the format of results.json.

It has settings, scores with intervals, costs, and the values of each question. Knows evaluation rows and prices; knows
no engine and no database.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from pipelines.evaluation.dataset import Example, page_of
from pipelines.evaluation.evaluator import EvaluationPlan
from pipelines.evaluation.experiments.prices import MILLION, Price, bill
from pipelines.evaluation.experiments.sweep import Cell
from pipelines.evaluation.metrics import METRICS
from pipelines.evaluation.results import Rows, per_question, summarise
from pipelines.llm.tokens import estimate
from pipelines.records import Usage

USED = ("prompt_tokens", "completion_tokens", "calls", "cost")
DECIMALS = 4

Record = dict[str, Any]


def measured_record(
    cell: Cell,
    settings: Mapping[str, Any],
    index: Mapping[str, Any],
    examples: Sequence[Example],
    rows: Rows,
    plan: EvaluationPlan,
    price: Price | None = None,
    **more: Any,
) -> Record:
    """Return the record of a measured cell: means with intervals, seconds by step, cost, values by question.

    `settings` are all the settings of the cell, `index` describes the index that it searched, and `price` is the price
    of its embedding model. Raises NothingToScore.
    """
    result = summarise(examples, rows, plan)
    questions = {question["id"]: question for question in per_question(examples, rows, plan)}
    found = [_outcome(questions.get(example.id), example) for example in examples]
    return {
        "name": cell.name,
        "state": "done",
        "error": None,
        "settings": dict(settings),
        "index": dict(index),
        "scores": flatten_scores(result),
        "timings": result["timings"],
        "model": result.get("model"),
        **_costs(examples, rows, price or Price()),
        "agents": dict(Counter(one["agent"] for one in found if one["agent"]).most_common()),
        "errors": result["num_errors"],
        "degraded": result["num_degraded"],
        "stand_ins": result.get("num_stand_ins", 0),
        "score_errors": result.get("score_errors", {}),
        "values": _values(examples, questions),
        "found": found,
        **more,
    }


def failed_record(cell: Cell, settings: Mapping[str, Any], error: Exception, message: str = "") -> Record:
    """Return the record of a cell that could not be measured; `message` is a better explanation of the error."""
    text = message if message and message != str(error) else f"{type(error).__name__}: {error}"
    return {"name": cell.name, "state": "failed", "error": text, "settings": dict(settings), "scores": {}}


def shortcomings(record: Record) -> dict[str, int]:
    """Return how many questions failed, were degraded, were answered by a stand-in, and lack each score."""
    failed_scores = {f"without {name}": count for name, count in record["score_errors"].items()}
    counts = {"failed": record["errors"], "degraded": record["degraded"], "by a stand-in": record["stand_ins"]}
    return counts | failed_scores


def _costs(examples: Sequence[Example], rows: Rows, price: Price) -> Record:
    """Return the cost per question and per 1,000, with the tokens per question; None if nothing used has a price.

    The tokens of a question's embedding are estimated, because endpoints do not report them per question.
    """
    asked = [example for example in examples if example.id in rows and not rows[example.id].error]
    answers = [answer for example in asked if (answer := rows[example.id].answer)]
    usages = [Usage(**{name: answer[name] for name in USED}) for answer in answers] or [Usage() for _ in asked]
    embedding = price.embedding / MILLION * sum(estimate(example.question) for example in asked)
    made = bill(usages, embedding=embedding)
    known = bool(answers or embedding)
    return {
        "cost_per_question": round(made["per_question"], 9) if known else None,
        "cost_per_1000": round(made["per_1000"], 6) if known else None,
        "bill": made if answers else None,
    }


def flatten_scores(result: Mapping[str, Any]) -> dict[str, list[float]]:
    """Return {"mrr" or "recall@9": [value, low, high]} of a result."""
    flat: dict[str, list[float]] = {}
    for name, bounds in result["intervals"].items():
        if isinstance(bounds, Mapping):
            flat |= {f"{name}@{k}": [result[name][k], *bounds[k]] for k in bounds}
        else:
            flat[name] = [result[name], *bounds]
    return flat


def _values(examples: Sequence[Example], questions: Mapping[str, Any]) -> dict[str, list[float | None]]:
    """Return the scores of every question by metric, None for a missing score.

    Metrics kept only as means are left out.
    """
    scores = [questions.get(example.id, {}).get("scores", {}) for example in examples]
    names = dict.fromkeys(name for row in scores for name in row if _is_kept(name))
    return {name: [_round(row.get(name)) for row in scores] for name in names}


def _is_kept(column: str) -> bool:
    metric = METRICS.get(column.partition("@")[0])
    return metric is None or metric.by_question


def _round(value: float | None) -> float | None:
    return None if value is None else round(value, DECIMALS)


def _outcome(question: Mapping[str, Any] | None, example: Example) -> Record:
    """Return the hits and the answer of a question, without its scores."""
    if question is None:
        return {"hits": [], "rank": None, "answer": None, "agent": None, "cost": None, "error": "was not asked"}
    answer = question["answered"] or {}
    return {
        "hits": [[hit["sources"][0], hit["title"], _relevance(hit, example)] for hit in question["hits"]],
        "rank": question["rank"],
        "answer": answer.get("text"),
        "agent": answer.get("agent"),
        "cost": answer.get("cost"),
        "error": question["error"],
    }


def _relevance(hit: Mapping[str, Any], example: Example) -> int:
    """Return 2 for a hit in a reference section, 1 for one on a reference page, else 0."""
    wanted, page = set(example.sources), page_of(hit["sources"][0])
    return 2 if wanted & {*hit["anchors"], page} else int(page in set(map(page_of, wanted)))
