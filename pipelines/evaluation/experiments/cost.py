"""What answers cost, what a better score costs, and what a router saves.

Knows prices and tokens, scores and costs by question; pure arithmetic, no model is asked.
"""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from pipelines.evaluation.statistics import PairedTest, paired_test
from pipelines.records import Usage

MILLION = 1_000_000
PRICES = Path(__file__).with_name("prices.yaml")

Vector = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


class BadPrices(ValueError):
    """A price table can't be used; the message names file, model and what is wrong."""


class UnknownPrice(LookupError):
    """No price is known of a model."""


class BadRouting(ValueError):
    """Scores, costs and decisions of a router do not belong together, or there is not one question."""


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens of the prompt, of the completion, and of text that is embedded."""

    prompt: float = 0.0
    completion: float = 0.0
    embedding: float = 0.0
    source: str = ""

    def cost(self, prompt_tokens: int = 0, completion_tokens: int = 0, embedded_tokens: int = 0) -> float:
        """US dollars of so many tokens."""
        tokens = prompt_tokens * self.prompt + completion_tokens * self.completion + embedded_tokens * self.embedding
        return tokens / MILLION


def load_prices(path: Path | str | None = None) -> dict[str, Price]:
    """The price of each model by its name in small letters; those in `path` win over the built-in ones.

    A file is YAML or JSON: {models: {NAME: {prompt, completion, embedding}}}, `models:` may be left out. Raises
    BadPrices.
    """
    prices = _read(PRICES)
    return prices | _read(Path(path)) if path else prices


def price_of(model: str, prices: Mapping[str, Price]) -> Price:
    """The price of a model, also under a provider's prefix (`meta-llama/…`, `openai:…`). Raises UnknownPrice."""
    name = model.lower()
    for known in (name, name.rpartition("/")[2], name.removeprefix("openai:")):
        if known in prices:
            return prices[known]
    near = difflib.get_close_matches(name.rpartition("/")[2], prices, 3)
    hint = f"; near it: {', '.join(near)}" if near else ""
    raise UnknownPrice(
        f"no price is known of {model!r}{hint}: give a price file with models: {{{model}: {{prompt: …}}}}"
    )


def _read(path: Path) -> dict[str, Price]:
    try:
        loaded = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise BadPrices(f"{path}: can't be read: {' '.join(str(error).split())[:300]}") from error
    models = loaded.get("models", loaded) if isinstance(loaded, dict) else None
    if not isinstance(models, dict):
        raise BadPrices(f"{path}: must be a table of models, NAME: {{prompt: 2.5, completion: 10}}")
    return {str(name).lower(): _price(path, str(name), row) for name, row in models.items()}


def _price(path: Path, name: str, row: Any) -> Price:
    fields = {"prompt", "completion", "embedding"}
    if not isinstance(row, dict) or not set(row) & fields or set(row) - fields - {"source"}:
        raise BadPrices(
            f"{path}: {name}: give any of prompt, completion, embedding (US dollars per million), not {row!r}"
        )
    for field in fields & set(row):
        value = row[field]
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
            raise BadPrices(f"{path}: {name}: {field} is {value!r}: it must be a number of dollars, 0 or more")
    return Price(**{field: float(row[field]) for field in fields & set(row)}, source=str(row.get("source", "")))


# ---------------------------------------------------------------------------------------------- of questions


@dataclass(frozen=True, slots=True)
class Bill:
    """What a number of questions cost, US dollars, with the mean tokens and calls of one."""

    questions: int
    total: float
    per_question: float
    per_1000: float
    prompt_tokens: float
    completion_tokens: float
    calls: float


def bill(usages: Sequence[Usage], price: Price | None = None, embedding: float = 0.0) -> Bill:
    """The cost of questions that used so much each: as recorded, or at another `price` for the same tokens.

    `embedding`: US dollars of embedding all of them.
    """
    costs = [price.cost(u.prompt_tokens, u.completion_tokens) if price else u.cost for u in usages]
    total = sum(costs) + embedding
    n = len(usages) or 1
    used = sum(usages, Usage())
    each = total / n
    return Bill(
        len(usages), total, each, 1_000 * each, used.prompt_tokens / n, used.completion_tokens / n, used.calls / n
    )


@dataclass(frozen=True, slots=True)
class Point:
    """A configuration with its score and its cost per question."""

    name: str
    score: float
    cost: float


