"""Can a judge be trusted? Whether the order, the length or the author of answers sways it, measured on its own scores.

Knows a judge and answers; the biases are those of Zheng et al., "Judging LLM-as-a-Judge with MT-Bench and Chatbot
Arena" (NeurIPS 2023): position, verbosity, self-enhancement.
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from pipelines.answering.synthesis.prompts import Template
from pipelines.characters import clean_for_model
from pipelines.evaluation.dataset import Example
from pipelines.evaluation.judging.dimensions import SYSTEM, quoted
from pipelines.evaluation.judging.judge import Judge, same_model
from pipelines.evaluation.statistics import Interval, PairedTest, bootstrap, paired_test
from pipelines.llm.replies import strip_reasoning
from pipelines.llm.retry import ConcurrencyLimit, ParsedReply, Progress, UnusableReply, ask, gather_all
from pipelines.llm.session import ChatModel
from pipelines.records import Answer, Usage

Choice = Literal["A", "B", "tie"]

COMPARE = Template("""\
Two answers to a question stand below. Say which one is better, given a reference answer that is known to be right. \
Neither their order, nor length, nor tone counts.

<question>
{question}
</question>

<reference_answer>
{reference}
</reference_answer>

<answer_a>
{a}
</answer_a>

<answer_b>
{b}
</answer_b>

