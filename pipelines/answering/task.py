"""What an agent is given and what it gives back: a task in; deltas and a last word out.

Plain values that cross a process boundary where an agent is its own deployment.
"""

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from pipelines.records import Exchange, Hit, Message, Usage


@dataclass(frozen=True, slots=True)
class Task:
    """A question with the hits to answer it from: passage n is `hits[n - 1].passage`.

    `mode` names the synthesizer, `variables` fill its prompt templates, `history` are the turns before, `context`
    the given texts of the mode `context_only`.
    """

    question: str
    hits: tuple[Hit, ...] = ()
    history: tuple[Message, ...] = ()
    mode: str = "compact"
    variables: Mapping[str, str] = field(default_factory=dict)
    context: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Done:
    """An agent's last word: what its answer cost, every prompt that it sent, and, if it failed, why."""

    usage: Usage = Usage()
    exchanges: tuple[Exchange, ...] = ()
    failed: str = ""


class Agent(Protocol):
    """Answers tasks. `secrets` are texts of its prompts that must not leave the service."""

    name: str
    secrets: tuple[str, ...]

    def check(self, variables: Mapping[str, str]) -> None:
        """Raise TemplateError if its prompts can't take `variables`."""
        ...

    def answer(self, task: Task) -> AsyncGenerator[str | Done, None]:
        """Deltas of the answer as they come, then Done."""
        ...


class StepUnavailable(ConnectionError):
    """A step that runs elsewhere is overloaded or has just died; the same question may be answered in a moment."""
