"""What a router is worth: a run that it answered beside those that ask either of its agents alone, and beside a coin.

Knows records as they stand in results.json.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from pipelines.evaluation.experiments.cost import against_random, router_effect

Record = Mapping[str, Any]
Pairs = list[tuple[float | None, float]]


def routers(runs: Sequence[Record]) -> list[dict[str, Any]]:
    """For each run that a router shared out between two agents, what that does to score and cost, by metric.

    Needs the runs of the sweep that differ from it in the router alone and ask one of the two agents each; a run
    without them is left out. `gain` and `difference` [value, low, high, p] are the score above a coin's: of the same
    cost, and, question by question, of the same share.
    """
    measured = [run for run in runs if run["state"] == "done" and run.get("agents")]
    return [row for run in measured if run["settings"].get("router", "fixed") != "fixed" for row in _row(run, measured)]


def _row(run: Record, measured: Sequence[Record]) -> Iterator[dict[str, Any]]:
    alone = [_alone(agent, run, measured) for agent in run["agents"]]
    if len(alone) != 2 or not (alone[0] and alone[1]):
        return
    easy, hard = sorted((each for each in alone if each), key=lambda each: float(each["cost_per_1000"]))
    agents = [_agent(one) for one in easy["found"]]
    names = {"easy": Counter(agents).most_common(1)[0][0], "easy_run": easy["name"], "hard_run": hard["name"]}
    to_easy = [float(_agent(one) == names["easy"]) for one in run["found"]]
    metrics = [name for name in run["values"] if "@" not in name and name != "mrr"]
    by_metric = {name: _effect(name, easy, hard, to_easy) for name in metrics if name in easy["values"]}
    yield {"run": run["name"], **names, "metrics": {name: effect for name, effect in by_metric.items() if effect}}


def _alone(agent: str, run: Record, measured: Sequence[Record]) -> Record | None:
    """The run that asks `agent` whatever the question is, and is like `run` in all else."""
    fits = (one for one in measured if list(one["agents"]) == [agent] and _rest(one) == _rest(run))
    return next(fits, None)


def _rest(run: Record) -> dict[str, Any]:
    return {name: value for name, value in run["settings"].items() if not name.startswith("router")}


def _agent(found: Mapping[str, Any]) -> str:
    return str(found.get("agent"))


def _effect(metric: str, easy: Record, hard: Record, to_easy: Sequence[float]) -> dict[str, Any] | None:
    """Over the questions that both agents have a score of."""
    pairs = [_pairs(run, metric) for run in (easy, hard)]
    both = [number for number, (e, h) in enumerate(zip(*pairs, strict=True)) if e[0] is not None and h[0] is not None]
    if not both:
        return None
    ours, theirs = ([side[number] for number in both] for side in pairs)
    chosen = [to_easy[number] for number in both]
    (at,) = router_effect(ours, theirs, chosen, [0.5]).curve
    sure = against_random([e[0] or 0.0 for e in ours], [h[0] or 0.0 for h in theirs], chosen, 0.5)
    ends = {"easy": _mean(ours), "hard": _mean(theirs)}
    known = {name: value for name, value in asdict(at).items() if name != "threshold"}
    return {**known, **ends, "difference": [sure.difference, sure.low, sure.high, sure.p], "questions": len(both)}


def _pairs(run: Record, metric: str) -> Pairs:
    return [(v, f["cost"] or 0.0) for v, f in zip(run["values"][metric], run["found"], strict=True)]


def _mean(pairs: Pairs) -> list[float]:
    """[score, cost] of a question."""
    return [sum(pair[place] or 0.0 for pair in pairs) / len(pairs) for place in (0, 1)]