First say in a sentence what decides. Reply with one JSON object and nothing else: \
{{"reasoning": "what decides", "better": "A"}}, where "better" is "A", "B" or "tie".""")

REMINDER = 'Reply with one JSON object and nothing else: {"reasoning": "what decides", "better": "A", "B" or "tie"}'

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"reasoning": {"type": "string"}, "better": {"type": "string", "enum": ["A", "B", "tie"]}},
    "required": ["reasoning", "better"],
    "additionalProperties": False,
}

_CHOICES: Mapping[str, Choice] = {"a": "A", "b": "B", "tie": "tie", "c": "tie", "equal": "tie", "both": "tie"}
_ANSWER = r"(?:answer[ _]?)?"
_CHOICE = r"(?P<choice>a|b|c|tie|equal|both)\b"
# The clearest way of saying it first.
_WAYS = [
    re.compile(pattern, re.IGNORECASE | re.MULTILINE)
    for pattern in (
        rf"""["']better["']\s*:\s*["']?{_ANSWER}{_CHOICE}""",
        rf"\[\[\s*(?:answer )?{_CHOICE}\s*\]\]",
        rf"\b(?:better|winner|choice|verdict|preferred)(?:\s+answer)?\s*(?:\bis\b|[:=])\s*{_ANSWER}[\"'\[(]*{_CHOICE}",
        rf"^\W*{_ANSWER}{_CHOICE}\W*$",
        r"\banswer[ _]?(?P<choice>[ab])\b[^.\n]{0,20}?\b(?:is\s+(?:(?!(?:not|no|never)\b)\w+\s+){0,2}better|wins)\b",
    )
]


class NoChoice(UnusableReply):
    """A reply does not say which of two answers is better."""


def parse_choice(text: str) -> Choice:
    """Which answer a reply prefers: JSON, "[[A]]", "Better: B", "Answer A is better". Raises NoChoice."""
    said = re.sub(r"[*_`]", "", strip_reasoning(clean_for_model(text)))
    for pattern in _WAYS:
        found = {_CHOICES[match["choice"].lower()] for match in pattern.finditer(said)}
        if len(found) == 1:
            return found.pop()
        if found:
            raise NoChoice("the reply prefers both answers")
    raise NoChoice("the reply names no better answer")


# ---------------------------------------------------------------------------------------------- position


@dataclass(frozen=True, slots=True)
class Comparison:
    """Which of two answers is better, asked in both orders: `winner` "A" or "B" only where both orders agree.

    `first` and `second` are what was said of A before B and of B before A, both in the answers' own names.
    """

    winner: Choice | None
    first: Choice | None
    second: Choice | None
    error: str | None
    usage: Usage

    @property
    def consistent(self) -> bool:
        """Whether the order made no difference."""
        return self.error is None and self.first == self.second


@dataclass(frozen=True, slots=True)
class Position:
    """Over many pairs: the share judged alike in both orders, and the shares that favoured the one shown first, second.

    None where no pair could be judged in both orders. A share of 1 is a judge without position bias.
    """

    consistent: Interval | None
    favours_first: float | None
    favours_second: float | None
    judged: int
    errors: int
    usage: Usage


async def compare(llm: ChatModel, example: Example, a: str, b: str) -> Comparison:
    """Which of the texts `a` and `b` answers better, asked twice with their places swapped."""
    one, other = await asyncio.gather(_better(llm, example, a, b), _better(llm, example, b, a))
    second: Choice | None = {"A": "B", "B": "A", "tie": "tie"}[other.value] if other.value else None  # type: ignore[assignment]
    winner: Choice | None = one.value if one.value == second else "tie"
    error = one.error or other.error
    return Comparison(None if error else winner, one.value, second, error, one.usage + other.usage)


async def _better(llm: ChatModel, example: Example, a: str, b: str) -> ParsedReply[Choice]:
    shown = {"question": example.question, "reference": example.answer or "(none is known)", "a": a, "b": b}
    prompt = COMPARE.format(**{name: quoted(text) for name, text in shown.items()})
    return await ask(llm, prompt, parse_choice, system=SYSTEM, reminder=REMINDER, schema=SCHEMA)


async def position_bias(
    llm: ChatModel, pairs: Sequence[tuple[Example, str, str]], at_once: int = 4, progress: Progress | None = None
) -> Position:
    """How far the order of two answers sways `llm`; `pairs` are examples with the texts of two answers."""
    slots = ConcurrencyLimit(at_once)

    async def one(example: Example, a: str, b: str) -> Comparison:
        async with slots.free():
            return await compare(llm, example, a, b)

    compared = await gather_all([partial(one, *pair) for pair in pairs], progress)
    judged = [c for c in compared if c.error is None]
    return Position(
        _mean([float(c.consistent) for c in judged]),
        _share(judged, "A", "B"),
        _share(judged, "B", "A"),
        len(judged),
        len(compared) - len(judged),
        sum((c.usage for c in compared), Usage()),
    )


def _share(judged: Sequence[Comparison], first: Choice, second: Choice) -> float | None:
    """The share of pairs in which `first` won in one order and `second` in the other."""
    return sum((c.first, c.second) == (first, second) for c in judged) / len(judged) if judged else None


# ---------------------------------------------------------------------------------------------- verbosity


@dataclass(frozen=True, slots=True)
class Verbosity:
    """What padding does to scores: padded minus plain, with interval and p; a judge without this bias is not above 0.

    `raised` is the share of answers whose score rose. None where no answer was judged both ways.
    """

    difference: PairedTest | None
    raised: float | None
    judged: int
    errors: int
    usage: Usage


def padded(text: str) -> str:
    """`text` at more than twice its length without a word of news: announced, then repeated.

    After the "repetitive list" attack of Zheng et al., which rephrases; without a model it can but repeat.
    """
    return (
        "This is a good question, and there is a clear answer to it. Let us look at it in detail, step by step, so "
        f"that nothing is left open.\n\n{text}\n\nIn other words, and to put it in a more comprehensive way that "
        f"covers all the points which have been made above:\n\n{text}\n\nIn summary, the explanation above answers "
        "the question in full."
    )


async def verbosity_bias(
    judge: Judge, pairs: Sequence[tuple[Example, Answer]], dimension: str = "quality", progress: Progress | None = None
) -> Verbosity:
    """Whether padding the answers raises the scores that `judge` gives them in `dimension`."""
    both = [*pairs, *((example, replace(answer, text=padded(answer.text))) for example, answer in pairs)]
    judged = [judgements[dimension] for judgements in await judge.judge_all(both, progress)]
    plain, longer = judged[: len(pairs)], judged[len(pairs) :]
    scored = [
        (float(one.score), float(other.score))
        for one, other in zip(plain, longer, strict=True)
        if one.score is not None and other.score is not None
    ]
    before, after = [one for one, _ in scored], [other for _, other in scored]
    return Verbosity(
        paired_test(after, before) if scored else None,
        sum(other > one for one, other in scored) / len(scored) if scored else None,
        len(scored),
        len(pairs) - len(scored),
        sum((judgement.usage for judgement in judged), Usage()),
    )


# ---------------------------------------------------------------------------------------------- self-preference


@dataclass(frozen=True, slots=True)
class SelfPreference:
    """How much higher than its peers a judge rates its own answers, beyond how much higher it rates all others'.

    `own` and `others` are mean differences to the other judges' scores of the same answers; `preference` is own minus
    others, with its interval over questions.
    """

    judge: str
    own: float
    others: float
    preference: Interval


def self_preference(scores: Mapping[tuple[str, str], Sequence[float | None]]) -> list[SelfPreference]:
    """The self-preference of every judge that also answered, most first.

    `scores[judge, answerer]` are scores of the same questions in the same order, None where a judgement failed; such
    questions are left out everywhere. It takes two judges and two answerers that all judged all: a judge that lacks
    them is not in the result. A difference of differences, so that a strict judge and a good model cancel out.
    """
    judges = list(dict.fromkeys(judge for judge, _ in scores))
    answerers = list(dict.fromkeys(answerer for _, answerer in scores))
    found = [_preference(scores, judge, judges, answerers) for judge in judges]
    return sorted((one for one in found if one), key=lambda one: -one.preference.value)


def _preference(
    scores: Mapping[tuple[str, str], Sequence[float | None]], judge: str, judges: list[str], answerers: list[str]
) -> SelfPreference | None:
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
    preference = _mean([a - b for a, b in zip(own, others, strict=True)])
    assert preference is not None
    return SelfPreference(judge, sum(own) / len(own), sum(others) / len(others), preference)


def _above_peers(row: Mapping[tuple[str, str], float], judge: str, peers: list[str], answerers: list[str]) -> float:
    """How much higher than its peers `judge` scores the answers of `answerers` to one question, on average."""
    differences = [
        row[judge, answerer] - sum(row[peer, answerer] for peer in peers) / len(peers) for answerer in answerers
    ]
    return sum(differences) / len(differences)


def _mean(values: Sequence[float]) -> Interval | None:
    return bootstrap({"mean": values})["mean"] if values else None