def frontier(points: Sequence[Point]) -> list[Point]:
    """The points that no other one beats: none is cheaper with at least its score, or better at its cost or less.

    From the cheapest to the best (the Pareto frontier); of equal ones the first.
    """
    best: list[Point] = []
    for point in sorted(points, key=lambda point: (point.cost, -point.score)):
        if not best or point.score > best[-1].score:
            best.append(point)
    return best


# ---------------------------------------------------------------------------------------------- of a router


@dataclass(frozen=True, slots=True)
class Routed:
    """What a threshold comes to: the share of questions that the easy agent gets, mean score and cost of a question.

    `random_score` is that of a coin which sends as many questions, whichever, to the easy agent; `gain` is the score
    above that of a coin of the same *cost* (of the same share, where the agents cost the same).
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

    `area` is the mean score above random routing over all shares of the easy agent: 0 is a coin. `questions` are those
    that both agents have a score of, `left_out` the others.
    """

    curve: tuple[Routed, ...]
    area: float
    questions: int
    left_out: int

    def at(self, threshold: float) -> Routed:
        """What the router does at `threshold`: the point of the least threshold that is not below it."""
        return next((point for point in self.curve if point.threshold >= threshold), self.curve[-1])

    def cheapest(self, share: float = 0.95) -> Routed:
        """The cheapest point that keeps `share` of the hard agent's score."""
        least = share * self.curve[-1].score
        return min((point for point in self.curve if point.score >= least), key=lambda point: point.cost)


def router_effect(
    easy: Sequence[tuple[float | None, float]],
    hard: Sequence[tuple[float | None, float]],
    probabilities: Sequence[float],
    thresholds: Sequence[float] | None = None,
) -> RouterEffect:
    """Score and cost by threshold, beside random routing (as RouteLLM does, Ong et al. 2024).

    `easy` and `hard` are (score, cost) of each question by the cheap and the strong agent, `probabilities` what the
    router says for the easy one: it is asked from the threshold on. Questions without both scores are left out.
    `thresholds` are all that make a difference if not given; above the last one all go to the hard agent. Raises
    BadRouting.
    """
    if not len(easy) == len(hard) == len(probabilities):
        raise BadRouting(
            f"{len(easy)} easy, {len(hard)} hard, {len(probabilities)} probabilities: one of each a question"
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
    curve = tuple(_routed(table, threshold) for threshold in chosen)
    return RouterEffect(curve, _area(table), len(rows), len(easy) - len(rows))


def _routed(table: Vector, threshold: float) -> Routed:
    easy_score, easy_cost, hard_score, hard_cost, probability = table.T
    to_easy = probability >= threshold
    share = float(to_easy.mean())
    score = float(np.where(to_easy, easy_score, hard_score).mean())
    cost = float(np.where(to_easy, easy_cost, hard_cost).mean())
    ends = (float(easy_score.mean()), float(hard_score.mean()), float(easy_cost.mean()), float(hard_cost.mean()))
    return Routed(
        threshold,
        share,
        score,
        cost,
        _mixed(share, *ends[:2]),
        _mixed(share, *ends[2:]),
        score - _at_cost(cost, share, *ends),
    )


def _mixed(share: float, easy: float, hard: float) -> float:
    return share * easy + (1 - share) * hard


def _at_cost(cost: float, share: float, easy_score: float, hard_score: float, easy: float, hard: float) -> float:
    """The score of a coin whose expected cost is `cost`."""
    if abs(hard - easy) > 1e-12:
        share = min(1.0, max(0.0, (hard - cost) / (hard - easy)))
    return _mixed(share, easy_score, hard_score)


def _area(table: Vector) -> float:
    """Mean score above the coin of the same share, over shares from 0 to 1; ties share their places evenly."""
    points = [_routed(table, threshold) for threshold in (*np.unique(table[:, 4]).tolist(), float("inf"))]
    shares = np.array([point.easy_share for point in points])[::-1]
    above = np.array([point.score - point.random_score for point in points])[::-1]
    return float(np.trapezoid(above, shares))


def against_random(
    easy: Sequence[float], hard: Sequence[float], probabilities: Sequence[float], threshold: float
) -> PairedTest:
    """Whether routing at `threshold` scores above a coin of the same share, question by question, with interval and p.

    The coin's score of a question is its expectation. Raises BadPair and NothingToScore.
    """
    to_easy = [p >= threshold for p in probabilities]
    share = sum(to_easy) / (len(to_easy) or 1)
    routed = [e if to else h for e, h, to in zip(easy, hard, to_easy, strict=True)]
    return paired_test(routed, [_mixed(share, e, h) for e, h in zip(easy, hard, strict=True)])
