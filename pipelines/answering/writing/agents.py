"""Agents answer tasks: one uses a language model, the extractive one needs none.

This module works with tasks and synthesizers. It doesn't know how hits are found or where an agent runs.
"""

import logging
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import dropwhile
from typing import Protocol, runtime_checkable

from pipelines.answering.events import pull
from pipelines.answering.grounding.answerable import is_close, is_likely, unknown_answer
from pipelines.answering.grounding.support import Support
from pipelines.answering.retrieval.interface import Matrix
from pipelines.answering.synthesis.base import Synthesizer, Task
from pipelines.answering.synthesis.extractive import choose
from pipelines.answering.synthesis.modes import make_synthesizer, may_refuse
from pipelines.answering.synthesis.packing import refusal
from pipelines.answering.synthesis.prompts import DEFAULT, Prompts
from pipelines.answering.synthesis.quotes import Quote, in_order, is_answer, is_certain, supports, write
from pipelines.answering.synthesis.results import write_results
from pipelines.answering.writing.stages.refusals import gives_up
from pipelines.llm.errors import ContextTooLong, LLMFailed
from pipelines.llm.session import AT_ONCE, ChatModel, LLMSession, Status
from pipelines.llm.window import WindowTooSmall
from pipelines.records import ANSWER, RESULTS, SUMMARY, AnswerForm, Exchange, Message, Usage

# The most of the context window for earlier turns. Answers come from the passages; earlier turns only give context.
HISTORY_SHARE = 0.25
LONGEST_REFUSAL = 400  # characters; later text isn't checked for a refusal
# Characters of a summary below a quotation. It ends at the next end of a sentence, or at twice this length; a small
# model that repeats itself would otherwise write up to its limit.
LONGEST_SUMMARY = 1_000

ENDS = (".", "!", "?", "\n")  # the end of a sentence or line
# Attempts with a prompt that is too long for the server; the last one uses an eighth of the window.
FITTING_TRIES = 4

NO_TEMPLATES: Mapping[str, str] = {}

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class AgentResult:
    """The end of an agent's answer: its cost, every prompt sent, and the error if it failed.

    `quoted` maps the number of each quoted source to how well it answers the question; it is empty for an agent that
    doesn't quote. `known` is False if the agent says that it doesn't know. `form` distinguishes results from an answer.
    """

    usage: Usage = Usage()
    exchanges: tuple[Exchange, ...] = ()
    failed: str = ""
    quoted: Mapping[int, Support] = field(default_factory=dict)
    known: bool = True
    form: AnswerForm = ANSWER


AgentPart = str | Status | AgentResult
"""What an agent yields: text deltas and Status events, and the AgentResult last."""


class Agent(Protocol):
    """Answers tasks."""

    name: str

    def check(self, variables: Mapping[str, str], templates: Mapping[str, str] = NO_TEMPLATES) -> None:
        """Raise TemplateError if its prompts can't take `variables`, or `templates` can't replace them."""
        ...

    def answer(self, task: Task) -> AsyncGenerator[AgentPart, None]:
        """Yield text deltas and Status events, then the AgentResult."""
        ...


@runtime_checkable
class ResearchAgent(Protocol):
    """An agent whose model may search again before it answers."""

    name: str

    def prompts_of(self, task: Task) -> Prompts:
        """Return the prompts for a task, including the task's own templates. Raises TemplateError."""
        ...

    def open(self, task: Task, tell: Callable[[Status], None]) -> LLMSession:
        """Return a session with its model; `tell` receives each Status."""
        ...


class StepUnavailable(ConnectionError):
    """A step in another process is overloaded or has just died; asking again in a moment may succeed."""


