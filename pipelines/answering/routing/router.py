"""Which agent answers a question: one for all, by the operator's rules, or by a trained classifier.

Knows questions and the names of agents; not what an agent is. A router never raises on any text.
"""

from dataclasses import dataclass
from typing import Protocol

from pipelines.answering.routing.classifier import TextClassifier
from pipelines.records import Route


class Router(Protocol):
    """Sends questions to agents: one method."""

    def route(self, question: str) -> Route:
        """The agent for `question`, and why."""
        ...


class BadRouter(ValueError):
    """A classifier and settings that do not fit together."""


@dataclass(frozen=True, slots=True)
class FixedRouter:
    """Every question goes to one agent."""

    agent: str
    why: str = "It is the default agent"

    def route(self, question: str) -> Route:
        return Route(self.agent, self.why)


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
