"""Routes questions by the operator's rules: regular expressions and topics."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from pipelines.answering.routing.classifier import words
from pipelines.records import Route

READ = 4_000  # characters that rules look at: enough for the subject, and a pattern's work stays bounded


class BadRule(ValueError):
    """A rule that cannot be followed."""


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
            raise BadRule(f"the rule for {self.agent!r} has neither pattern nor topics and would match nothing")
        wordless = [topic for topic in self.topics if not words(topic)]
        if wordless:
            raise BadRule(f"the rule for {self.agent!r} has topics without a word in them: {wordless}")
        object.__setattr__(self, "_regex", self._compile())

    def match(self, question: str) -> str:
        """Return which part of the rule `question` matches, in words; "" if none."""
        if self._regex and self._regex.search(question):
            return f"the pattern «{self.pattern}»"
        for topic in self.topics:
            if _mentions(question, topic):
                return f"the topic «{topic}»"
        return ""

    def _compile(self) -> "re.Pattern[str] | None":
        try:
            return re.compile(self.pattern, re.IGNORECASE) if self.pattern else None
        except (re.error, OverflowError, RecursionError) as error:
            raise BadRule(
                f"the rule for {self.agent!r} has the pattern {self.pattern!r}, which is no regular expression: {error}"
            ) from error


class RuleRouter:
    """Sends a question to the agent of the first rule that matches, else to `default`."""

    def __init__(self, rules: Sequence[Rule], default: str) -> None:
        self.rules, self.default = tuple(rules), default

    def route(self, question: str) -> Route:
        start = question[:READ]
        for rule in self.rules:
            if matched := rule.match(start):
                return Route(rule.agent, f"The question matches {matched}")
        return Route(self.default, "No rule matches, so the default agent answers")


def _mentions(question: str, topic: str) -> bool:
    """Return whether `question` has the words of `topic`, names whole (RLlib: rllib) or in parts (RLlib: r llib)."""
    return any(f" {form(topic)} " in f" {form(question)} " for form in (words, lambda text: words(text.lower())))
