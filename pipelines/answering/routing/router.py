"""Defines the router interface, the fixed router, and the router that uses a trained classifier.

Routers see questions and the names of agents, but not the agents themselves. A router never raises on any text.
"""

from dataclasses import dataclass
from typing import Protocol

from pipelines.answering.routing.classifier import TextClassifier
from pipelines.records import Route

THRESHOLD = 0.5  # used if the classifier's card has none
SUFFICES = "1"  # the label of questions that the cheap agent answers well enough


class Router(Protocol):
    """Decides which agent answers a question."""

    def route(self, question: str) -> Route:
        """Return the agent for `question` and the reason."""
        ...


class BadRouter(ValueError):
    """The classifier and the settings of a router do not match."""


@dataclass(frozen=True, slots=True)
class FixedRouter:
    """Sends every question to one agent."""

    agent: str
    why: str = "It is the default agent"

    def route(self, question: str) -> Route:
        return Route(self.agent, self.why)


class ClassifierRouter:
    """Sends questions to the `easy` (cheap) agent if it will probably suffice, and the others to the `hard` one.

    The cheap agent gets a question if the classifier's probability of the label SUFFICES is at least `threshold` (0 to
    1). A higher threshold sends more questions to the strong agent. Raises BadRouter.
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
