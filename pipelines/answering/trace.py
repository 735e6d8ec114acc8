"""The record of one question, from which its answer is written.

Knows no step; the engine times and records the steps.
"""

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from pipelines.answering.agents import AgentResult
from pipelines.answering.grounding.answerable import UNKNOWN, unknown_answer
from pipelines.answering.grounding.citations import (
    CheckedStatement,
    cite_closest,
    cite_quotes,
    count_claims,
    count_quotes,
    first_support,
    make_citations,
)
from pipelines.answering.grounding.support import Support
from pipelines.records import FINISHED, Citation, Claims, Exchange, Hit, Route, Usage

log = logging.getLogger(__name__)

# Stands in `degraded` where a call of the language model was cut off.
TRUNCATED = "truncated"
_AGENT = "llm:"  # before the name of an agent that failed


@dataclass(slots=True)
class Trace:
    """Mutable record of one question. `timings` are seconds by step, `degraded` the lost parts, in order, each once.

    `asked` is the question as its reader would know it again, `unclear` what it refers to and no turn before it names,
    `about` is what it goes on about, `astray` the same where nothing that was found is about it,
    `notes` are what the answer begins with; `checked` are the statements of a language model's answer.
    """

    started: float = field(default_factory=time.perf_counter)
    timings: dict[str, float] = field(default_factory=dict)
    degraded: dict[str, None] = field(default_factory=dict)
    usage: Usage = Usage()
    exchanges: list[Exchange] = field(default_factory=list)
    route: Route = Route("", "")
    agent: str = ""
    asked: str = ""
    unclear: str = ""
    about: str = ""
    astray: str = ""
    notes: tuple[str, ...] = ()
    text: str = ""
    known: bool = True
    failed: bool = False
    refused: bool = False
    finish_reason: str = FINISHED
    quoted: Mapping[int, Support] = field(default_factory=dict)
    checked: Sequence[CheckedStatement] = ()

    @property
    def preface(self) -> str:
        """The notes as the first paragraphs of an answer."""
        return "".join(f"{note}\n\n" for note in self.notes)

    @property
    def is_whole(self) -> bool:
        """Whether the agent that was chosen answered, and was not cut off."""
        return self.finish_reason == FINISHED and not any(part.startswith(_AGENT) for part in self.degraded)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Time a step; the seconds of a step that runs twice are added."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self.timings[name] = self.timings.get(name, 0.0) + time.perf_counter() - started

    def all_timings(self) -> dict[str, float]:
        """Return the timings with the total so far."""
        return {**self.timings, "total": time.perf_counter() - self.started}

    def lose(self, part: str) -> None:
        """Record that `part` failed and the answer is made without it."""
        self.degraded[part] = None

    def pay(self, usage: Usage, exchanges: Sequence[Exchange]) -> None:
        """Record calls of a language model."""
        self.usage += usage
        self.exchanges += exchanges

    def begin(self, agent: str) -> None:
        """Record that an agent begins; the text of the one before it is void."""
        self.agent, self.text, self.failed, self.refused, self.checked = agent, "", False, False, ()

    def say(self, text: str) -> None:
        """Record text of the answer that was sent."""
        if not self.text:
            self.timings.setdefault("first_delta", time.perf_counter() - self.started)
        self.text += text

    def end(self, agent: str, result: AgentResult) -> None:
        """Record the result of an agent."""
        self.pay(result.usage, result.exchanges)
        if result.failed:
            self.fail(agent, result.failed)
            return
        self.quoted = result.quoted
        for cut in {exchange.finish_reason for exchange in result.exchanges} - {FINISHED}:
            self.finish_reason = cut
            self.lose(TRUNCATED)

    def fail(self, agent: str, why: str) -> None:
        """Record that an agent failed and another stands in for it; the route names both."""
        log.warning("agent %s failed: %s", agent, why)
        self.failed = True
        self.lose(f"{_AGENT}{agent}")
        self.route = Route(self.route.agent, f"{self.route.why}; {agent} failed: {why}")

    def give_way(self, agent: str, note: str = "") -> None:
        """Record that an agent found no answer and another one stands in for it, which `note` tells the reader."""
        self.route = Route(self.route.agent, f"{self.route.why}; {agent} found no answer")
        self.notes += (note,) if note else ()

    def add_closest(self, hits: Sequence[Hit]) -> str:
        """Return the closest sources for an answer that only says that it does not know, else ""."""
        self.known = not self.text.lstrip().startswith(UNKNOWN)
        return unknown_answer(hits).removeprefix(UNKNOWN) if self.text.strip() == UNKNOWN else ""

    @property
    def first_support(self) -> float:
        """How well a passage supports the first claim, or the first quoted source answers the question."""
        quoted = next(iter(self.quoted.values()), None)
        return quoted.score if quoted else first_support(self.checked)

    def cite(self, hits: Sequence[Hit]) -> tuple[tuple[Citation, ...], Claims]:
        """Return the citations and the count of the claims; an answer that it does not know claims nothing."""
        with self.step("cite"):
            if self.quoted:
                return cite_quotes(self.quoted, hits), count_quotes(self.quoted) if self.known else Claims()
            if not self.known:
                return cite_closest(self.text, hits), Claims()
            return make_citations(self.checked, hits), count_claims(self.checked)
