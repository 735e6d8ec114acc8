"""Measures what a router gains over either agent alone and over a coin.

Knows scores and costs by question, and records as they stand in results.json.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from pipelines.evaluation.experiments.record import Record
from pipelines.evaluation.metrics import is_of_hits
from pipelines.evaluation.statistics import Matrix, PairedTest, paired_test

ScoreAndCost = tuple[float | None, float]


class BadRouting(ValueError):
    """Scores, costs and decisions of a router do not belong together, or there is no question."""


@dataclass(frozen=True, slots=True)
class RoutingPoint:
    """A threshold's share of questions for the easy agent, and the mean score and cost of a question.

    `random_score` is the score of a coin that sends as many questions to the easy agent, chosen by chance; `gain` is
    the score above a coin of the same *cost* (of the same share, where the agents cost the same).
    """

    threshold: float
    easy_share: float
    score: float
    cost: float
    random_score: float
    random_cost: float
    gain: float


@dataclass(frozen=True, slots=True)
class RouterEffect:
    """A router's curve from sending all questions to the hard agent to sending all to the easy one.

    `area` is the mean score above random routing over all shares of the easy agent: 0 is a coin. `questions` have a
    score of both agents, `left_out` have not.
    """

    curve: tuple[RoutingPoint, ...]
    area: float
    questions: int
    left_out: int

    def at(self, threshold: float) -> RoutingPoint:
        """Return the point of the least threshold that is not below `threshold`."""
        return next((point for point in self.curve if point.threshold >= threshold), self.curve[-1])

    def cheapest(self, share: float = 0.95) -> RoutingPoint:
        """Return the cheapest point that keeps `share` of the hard agent's score."""
        least = share * self.curve[-1].score
        return min((point for point in self.curve if point.score >= least), key=lambda point: point.cost)


def router_effect(
    easy: Sequence[ScoreAndCost],
    hard: Sequence[ScoreAndCost],
    probabilities: Sequence[float],
    thresholds: Sequence[float] | None = None,
) -> RouterEffect:
    """Return score and cost by threshold, beside random routing (as RouteLLM does, Ong et al. 2024).

    `easy` and `hard` are (score, cost) of each question by the cheap and the strong agent. `probabilities` are the
    router's for the easy agent, which is asked from the threshold on. Questions without both scores are left out.
    Without `thresholds`, all that make a difference are taken; above the last one all questions go to the hard agent.
    Raises BadRouting.
    """
    if not len(easy) == len(hard) == len(probabilities):
        raise BadRouting(
            f"{len(easy)} easy, {len(hard)} hard, {len(probabilities)} probabilities: give one of each for a question"
        )
    rows = [
        (e[0], e[1], h[0], h[1], p)
        for e, h, p in zip(easy, hard, probabilities, strict=True)
        if e[0] is not None and h[0] is not None
    ]
    if not rows:
        raise BadRouting("no question has a score of both agents")
    table = np.array(rows, np.float64)
    chosen = sorted(thresholds) if thresholds is not None else [*np.unique(table[:, 4]).tolist(), float("inf")]
    curve = tuple(_point(table, threshold) for threshold in chosen)
    return RouterEffect(curve, _area(table), len(rows), len(easy) - len(rows))


def _point(table: Matrix, threshold: float) -> RoutingPoint:
    easy_score, easy_cost, hard_score, hard_cost, probability = table.T
    to_easy = probability >= threshold
    share = float(to_easy.mean())
    score = float(np.where(to_easy, easy_score, hard_score).mean())
    cost = float(np.where(to_easy, easy_cost, hard_cost).mean())
    ends = (float(easy_score.mean()), float(hard_score.mean()), float(easy_cost.mean()), float(hard_cost.mean()))
    return RoutingPoint(
        threshold,
        share,
        score,
        cost,
        _mix(share, *ends[:2]),
        _mix(share, *ends[2:]),
        score - _score_at_cost(cost, share, *ends),
    )


def _mix(share: float, easy: float, hard: float) -> float:
    return share * easy + (1 - share) * hard


def _score_at_cost(cost: float, share: float, easy_score: float, hard_score: float, easy: float, hard: float) -> float:
    """Return the score of a coin whose expected cost is `cost`."""
    if abs(hard - easy) > 1e-12:
        share = min(1.0, max(0.0, (hard - cost) / (hard - easy)))
    return _mix(share, easy_score, hard_score)


