"""Agents: who answers. One behind a language model, and the extractive one that needs none.

Knows tasks and synthesizers; not how the hits were found nor where the agent runs.
"""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Protocol

from pipelines.answering.synthesis.base import Synthesizer, Task
from pipelines.answering.synthesis.extractive import ExtractiveSynthesizer
from pipelines.answering.synthesis.modes import synthesizer
from pipelines.answering.synthesis.prompts import DEFAULT, Prompts
from pipelines.llm.client import LLMFailed
from pipelines.llm.session import ChatModel, LLMSession
from pipelines.records import Exchange, Message, Usage

# The turns before are there to refer to, the passages to answer from: at most this share of the window.
HISTORY_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class AgentResult:
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

    def answer(self, task: Task) -> AsyncGenerator[str | AgentResult, None]:
        """Deltas of the answer as they come, then Done."""
        ...


class StepUnavailable(ConnectionError):
    """A step that runs elsewhere is overloaded or has just died; the same question may be answered in a moment."""


class LLMAgent:
    """Answers with a language model, by the synthesizer that `by_mode` has for the task's mode, or always by `own`.

    `system` replaces that of `prompts`; `assistant` is put in the model's mouth; at most `at_once` calls of
    a question run at a time.
    """

    def __init__(
        self,
        name: str,
        llm: ChatModel,
        own: Synthesizer | None = None,
        *,
        by_mode: Callable[[str], Synthesizer] | None = None,
        prompts: Prompts = DEFAULT,
        system: str = "",
        assistant: str = "",
        at_once: int = 4,
    ) -> None:
        self.name = name
        self._llm = llm
        self._own = own
        self._by_mode = by_mode or (lambda mode: synthesizer(mode, prompts=prompts))
        self._prompts = prompts
        self._system = system
        self._assistant = assistant
        self._at_once = at_once
        self.secrets: tuple[str, ...] = (system or prompts.system.text,)

    def check(self, variables: Mapping[str, str]) -> None:
        """Raise TemplateError if its prompts can't take `variables`."""
        self._prompts.check(variables)

    async def answer(self, task: Task) -> AsyncGenerator[str | AgentResult, None]:
        """Deltas of the answer, then Done; a model that fails is a Done that says why. Raises TemplateError."""
        history = self._recent(task.history)
        system = self._system or self._prompts.render("system", {}, task.variables)
        calls = LLMSession(self._llm, system=system, assistant=self._assistant, history=history, at_once=self._at_once)
        failed = ""
        try:
            how = self._own or self._by_mode(task.mode)
            async with aclosing(how.synthesize(task, calls)) as deltas:
                async for delta in deltas:
                    yield delta
        except LLMFailed as error:
            failed = str(error)
        yield AgentResult(calls.usage, tuple(calls.exchanges), failed)

    def _recent(self, history: Sequence[Message]) -> Sequence[Message]:
        """The newest turns that leave the passages their room."""
        left = int(self._llm.context_window * HISTORY_SHARE)
        for n, message in enumerate(reversed(history)):
            left -= self._llm.count(message.content)
            if left < 0:
                return history[len(history) - n :]
        return history


class ExtractiveAgent:
    """Answers with the best sentences of the hits. The last resort: it cannot fail."""

    name = "extractive"
    secrets: tuple[str, ...] = ()

    def __init__(self, extractive: ExtractiveSynthesizer | None = None) -> None:
        self._extractive = extractive or ExtractiveSynthesizer()

    def check(self, variables: Mapping[str, str]) -> None:
        """It has no prompts: any will do."""

    async def answer(self, task: Task) -> AsyncGenerator[str | AgentResult, None]:
        """The answer in one piece, then Done."""
        yield self._extractive.synthesize(task.question, task.hits)
        yield AgentResult()