class LLMAgent:
    """Answers with a language model, using the synthesizer that `by_task` makes for a task, or always `own`.

    `system` replaces the system prompt of `prompts`. Every answer starts with `assistant`. At most `at_once` calls of a
    question run concurrently.
    """

    def __init__(
        self,
        name: str,
        llm: ChatModel,
        own: Synthesizer | None = None,
        *,
        by_task: Callable[[Task], Synthesizer] | None = None,
        prompts: Prompts = DEFAULT,
        system: str = "",
        assistant: str = "",
        at_once: int = AT_ONCE,
    ) -> None:
        self.name, self._llm, self._own, self._prompts = name, llm, own, prompts
        self._by_task = by_task or partial(synthesizer_of, prompts=prompts)
        self._system, self._assistant, self._at_once = system, assistant, at_once

    def check(self, variables: Mapping[str, str], templates: Mapping[str, str] = NO_TEMPLATES) -> None:
        """Raise TemplateError if its prompts can't take `variables`, or `templates` can't replace them."""
        self._prompts.replaced(templates).check(variables)

    def answer(self, task: Task) -> AsyncGenerator[AgentPart, None]:
        """Yield text deltas and Status events, then an AgentResult, even if the model fails. Raises TemplateError."""
        return pull(partial(self._write, task))

    def prompts_of(self, task: Task) -> Prompts:
        """Return the prompts for a task, including the task's own templates. Raises TemplateError."""
        return self._prompts.replaced(task.templates)

    def open(
        self, task: Task, tell: Callable[[Status], None], window: int | None = None, assistant: str = ""
    ) -> LLMSession:
        """Return a session with the model: the system prompt, previous turns, and the beginning of each reply."""
        window = window or self._llm.context_window
        return LLMSession(
            self._llm,
            system=self._system or self.prompts_of(task).render("system", refusal(task), task.variables),
            assistant=assistant,
            history=self._recent(task.history, window),
            at_once=self._at_once,
            tell=lambda status: tell(replace(status, agent=self.name)),
            window=window,
        )

    async def _write(self, task: Task, send: Callable[[AgentPart], None]) -> None:
        window, result, shown = self._llm.context_window, AgentResult(), False

        def show(part: AgentPart) -> None:
            nonlocal shown
            shown = shown or (isinstance(part, str) and bool(part))
            send(part)

        for _ in range(FITTING_TRIES):
            session, failed, shorter = self._session(task, send, window), "", None
            try:
                await self._send_text(task, session, show)
            except LLMFailed as error:
                failed, shorter = str(error), None if task.sent else self._shorter(session, error)
            except WindowTooSmall:
                if not result.failed:  # caused by the settings, not by the server's limit
                    raise
                break
            exchanges = (*result.exchanges, *session.exchanges)
            result = AgentResult(result.usage + session.usage, exchanges, failed)
            if shorter is None or shown:
                break
            log.info("%s: retrying with at most %d tokens", failed, shorter)
            window = shorter
        send(result)

    def _session(self, task: Task, send: Callable[[AgentPart], None], window: int) -> LLMSession:
        if not task.sent:
            return self.open(task, send, window, self._assistant)

        def tell(status: Status) -> None:
            send(replace(status, agent=self.name))

        return LLMSession(self._llm, history=task.sent[:-1], at_once=self._at_once, tell=tell, window=window)

    async def _send_text(self, task: Task, session: LLMSession, send: Callable[[AgentPart], None]) -> None:
        """Send the presentable deltas of the answer. Raises LLMFailed and TemplateError."""
        if task.sent:
            await _relay(task.sent[-1].content, session, send)
            return
        synthesizer, text = self._own or self._by_task(task), ""
        async with aclosing(synthesizer.stream(task, session)) as deltas:
            async for delta in deltas:
                send(delta)
                text += delta
                if len(text) < LONGEST_REFUSAL and may_refuse(task.mode) and gives_up(text):
                    break  # the rest wouldn't be shown, and a slow model may take long to write it
                if task.form == SUMMARY and _is_enough(len(text), delta):
                    break

    def _shorter(self, session: LLMSession, error: LLMFailed) -> int | None:
        """Return a smaller window for a retry after a prompt of `session` failed; None if its length isn't the cause.

        It is the limit that the server reported. If that is no smaller, the server counts tokens differently or
        reported no limit; then it is half of the tokens requested.
        """
        if not isinstance(error, ContextTooLong):
            return None
        learned = self._llm.context_window
        return learned if learned < session.window else min(session.window, session.needed()) // 2

    def _recent(self, history: Sequence[Message], window: int) -> Sequence[Message]:
        """Return the newest turns that leave room for the passages, from a question on: some templates need that."""
        left = int(window * HISTORY_SHARE)
        for n, message in enumerate(reversed(history)):
            left -= self._llm.count(message.content)
            if left < 0:
                history = history[len(history) - n :]
                break
        return list(dropwhile(lambda turn: turn.role == "assistant", history))


async def _relay(prompt: str, session: LLMSession, send: Callable[[AgentPart], None]) -> None:
    """Send the model's reply to `prompt`. Raises LLMFailed."""
    async with aclosing(session.stream(prompt)) as deltas:
        async for delta in deltas:
            send(delta)


def _is_enough(length: int, delta: str) -> bool:
    """Return whether a summary of this length may end after `delta`."""
    ended = delta.rstrip(" ").endswith(ENDS)
    return length > LONGEST_SUMMARY and (ended or length > 2 * LONGEST_SUMMARY)


def synthesizer_of(
    task: Task, *, prompts: Prompts = DEFAULT, num_children: int | None = None, structured: bool = False
) -> Synthesizer:
    """Return the synthesizer for a task's mode, with the task's own templates and `structured` if it has them."""
    return make_synthesizer(
        task.mode,
        prompts=prompts.replaced(task.templates),
        num_children=num_children,
        structured=structured if task.structured is None else task.structured,
    )


class CollectionEmbed(Protocol):
    """Embeds texts with the model of a collection: float32 (n, d), rows of length 1."""

    async def __call__(self, texts: Sequence[str], collection: str | None = None) -> Matrix: ...


class ExtractiveAgent:
    """Answers by quoting the hits: the section that certainly answers, or results to choose from.

    It is the last resort and can't fail. Without `embed`, only words choose the quotes.
    """

    name = "extractive"

    def __init__(self, embed: CollectionEmbed | None = None) -> None:
        self._embed = embed

    def check(self, variables: Mapping[str, str], templates: Mapping[str, str] = NO_TEMPLATES) -> None:
        """Accept anything, because it has no prompts."""

    async def prepare(self, task: Task) -> Task:
        """Return the task with its quotes, and with the quoted hits first, in the order of the quotes."""
        quotes, hits = in_order(await self._choose(task), task.hits)
        return replace(task, quotes=quotes, hits=hits)

    async def answer(self, task: Task) -> AsyncGenerator[AgentPart, None]:
        """Yield the answer in one piece, then the AgentResult."""
        quotes = await self._choose(task) if task.quotes is None else task.quotes
        likely = task.evidence is None or is_likely(task.evidence) or is_answer(quotes)
        known = likely or is_close(task.question, task.hits, task.evidence)
        if is_certain(quotes):
            yield write(quotes, task.hits)
        elif quotes:
            yield write_results(quotes, task.hits, known=known, likely=likely, language=task.language)
        else:
            yield unknown_answer(task.question, task.hits, task.evidence, task.language)
        form = RESULTS if quotes and not is_certain(quotes) else ANSWER
        yield AgentResult(quoted=supports(quotes), known=known and bool(quotes), form=form)

    async def _choose(self, task: Task) -> tuple[Quote, ...]:
        embed = partial(self._embed, collection=task.collection) if self._embed and task.vectors else None
        return await choose(task.question, task.hits, embed, task.evidence, task.about, task.parts)