def _area(table: Matrix) -> float:
    """Return the mean score above the coin of the same share, over shares from 0 to 1; ties share their places."""
    points = [_point(table, threshold) for threshold in (*np.unique(table[:, 4]).tolist(), float("inf"))]
    shares = np.array([point.easy_share for point in points])[::-1]
    above = np.array([point.score - point.random_score for point in points])[::-1]
    return float(np.trapezoid(above, shares))


def against_random(
    easy: Sequence[float], hard: Sequence[float], probabilities: Sequence[float], threshold: float
) -> PairedTest:
    """Test whether routing at `threshold` scores above a coin of the same share, question by question.

    The coin's score of a question is its expectation. Raises BadPair and NothingToScore.
    """
    to_easy = [p >= threshold for p in probabilities]
    share = sum(to_easy) / (len(to_easy) or 1)
    routed = [e if to else h for e, h, to in zip(easy, hard, to_easy, strict=True)]
    return paired_test(routed, [_mix(share, e, h) for e, h in zip(easy, hard, strict=True)])


# ---------------------------------------------------------------------------------------------- runs of a sweep


def compare_routers(runs: Sequence[Record]) -> list[dict[str, Any]]:
    """Return the effect on score and cost, by metric, of each run that a router shared out between two agents.

    A run needs two others in the sweep that ask one of its agents each and differ from it in the router alone; a run
    without them is left out. `gain` and `difference` [value, low, high, p] are the score above a coin's: of the same
    cost, and, question by question, of the same share.
    """
    measured = [run for run in runs if run["state"] == "done" and run.get("agents")]
    routed = [run for run in measured if run["settings"].get("router.kind", "fixed") != "fixed"]
    return [row for run in routed for row in _row(run, measured)]


def _row(run: Record, measured: Sequence[Record]) -> Iterator[dict[str, Any]]:
    alone = [_run_of_agent(agent, run, measured) for agent in run["agents"]]
    if len(alone) != 2 or not (alone[0] and alone[1]):
        return
    easy, hard = sorted((each for each in alone if each), key=lambda each: float(each["cost_per_1000"]))
    agents = [_agent(one) for one in easy["found"]]
    names = {"easy": Counter(agents).most_common(1)[0][0], "easy_run": easy["name"], "hard_run": hard["name"]}
    to_easy = [float(_agent(one) == names["easy"]) for one in run["found"]]
    of_answers = [name for name in run["values"] if not is_of_hits(name)]
    by_metric = {name: _effect(name, easy, hard, to_easy) for name in of_answers if name in easy["values"]}
    yield {"run": run["name"], **names, "metrics": {name: effect for name, effect in by_metric.items() if effect}}


def _run_of_agent(agent: str, run: Record, measured: Sequence[Record]) -> Record | None:
    """Return the run that asks `agent` every question and has the other settings of `run`."""
    fits = (one for one in measured if list(one["agents"]) == [agent] and _rest(one) == _rest(run))
    return next(fits, None)


def _rest(run: Record) -> dict[str, Any]:
    return {name: value for name, value in run["settings"].items() if not name.startswith("router")}


def _agent(found: Mapping[str, Any]) -> str:
    return str(found.get("agent"))


def _effect(metric: str, easy: Record, hard: Record, to_easy: Sequence[float]) -> dict[str, Any] | None:
    """Return the effect over the questions that have a score of both agents; None without such a question."""
    sides = [_scores_and_costs(run, metric) for run in (easy, hard)]
    both = [number for number, (e, h) in enumerate(zip(*sides, strict=True)) if e[0] is not None and h[0] is not None]
    if not both:
        return None
    ours, theirs = ([side[number] for number in both] for side in sides)
    chosen = [to_easy[number] for number in both]
    (at,) = router_effect(ours, theirs, chosen, [0.5]).curve
    test = against_random([e[0] or 0.0 for e in ours], [h[0] or 0.0 for h in theirs], chosen, 0.5)
    ends = {"easy": _mean(ours), "hard": _mean(theirs)}
    known = {name: value for name, value in asdict(at).items() if name != "threshold"}
    return {**known, **ends, "difference": [test.difference, test.low, test.high, test.p], "questions": len(both)}


def _scores_and_costs(run: Record, metric: str) -> list[ScoreAndCost]:
    return [(v, f["cost"] or 0.0) for v, f in zip(run["values"][metric], run["found"], strict=True)]


def _mean(pairs: list[ScoreAndCost]) -> list[float]:
    """Return the mean [score, cost] of a question."""
    return [sum(pair[place] or 0.0 for pair in pairs) / len(pairs) for place in (0, 1)]
