"""What one question costs and what is missing from its answer: a record that no step reads."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from pipelines import tracing
from pipelines.records import Answer, Exchange, Usage

# What the conventions of GenAI call a question that is answered.
ASKED = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "raydex"}


@dataclass(slots=True)
class Trace:
    """The record of one question. `timings` are seconds by step, `degraded` the lost parts, in order, each once."""

    started: float = field(default_factory=time.perf_counter)
    timings: dict[str, float] = field(default_factory=dict)
    degraded: dict[str, None] = field(default_factory=dict)
    usage: Usage = Usage()
    exchanges: list[Exchange] = field(default_factory=list)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Time a step, which is a span; the seconds of a step that runs twice are added."""
        started = time.perf_counter()
        try:
            with tracing.span(name):
                yield
        finally:
            self.add_seconds(name, time.perf_counter() - started)

    def add_seconds(self, name: str, seconds: float) -> None:
        """Record that a step took `seconds` more."""
        self.timings[name] = self.timings.get(name, 0.0) + seconds

    def mark_first(self, name: str) -> None:
        """Record how long after the question something came for the first time."""
        self.timings.setdefault(name, time.perf_counter() - self.started)

    def all_timings(self) -> dict[str, float]:
        """Return the timings with the total so far."""
        return {**self.timings, "total": time.perf_counter() - self.started}

    def mark_degraded(self, part: str) -> None:
        """Record that `part` failed and the answer is made without it."""
        self.degraded[part] = None

    def add_usage(self, usage: Usage, exchanges: Sequence[Exchange]) -> None:
        """Record calls of a language model."""
        self.usage += usage
        self.exchanges += exchanges


def note_answer(answer: Answer) -> None:
    """Note on the span of a question how it was answered."""
    noted = ("id", "agent", "confidence", "degraded", "index", "revision")
    tracing.note({f"raydex.{name}": getattr(answer, name) for name in noted} | {"raydex.cost": answer.usage.cost})
    tracing.note_messages("gen_ai.input.messages", [("user", answer.question)])
    tracing.note_messages("gen_ai.output.messages", [("assistant", answer.text)])
