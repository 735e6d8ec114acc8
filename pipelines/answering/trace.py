"""Records the costs of a question and the parts missing from its answer; no step reads the record."""

import logging
import time
from collections.abc import Awaitable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from pipelines import tracing
from pipelines.records import Answer, Exchange, Usage

log = logging.getLogger(__name__)

T = TypeVar("T")

# Attributes of a question's span, as OpenTelemetry's semantic conventions for GenAI name them.
ASKED = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "raydex"}


@dataclass(slots=True)
class Trace:
    """The record of one question.

    `timings` are seconds by step. `degraded` lists the missing parts in order, each once.
    """

    started: float = field(default_factory=time.perf_counter)
    timings: dict[str, float] = field(default_factory=dict)
    degraded: dict[str, None] = field(default_factory=dict)
    usage: Usage = Usage()
    exchanges: list[Exchange] = field(default_factory=list)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Time a step and trace it as a span; the seconds of a step that runs twice are added."""
        started = time.perf_counter()
        try:
            with tracing.span(name):
                yield
        finally:
            self.add_seconds(name, time.perf_counter() - started)

    async def attempt(self, step: str, call: Awaitable[T], fallback: T, part: str = "") -> T:
        """Return the result of an optional step, `call`; if it fails, return `fallback`.

        A failure marks `part` as missing from the answer; its default is `step`.
        """
        try:
            with self.step(step):
                return await call
        except Exception as error:
            log.warning("answering without %s: %s: %s", part or step, type(error).__name__, error)
            self.mark_degraded(part or step)
            return fallback

    def add_seconds(self, name: str, seconds: float) -> None:
        """Add `seconds` to the time of a step."""
        self.timings[name] = self.timings.get(name, 0.0) + seconds

    def mark_first(self, name: str) -> None:
        """Record the seconds from the question to the first occurrence of an event."""
        self.timings.setdefault(name, time.perf_counter() - self.started)

    def all_timings(self) -> dict[str, float]:
        """Return the timings, with the total so far."""
        return {**self.timings, "total": time.perf_counter() - self.started}

    def mark_degraded(self, part: str) -> None:
        """Record that `part` failed and the answer lacks it."""
        self.degraded[part] = None

    def add_usage(self, usage: Usage, exchanges: Sequence[Exchange]) -> None:
        """Add the usage and exchanges of calls to a language model."""
        self.usage += usage
        self.exchanges += exchanges


def note_answer(answer: Answer) -> None:
    """Record on the question's span how it was answered."""
    noted = ("id", "agent", "confidence", "degraded", "index", "revision")
    tracing.note({f"raydex.{name}": getattr(answer, name) for name in noted} | {"raydex.cost": answer.usage.cost})
    tracing.note_messages("gen_ai.input.messages", [("user", answer.question)])
    tracing.note_messages("gen_ai.output.messages", [("assistant", answer.text)])
