"""The interface of a router, the fixed router and the router by a trained classifier.

Know questions and the names of agents, not what an agent is. A router never raises on any text.
"""

from dataclasses import dataclass
from typing import Protocol

from pipelines.answering.routing.classifier import TextClassifier
from pipelines.records import Route

THRESHOLD = 0.5  # for a classifier whose card has none
SUFFICES = "1"  # the label of questions that the cheap agent answers well enough


class Router(Protocol):
    """Decides which agent gets a question: one method."""

    def route(self, question: str) -> Route:
        """Return the agent for `question`, and why."""
        ...


class BadRouter(ValueError):
    """A classifier and settings that do not fit together."""


@dataclass(frozen=True, slots=True)
class FixedRouter:
    """Sends every question to one agent."""

    agent: str
    why: str = "It is the default agent"

    def route(self, question: str) -> Route:
        return Route(self.agent, self.why)


class ClassifierRouter:
    """Sends questions to the `easy` (cheap) agent if it will probably do, and the others to the `hard` one.

    The cheap agent gets a question from the probability `threshold` (0 to 1) of the classifier's label SUFFICES on; a
    higher threshold sends more to the strong agent. Raises BadRouter.
    """

    def __init__(self, classifier: TextClassifier, threshold: float = THRESHOLD, *, easy: str, hard: str) -> None:
        if not 0 <= threshold <= 1:
            raise BadRouter(f"the router's threshold is {threshold}; it is a probability, from 0 to 1")
        if SUFFICES not in classifier.labels:
            raise BadRouter(f"the router's classifier has the labels {list(classifier.labels)}, and no {SUFFICES!r}")
        self.classifier, self.threshold, self.easy, self.hard = classifier, threshold, easy, hard

    def route(self, question: str) -> Route:
        probability = self.classifier.probability(question, SUFFICES)
        if probability >= self.threshold:
            return Route(self.easy, self._why(probability, "at least"))
        return Route(self.hard, self._why(probability, "below"))

    def _why(self, probability: float, relation: str) -> str:
        return (
            f"The probability that {self.easy} suffices is {probability:.3f}, {relation} the threshold of "
            f"{self.threshold:g}"
        )
