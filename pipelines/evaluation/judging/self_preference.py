"""Measures how much higher than its peers a judge rates answers of its own model.

Knows scores by judge and answerer; no model. The bias is the self-enhancement of Zheng et al. (2023), see position.py.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipelines.evaluation.judging.judge import same_model
from pipelines.evaluation.statistics import Interval, bootstrap

ScoresByJudge = Mapping[tuple[str, str], Sequence[float | None]]


@dataclass(frozen=True, slots=True)
class SelfPreference:
    """How much higher than its peers a judge rates its own answers, beyond how much higher it rates the others'.

    `own` and `others` are mean differences to the other judges' scores of the same answers; `preference` is own minus
    others, with its interval over questions.
    """

    judge: str
    own: float
    others: float
    preference: Interval


def measure_self_preference(scores: ScoresByJudge) -> list[SelfPreference]:
    """Return the self-preference of every judge that also answered, most first.

    `scores[judge, answerer]` are scores of the same questions in the same order, None where a judgement failed; such
    questions are left out everywhere. It takes two judges and two answerers that were all judged by all: a judge
    without them is not in the result. A difference of differences, so that a strict judge and a good model cancel out.
    """
    judges = list(dict.fromkeys(judge for judge, _ in scores))
    answerers = list(dict.fromkeys(answerer for _, answerer in scores))
    found = [_preference(scores, judge, judges, answerers) for judge in judges]
    return sorted((one for one in found if one), key=lambda one: -one.preference.value)


def _preference(scores: ScoresByJudge, judge: str, judges: list[str], answerers: list[str]) -> SelfPreference | None:
    peers = [peer for peer in judges if not same_model(peer, judge)]
    mine = [answerer for answerer in answerers if same_model(answerer, judge)]
    theirs = [answerer for answerer in answerers if answerer not in mine]
    needed = [(one, answerer) for one in (judge, *peers) for answerer in answerers]
    if not (peers and mine and theirs) or any(pair not in scores for pair in needed):
        return None
    table = [dict(zip(needed, row, strict=True)) for row in zip(*(scores[pair] for pair in needed), strict=True)]
    whole = [{pair: float(value) for pair, value in row.items() if value is not None} for row in table]
    rows = [row for row in whole if len(row) == len(needed)]
    if not rows:
        return None
    own = [_above_peers(row, judge, peers, mine) for row in rows]
    others = [_above_peers(row, judge, peers, theirs) for row in rows]
    preference = bootstrap({"mean": [a - b for a, b in zip(own, others, strict=True)]})["mean"]
    return SelfPreference(judge, sum(own) / len(own), sum(others) / len(others), preference)


def _above_peers(row: Mapping[tuple[str, str], float], judge: str, peers: list[str], answerers: list[str]) -> float:
    """Return how much higher than its peers `judge` scores the answers of `answerers` to one question, on average."""
    differences = [
        row[judge, answerer] - sum(row[peer, answerer] for peer in peers) / len(peers) for answerer in answerers
    ]
    return sum(differences) / len(differences)
