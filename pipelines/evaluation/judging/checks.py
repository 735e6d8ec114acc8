"""Checks a judge: whether order, length or author biases it, and whether people agree with it.

The biases come from Zheng et al., "Judging LLM-as-a-Judge with MT-Bench and Chatbot Arena" (NeurIPS 2023). Knows a
judge and strings; does not know how the answers were made.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pipelines.evaluation.dataset import Example
from pipelines.evaluation.judging.dimensions import COMPARE, COMPARE_REMINDER, PADDED, SYSTEM, quote
from pipelines.evaluation.judging.judge import Judge
from pipelines.evaluation.statistics import PairedTest, paired_test
from pipelines.llm.replies import object_schema, read_objects
from pipelines.llm.retry import UnusableReply, ask, gather_all
from pipelines.records import Answer
from pipelines.text.cleaning import clean_for_model

AT_ONCE = 4
# "Substantial" agreement starts here (Landis and Koch, Biometrics 1977).
LEAST_KAPPA = 0.6
BETTER = {"type": "string", "enum": ["A", "B", "tie"]}
SCHEMA = object_schema({"reasoning": {"type": "string"}, "better": BETTER})


class GradedAnswer(NamedTuple):
    """An answer with a person's grade from 1 to 5."""

    example: Example
    text: str
    grade: float


@dataclass(frozen=True, slots=True)
class JudgeFinding:
    """The result of one check. `value` is the bias, 0 for a fair judge; for agreement it is Cohen's kappa, at best 1.

    `low` to `high` is its 95% interval over questions. `passed` is False if the interval shows a bias, or if kappa is
    below LEAST_KAPPA. `skipped` says why nothing was measured; such a check has not passed.
    """

    check: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    judged: int = 0
    failed: int = 0
    passed: bool = False
    skipped: str = ""


class NoChoice(UnusableReply):
    """A reply does not say which of two answers is better."""


async def check_position(judge: Judge, pairs: Sequence[tuple[str, str, str]]) -> JudgeFinding:
    """Show (question, answer, other answer) in both orders, and measure how much more often the first place wins.

    Only pairs whose winner changes with the order count: a better answer wins in both.
    """

    async def choose(shown: tuple[str, str, str]) -> str | None:
        prompt = COMPARE.format(**dict(zip(("question", "a", "b"), map(quote, shown), strict=True)))
        told = {"system": SYSTEM, "reminder": COMPARE_REMINDER, "schema": SCHEMA}
        return (await ask(judge.llm, prompt, parse_choice, **told)).value

    orders = [*pairs, *((question, other, one) for question, one, other in pairs)]
    choices = await gather_all(choose, orders, AT_ONCE)
    both = zip(choices[: len(pairs)], choices[len(pairs) :], strict=True)
    places = [(one, other) for one, other in both if one and other]
    first, second = ([float(one == other == place) for one, other in places] for place in "AB")
    test = paired_test(first, second) if places else None
    return _finding("position", test, len(places), len(pairs), two_sided=True)


def parse_choice(text: str) -> str:
    """Return "A", "B" or "tie" from a JSON object with `better`. Raises NoChoice."""
    named = {str(found["better"]).strip().lower() for found in read_objects(clean_for_model(text), ("better",))}
    choice = {"a": "A", "b": "B", "tie": "tie"}.get(named.pop()) if len(named) == 1 else None
    if choice is None:
        raise NoChoice("the reply does not name one better answer")
    return choice


async def check_verbosity(judge: Judge, answers: Sequence[tuple[Example, str]]) -> JudgeFinding:
    """Measure how much higher the judge scores the same answers at more than twice their length."""
    plain = await score(judge, answers)
    longer = await score(judge, [(example, PADDED.format(text=text)) for example, text in answers])
    scored = [(b, a) for a, b in zip(plain, longer, strict=True) if a is not None and b is not None]
    test = paired_test([one for one, _ in scored], [other for _, other in scored]) if scored else None
    return _finding("verbosity", test, len(scored), len(answers))


async def check_self_preference(
    judges: Mapping[str, Judge], examples: Sequence[Example], texts: Mapping[str, Sequence[str]]
) -> JudgeFinding:
    """Measure how much higher two models score their own answers than each other's, beyond what both agree on.

    `texts[name]` are the answers of the model of `judges[name]` to `examples`, "" for none. In this difference of
    differences, a strict judge and a good model cancel out. It can't tell which of the two is biased.
    """
    one, other = judges
    pairs = ((one, one), (other, one), (one, other), (other, other))
    scores = [await score(judges[judge], list(zip(examples, texts[by], strict=True))) for judge, by in pairs]
    rows = [[float(each) for each in row if each is not None] for row in zip(*scores, strict=True)]
    whole = [row for row in rows if len(row) == len(pairs)]
    test = paired_test([row[0] - row[1] for row in whole], [row[2] - row[3] for row in whole]) if whole else None
    return _finding("self-preference", test, len(whole), len(examples))


async def check_agreement(judge: Judge, graded: Sequence[GradedAnswer]) -> JudgeFinding:
    """Measure agreement with people: Cohen's kappa with quadratic weights, in steps of half a point."""
    from sklearn.metrics import cohen_kappa_score

    scores = await score(judge, [(one.example, one.text) for one in graded])
    both = [(round(2 * one.grade), round(2 * s)) for one, s in zip(graded, scores, strict=True) if s is not None]
    failed = len(graded) - len(both)
    kappa = math.nan
    if len(set(both)) > 1:
        kappa = float(cohen_kappa_score(*zip(*both, strict=True), labels=range(2, 11), weights="quadratic"))
    if math.isnan(kappa):
        return JudgeFinding(
            "agreement", judged=len(both), failed=failed, skipped="it takes answers with different grades"
        )
    return JudgeFinding("agreement", kappa, None, None, len(both), failed, kappa >= LEAST_KAPPA)


async def score(judge: Judge, answers: Sequence[tuple[Example, str]]) -> list[float | None]:
    """Return the judge's score of each answer in its first dimension, None for a missing score."""

    async def one(pair: tuple[Example, str]) -> float | None:
        example, text = pair
        found = await judge.judge(example, Answer(example.question, text, "", (), (), (), {}, 0, 0))
        return found[judge.dimensions[0].name].score

    return await gather_all(one, answers, AT_ONCE)


def _finding(check: str, test: PairedTest | None, judged: int, given: int, two_sided: bool = False) -> JudgeFinding:
    if test is None:
        return JudgeFinding(check, failed=given, skipped="no answer could be judged")
    swayed = test.low > 0 or (two_sided and test.high < 0)
    return JudgeFinding(check, test.difference, test.low, test.high, judged, given - judged, not swayed)
