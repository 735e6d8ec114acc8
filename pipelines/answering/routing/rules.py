"""Routes questions by the operator's rules: regular expressions and topics."""

import re
from collections.abc import Sequence
from typing import Self

from pydantic import BaseModel, ConfigDict, model_validator

from pipelines.answering.routing.classifier import words
from pipelines.records import Route

READ = 4_000  # characters that rules examine: enough for the subject; a pattern that backtracks may still be slow


class Rule(BaseModel):
    """Sends a question to `agent` if it matches `pattern` (a case-insensitive regex) or mentions one of `topics`.

    A topic is one or more consecutive whole words: "serve" is in "ray.serve" but not in "observe". An unusable rule
    raises a ValidationError.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    agent: str
    pattern: str = ""
    topics: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.pattern and not self.topics:
            raise ValueError(f"the rule for {self.agent!r} has neither pattern nor topics and would match nothing")
        if wordless := [topic for topic in self.topics if not words(topic)]:
            raise ValueError(f"the rule for {self.agent!r} has topics without a word in them: {wordless}")
        try:
            re.compile(self.pattern, re.IGNORECASE)
        except (re.error, OverflowError, RecursionError) as error:
            raise ValueError(
                f"the rule for {self.agent!r} has the pattern {self.pattern!r}, not a regular expression: {error}"
            ) from error
        return self

    def match(self, question: str) -> str:
        """Return the part of the rule that `question` matches, in words; "" if none."""
        if self.pattern and re.search(self.pattern, question, re.IGNORECASE):
            return f"the pattern «{self.pattern}»"
        for topic in self.topics:
            if _mentions(question, topic):
                return f"the topic «{topic}»"
        return ""


class RuleRouter:
    """Sends a question to the agent of the first rule that matches, otherwise to `default`."""

    def __init__(self, rules: Sequence[Rule], default: str) -> None:
        self.rules, self.default = tuple(rules), default

    def route(self, question: str) -> Route:
        start = question[:READ]
        for rule in self.rules:
            if matched := rule.match(start):
                return Route(rule.agent, f"The question matches {matched}")
        return Route(self.default, "No rule matches, so the default agent answers")


def _mentions(question: str, topic: str) -> bool:
    """Return whether `question` has the words of `topic`, with names whole (RLlib: rllib) or split (RLlib: r llib)."""
    return any(f" {form(topic)} " in f" {form(question)} " for form in (words, lambda text: words(text.lower())))
