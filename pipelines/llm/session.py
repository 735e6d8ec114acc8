"""The calls of one question to one model: limited in concurrency, counted and recorded.

Knows what surrounds a prompt (system prompt, history, assistant prefix); knows no prompts and no HTTP.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, runtime_checkable

from pipelines.llm.client import FRAMING, Completion
from pipelines.llm.errors import LLMFailed
from pipelines.llm.protocol import joined
from pipelines.llm.tool_calls import Tool
from pipelines.records import Exchange, Message, Usage

AT_ONCE = 4  # concurrent calls of one question
LOADING, READING, THINKING = "loading", "reading", "thinking"
SEARCHING, OPENING = "searching", "opening"


@dataclass(frozen=True, slots=True)
class Status:
    """The stage before any of the answer has arrived: LOADING an index, or a model is READING or THINKING.

    The prompt has `tokens` and `passages`. Reading takes about `seconds`, None if the model's speed is unknown.
    A model that looks again is SEARCHING for what it is `about`, or OPENING the page with that title.
    """

    stage: str
    agent: str = ""
    passages: int = 0
    tokens: int = 0
    seconds: float | None = None
    about: str = ""


class ChatModel(Protocol):
    """The part of an LLM that a session needs.

    A model with `estimate`, such as LLM, also prices calls that broke off. For a model with `pace` and
    `context_seconds`, prompts are kept short enough to be read in that time.
    """

    model: str
    context_window: int
    context_share: float | None
    max_tokens: int

    def count(self, text: str) -> int:
        """Return the token count of `text`, on the high side."""
        ...

    async def complete(
        self, messages: Sequence[Message], *, max_tokens: int | None = None, schema: Mapping[str, Any] | None = None
    ) -> Completion:
        """Return the complete answer, never empty. Raises LLMFailed."""
        ...

    def stream(
        self, messages: Sequence[Message], *, max_tokens: int | None = None
    ) -> AsyncGenerator[str | Completion, None]:
        """Yield deltas, "" for thoughts, and last the Completion. Raises LLMFailed."""
        ...


@runtime_checkable
class ToolModel(Protocol):
    """A ChatModel whose replies may call tools."""

    async def call(self, messages: Sequence[Message], tools: Sequence[Tool], *, may_call: bool = True) -> Completion:
        """Return the whole reply; without `may_call` it has no calls, if the server can do that. Raises LLMFailed."""
        ...


class LLMSession:
    """Sends each prompt as [system] + history + [prompt] + [assistant], leaving out empty ones.

    At most `at_once` calls run at a time. A stream counts until it is closed, so with `at_once` 1 no other call may run
    while a stream is open. `usage` is the total so far. `exchanges` are the prompts with their replies, in order of
    completion. Both include calls that failed or were cancelled, with the text that had arrived. `tell` is called with
    the Status of each call; its `passages` is set by the writer of the prompt. Prompts are made for `window` tokens, by
    default the model's context window.
    """

    def __init__(
        self,
        llm: ChatModel,
        *,
        system: str = "",
        assistant: str = "",
        history: Sequence[Message] = (),
        at_once: int = AT_ONCE,
        tell: Callable[[Status], None] = lambda status: None,
        window: int | None = None,
    ) -> None:
        self.llm = llm
        self.window = window or llm.context_window
        self.passages = 0
        self._tell = tell
        self.usage = Usage()
        self.exchanges: list[Exchange] = []
        self._before = ((Message("system", system),) if system else ()) + tuple(history)
        self._after = (Message("assistant", assistant),) if assistant else ()
        self._slots = asyncio.Semaphore(at_once)

    def overhead(self) -> int:
        """Count the tokens of everything except the prompt's own text: system, history, prefix, message framing."""
        return _count(self.llm, self._messages(""))

    def needed(self) -> int:
        """Count the tokens of the last call: its prompt, and the maximum length of its answer."""
        return _count(self.llm, self.exchanges[-1].messages) + self.llm.max_tokens

    def room(self, prompt: str) -> int | None:
        """Return how many tokens besides `prompt` the model can read in its `context_seconds`.

        None if there is no limit, or the model's speed is not known yet.
        """
        pace, seconds = getattr(self.llm, "pace", None), getattr(self.llm, "context_seconds", 0)
        speed = pace.reading.per_second if pace else None
        if not pace or not seconds or speed is None:
            return None
        messages = self._messages(prompt)
        return int(speed * seconds - pace.unread(joined(messages), _count(self.llm, messages)))

    def seconds_for(self, prompt: str, tokens: int) -> float:
        """Estimate the seconds for a reply of `tokens` to `prompt`, 0 while the model's speed is unknown."""
        messages, pace = self._messages(prompt), getattr(self.llm, "pace", None)
        return pace.seconds_for(joined(messages), _count(self.llm, messages), tokens) if pace else 0.0

    async def complete(
        self, prompt: str, *, max_tokens: int | None = None, schema: Mapping[str, Any] | None = None
    ) -> str:
        """Return the model's complete answer to `prompt`. Raises LLMFailed."""
        messages = self._messages(prompt)
        asking = partial(self.llm.complete, messages, max_tokens=max_tokens, schema=schema)
        return (await self._whole(messages, asking)).text

    async def call(
        self, prompt: str, after: Sequence[Message], tools: Sequence[Tool], *, may_call: bool = True
    ) -> Completion:
        """Return the model's reply to `prompt` and what came `after` it, which may call `tools`. Raises LLMFailed."""
        if not isinstance(self.llm, ToolModel):
            raise LLMFailed(f"{self.llm.model} calls no tools", Usage())
        messages = (*self._before, Message("user", prompt), *after)
        return await self._whole(messages, partial(self.llm.call, messages, tools, may_call=may_call))

    async def _whole(self, messages: tuple[Message, ...], ask: Callable[[], Awaitable[Completion]]) -> Completion:
        """Return what `ask` gives, which sends `messages`, and record it."""
        async with self._slots:
            completion = Completion("", Usage(calls=1))
            self._tell(self._reading(messages))
            try:
                completion = await ask()
            except LLMFailed as failed:
                completion = Completion("", failed.usage)
                raise
            except asyncio.CancelledError:
                completion = Completion("", _estimate(self.llm, messages, ""))
                raise
            finally:
                self._record(messages, completion)
        return completion

    async def stream(self, prompt: str, *, max_tokens: int | None = None) -> AsyncGenerator[str, None]:
        """Yield deltas of the answer to `prompt` as they arrive. Raises LLMFailed."""
        messages = self._messages(prompt)
        text, completion, silent = "", None, True
        async with self._slots:
            self._tell(self._reading(messages))
            try:
                async with aclosing(self.llm.stream(messages, max_tokens=max_tokens)) as items:
                    async for item in items:
                        if isinstance(item, Completion):
                            completion = item
                        elif item:
                            text, silent = text + item, False
                            yield item
                        elif silent:
                            silent = False
                            self._tell(Status(THINKING))
            except LLMFailed as failed:
                completion = Completion(text, failed.usage)
                raise
            finally:
                self._record(messages, completion or Completion(text, _estimate(self.llm, messages, text)))

    def _reading(self, messages: Sequence[Message]) -> Status:
        tokens, pace = _count(self.llm, messages), getattr(self.llm, "pace", None)
        seconds = pace.seconds_to_read(joined(messages), tokens) if pace else None
        return Status(READING, passages=self.passages, tokens=tokens, seconds=seconds)

    def _messages(self, prompt: str) -> tuple[Message, ...]:
        return (*self._before, Message("user", prompt), *self._after)

    def _record(self, messages: tuple[Message, ...], completion: Completion) -> None:
        self.usage += completion.usage
        said = Message("assistant", completion.text, completion.calls).said
        self.exchanges.append(Exchange(self.llm.model, messages, said, completion.finish_reason))


def _count(llm: ChatModel, messages: Sequence[Message]) -> int:
    return sum((llm.count(message.said) if message.said else 0) + FRAMING for message in messages)


def _estimate(llm: ChatModel, messages: Sequence[Message], text: str) -> Usage:
    """Estimate the cost of a call that ended before its server reported it."""
    own = getattr(llm, "estimate", None)
    if own is not None:
        return own(messages, text)
    return Usage(_count(llm, messages), llm.count(text) if text else 0, 1)
