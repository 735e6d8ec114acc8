"""Measures position bias: whether the order in which two answers are shown sways a judge.

Knows a model and texts. The bias is that of Zheng et al., "Judging LLM-as-a-Judge with MT-Bench and Chatbot Arena"
(NeurIPS 2023).
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from pipelines.answering.synthesis.prompts import Template
from pipelines.evaluation.dataset import Example
from pipelines.evaluation.judging.dimensions import SYSTEM, quote
from pipelines.evaluation.statistics import Interval, bootstrap
from pipelines.llm.replies import read_objects, strip_reasoning
from pipelines.llm.retry import ConcurrencyLimit, ParsedReply, Progress, UnusableReply, ask, gather_all
from pipelines.llm.session import ChatModel
from pipelines.records import Usage
from pipelines.text.cleaning import clean_for_model

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

_CHOICES: Mapping[str, Choice] = {"a": "A", "b": "B", "tie": "tie"}
_SWAPPED: Mapping[Choice, Choice] = {"A": "B", "B": "A", "tie": "tie"}
_BETTER = re.compile(r"\bbetter\b[\s*_]*[:=][\s*_]*(?:answer\s+)?(a|b|tie)\b", re.IGNORECASE)


class NoChoice(UnusableReply):
    """A reply does not decide which of two answers is better."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Which of two answers is better, asked in both orders: `winner` is "A" or "B" only where both orders agree.

    `first` is the choice with A before B, `second` that with B before A, both in the answers' own names.
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
class PositionBias:
    """Over many pairs: the share judged alike in both orders, and the shares that favoured the first and the second.

    None where no pair could be judged in both orders. A judge without position bias is consistent in all pairs.
    """

    consistent: Interval | None
    favours_first: float | None
    favours_second: float | None
    judged: int
    errors: int
    usage: Usage


async def measure_position_bias(
    llm: ChatModel, pairs: Sequence[tuple[Example, str, str]], at_once: int = 4, progress: Progress | None = None
) -> PositionBias:
    """Return how far the order of two answers sways `llm`; `pairs` are examples with the texts of two answers."""
    slots = ConcurrencyLimit(at_once)

    async def one(example: Example, a: str, b: str) -> Comparison:
        async with slots.free():
            return await compare(llm, example, a, b)

    comparisons = await gather_all([partial(one, *pair) for pair in pairs], progress)
    judged = [c for c in comparisons if c.error is None]
    consistent = [float(c.consistent) for c in judged]
    return PositionBias(
        bootstrap({"mean": consistent})["mean"] if judged else None,
        _share(judged, "A", "B"),
        _share(judged, "B", "A"),
        len(judged),
        len(comparisons) - len(judged),
        sum((c.usage for c in comparisons), Usage()),
    )


async def compare(llm: ChatModel, example: Example, a: str, b: str) -> Comparison:
    """Return which of the texts `a` and `b` answers better, asked twice with their places swapped."""
    one, other = await asyncio.gather(_choose(llm, example, a, b), _choose(llm, example, b, a))
    second = _SWAPPED[other.value] if other.value else None
    winner: Choice | None = one.value if one.value == second else "tie"
    error = one.error or other.error
    return Comparison(None if error else winner, one.value, second, error, one.usage + other.usage)


async def _choose(llm: ChatModel, example: Example, a: str, b: str) -> ParsedReply[Choice]:
    texts = {"question": example.question, "reference": example.answer or "(none is known)", "a": a, "b": b}
    prompt = COMPARE.format(**{name: quote(text) for name, text in texts.items()})
    return await ask(llm, prompt, parse_choice, system=SYSTEM, reminder=REMINDER, schema=SCHEMA)


def parse_choice(text: str) -> Choice:
    """Return which answer a reply prefers: a JSON object with `better`, or `Better: B`. Raises NoChoice."""
    text = strip_reasoning(clean_for_model(text))
    named = [str(found["better"]) for found in read_objects(text, ("better",))] or _BETTER.findall(text)
    choices = {_CHOICES.get(name.strip().lower()) for name in named}
    choice = choices.pop() if len(choices) == 1 else None
    if choice is None:
        raise NoChoice("the reply prefers both answers" if choices else "the reply names no better answer")
    return choice


def _share(judged: Sequence[Comparison], first: Choice, second: Choice) -> float | None:
    """Return the share of pairs in which `first` won in one order and `second` in the other."""
    return sum((c.first, c.second) == (first, second) for c in judged) / len(judged) if judged else None
