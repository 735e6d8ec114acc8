"""Which agent answers a question: one for all, by the operator's rules, or by a trained classifier.

Knows questions and the names of agents; not what an agent is. A router never raises on any text.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pipelines.answering.routing.classifier import TextClassifier, words
from pipelines.records import Route

# What rules look at: the start says what a question is about, and a pattern's work stays bounded.
READ = 4_000


class Router(Protocol):
    """Sends questions to agents: one method."""

    def route(self, question: str) -> Route:
        """The agent for `question`, and why."""
        ...


class BadRule(ValueError):
    """A rule that cannot be followed."""


class BadRouter(ValueError):
    """A classifier and settings that do not fit together."""


@dataclass(frozen=True, slots=True)
class FixedRouter:
    """Every question goes to one agent."""

    agent: str
    why: str = "It is the default agent"

    def route(self, question: str) -> Route:
        return Route(self.agent, self.why)


@dataclass(frozen=True, slots=True)
class Rule:
    """Questions in which `pattern` (a regular expression, any case) is found, or one of `topics`, go to `agent`.

    A topic is one or more words that stand together as whole words: "serve" is in "ray.serve" but not in
    "observe". Raises BadRule.
    """

    agent: str
    pattern: str = ""
    topics: tuple[str, ...] = ()
    _regex: "re.Pattern[str] | None" = field(init=False, repr=False, compare=False, default=None)

    def __post_init__(self) -> None:
        if isinstance(self.topics, str):
            raise BadRule(f"the topics of the rule for {self.agent!r} are the text {self.topics!r}: give a list")
        object.__setattr__(self, "topics", tuple(self.topics))
        if not self.pattern and not self.topics:
            raise BadRule(f"the rule for {self.agent!r} has neither pattern nor topics: it would match nothing")
        wordless = [topic for topic in self.topics if not words(topic)]
        if wordless:
            raise BadRule(f"the rule for {self.agent!r} has topics without a word in them: {wordless}")
        object.__setattr__(self, "_regex", self._compiled())

    def match(self, question: str) -> str:
        """What of the rule `question` matches, in words; "" if nothing."""
        if self._regex and self._regex.search(question):
            return f"the pattern «{self.pattern}»"
        for topic in self.topics:
            if _mentions(question, topic):
                return f"the topic «{topic}»"
        return ""

    def _compiled(self) -> "re.Pattern[str] | None":
        try:
            return re.compile(self.pattern, re.IGNORECASE) if self.pattern else None
        except (re.error, OverflowError, RecursionError) as error:
            raise BadRule(
                f"the rule for {self.agent!r} has the pattern {self.pattern!r}, which is no regular expression: {error}"
            ) from error


class RuleRouter:
    """The first rule that matches decides; without one the question goes to `default`."""

    def __init__(self, rules: Sequence[Rule], default: str) -> None:
        self.rules, self.default = tuple(rules), default

    def route(self, question: str) -> Route:
        start = question[:READ]
        for rule in self.rules:
            if matched := rule.match(start):
                return Route(rule.agent, f"The question matches {matched}")
        return Route(self.default, "No rule matches, so the default agent answers")


class ClassifierRouter:
    """Sends to the `easy` (cheap) agent what it will probably answer well enough, and the rest to the `hard` one.

    `classifier` gives the probability that the cheap agent suffices: that of its label `suffices`. From `threshold`
    (0 to 1) on it is asked: a higher threshold sends more questions to the strong agent. Raises BadRouter.
    """

    def __init__(
        self, classifier: TextClassifier, threshold: float = 0.5, *, easy: str, hard: str, suffices: str = "1"
    ) -> None:
        if not 0 <= threshold <= 1:
            raise BadRouter(f"the router's threshold is {threshold}; it is a probability, from 0 to 1")
        if suffices not in classifier.labels:
            raise BadRouter(f"the router's classifier has the labels {list(classifier.labels)}, and no {suffices!r}")
        self.classifier, self.threshold, self.easy, self.hard, self.suffices = (
            classifier,
            threshold,
            easy,
            hard,
            suffices,
        )

    def route(self, question: str) -> Route:
        probability = self.classifier.probability(question, self.suffices)
        if probability >= self.threshold:
            return Route(self.easy, self._why(probability, "at least"))
        return Route(self.hard, self._why(probability, "below"))

    def _why(self, probability: float, relation: str) -> str:
        return (
            f"The probability that {self.easy} suffices is {probability:.3f}, {relation} the threshold of "
            f"{self.threshold:g}"
        )


def _mentions(question: str, topic: str) -> bool:
    """Whether the words of `topic` stand in `question`, names whole (RLlib: rllib) or taken apart (RLlib: r llib)."""
    return any(f" {form(topic)} " in f" {form(question)} " for form in (words, _whole_words))


def _whole_words(text: str) -> str:
    return words(text.lower())
