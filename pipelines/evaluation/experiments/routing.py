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
from pipelines.evaluation.statistics import PairedTest, paired_test

Scored = tuple[float, float]


@dataclass(frozen=True, slots=True)
class RoutingPoint:
    """The share of questions that went to the easy agent, and the mean score and cost of a question.

    `random_score` is the score of a coin that sends as many questions to the easy agent, chosen by chance; `gain` is
    the score above a coin of the same *cost* (of the same share, where the agents cost the same).
    """

    easy_share: float
    score: float
    cost: float
    random_score: float
    random_cost: float
    gain: float


def routing_point(easy: Sequence[Scored], hard: Sequence[Scored], to_easy: Sequence[bool]) -> RoutingPoint:
    """Return what sharing questions out between two agents gave; (score, cost) of each question by either of them."""
    easy_score, easy_cost = np.array(easy, np.float64).T
    hard_score, hard_cost = np.array(hard, np.float64).T
    share, cost = float(np.mean(to_easy)), float(np.where(to_easy, easy_cost, hard_cost).mean())
    score = float(np.where(to_easy, easy_score, hard_score).mean())
    scores, costs = (float(easy_score.mean()), float(hard_score.mean())), (easy_cost.mean(), hard_cost.mean())
    as_dear = share_at_cost(cost, *map(float, costs)) if abs(costs[1] - costs[0]) > 1e-12 else share
    random_cost = float(_mix(share, *costs))
    return RoutingPoint(share, score, cost, _mix(share, *scores), random_cost, score - _mix(as_dear, *scores))


def share_at_cost(cost: float, easy: float, hard: float) -> float:
    """Return the share of questions for the easy agent at which a coin's expected cost is `cost`."""
    return min(1.0, max(0.0, (hard - cost) / (hard - easy)))


def _mix(share: float, easy: float, hard: float) -> float:
    return share * easy + (1 - share) * hard


def against_random(easy: Sequence[float], hard: Sequence[float], to_easy: Sequence[bool]) -> PairedTest:
    """Test whether a router scores above a coin of the same share, question by question.

    The coin's score of a question is its expectation. Raises BadPair and NothingToScore.
    """
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
    to_easy = [_agent(one) == names["easy"] for one in run["found"]]
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


def _effect(metric: str, easy: Record, hard: Record, to_easy: Sequence[bool]) -> dict[str, Any] | None:
    """Return the effect over the questions that have a score of both agents; None without such a question."""
    sides = zip(easy["values"][metric], hard["values"][metric], easy["found"], hard["found"], to_easy, strict=True)
    both = [(e, of_e["cost"] or 0.0, h, of_h["cost"] or 0.0, to)
            for e, h, of_e, of_h, to in sides if e is not None and h is not None]  # fmt: skip
    if not both:
        return None
    ours, theirs, chosen = ([row[:2] for row in both], [row[2:4] for row in both], [row[4] for row in both])
    test = against_random([score for score, _ in ours], [score for score, _ in theirs], chosen)
    ends = {"easy": _mean(ours), "hard": _mean(theirs), "questions": len(both)}
    return {**asdict(routing_point(ours, theirs, chosen)), **ends,
            "difference": [test.difference, test.low, test.high, test.p]}  # fmt: skip


def _mean(pairs: Sequence[Scored]) -> list[float]:
    """Return the mean [score, cost] of a question."""
    return [sum(pair[place] for pair in pairs) / len(pairs) for place in (0, 1)]
