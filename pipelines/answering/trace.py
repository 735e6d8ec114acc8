"""What one question has cost, lost and said so far: the notes from which its answer is written.

Knows no step; steps are timed and noted by the engine.
"""

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from pipelines.answering.agents import AgentResult
from pipelines.answering.synthesis.extractive import UNKNOWN, unknown
from pipelines.records import Exchange, Hit, Route, Usage

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Trace:
    """Notes on one question. `timings` are seconds by step, `degraded` what was lost, in order, each once."""

    started: float = field(default_factory=time.perf_counter)
    timings: dict[str, float] = field(default_factory=dict)
    degraded: dict[str, None] = field(default_factory=dict)
    usage: Usage = Usage()
    exchanges: list[Exchange] = field(default_factory=list)
    route: Route = Route("", "")
    agent: str = ""
    text: str = ""
    known: bool = True
    failed: bool = False

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Time a step; one that is done twice counts twice."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self.timings[name] = self.timings.get(name, 0.0) + time.perf_counter() - started

    def ended(self) -> dict[str, float]:
        """All timings, with the total."""
        return {**self.timings, "total": time.perf_counter() - self.started}

    def lose(self, part: str) -> None:
        """`part` failed; the answer is made without it."""
        self.degraded[part] = None

    def paid(self, usage: Usage, exchanges: Sequence[Exchange]) -> None:
        """LLMSession of a language model were made."""
        self.usage += usage
        self.exchanges += exchanges

    def begin(self, agent: str) -> None:
        """An agent begins to speak; what one before it said is void."""
        self.agent, self.text, self.failed = agent, "", False

    def say(self, text: str) -> None:
        """More of the answer has left."""
        if not self.text:
            self.timings.setdefault("first_delta", time.perf_counter() - self.started)
        self.text += text

    def done(self, agent: str, done: AgentResult) -> None:
        """An agent's last word."""
        self.paid(done.usage, done.exchanges)
        if done.failed:
            self.fail(agent, done.failed)

    def fail(self, agent: str, why: str) -> None:
        """An agent failed: another one stands in for it, and the route says so."""
        log.warning("agent %s failed: %s", agent, why)
        self.failed = True
        self.lose(f"llm:{agent}")
        self.route = Route(self.route.agent, f"{self.route.why}; {agent} failed: {why}")

    def closest(self, hits: Sequence[Hit]) -> str:
        """What is to be added to an answer that only says that it does not know: the closest sources."""
        self.known = not self.text.lstrip().startswith(UNKNOWN)
        return unknown(hits).removeprefix(UNKNOWN) if self.text.strip() == UNKNOWN else ""
