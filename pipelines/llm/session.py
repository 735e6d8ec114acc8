"""The calls of one question to one model: limited in number at a time, counted, recorded.

Knows what surrounds a prompt (system prompt, history, assistant prefix); knows neither prompts nor HTTP.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Protocol

from pipelines.llm.client import FRAMING, Completion
from pipelines.llm.errors import LLMFailed
from pipelines.records import Exchange, Message, Usage

AT_ONCE = 4  # calls of one question


class ChatModel(Protocol):
    """The part of an LLM that a session needs. A model with `estimate`, as LLM, also prices calls that broke off."""

    model: str
    context_window: int
    context_share: float
    max_tokens: int

    def count(self, text: str) -> int:
        """Count the tokens of `text`, rather too many than too few."""
        ...

    async def complete(
        self, messages: Sequence[Message], *, max_tokens: int | None = None, schema: Mapping[str, Any] | None = None
    ) -> Completion:
        """Return the whole answer, never empty. Raises LLMFailed."""
        ...

    def stream(
        self, messages: Sequence[Message], *, max_tokens: int | None = None
    ) -> AsyncGenerator[str | Completion, None]:
        """Yield deltas, the Completion last. Raises LLMFailed."""
        ...


class LLMSession:
    """Sends each prompt as [system] + history + [prompt] + [assistant], empty ones left out.

    At most `at_once` calls run at a time. A stream counts until it is closed, so nothing may call while one is open
    where `at_once` is 1. `usage` is the sum so far and `exchanges` are the prompts with their replies, in order of
    completion; both include calls that failed or were cancelled, with the text that had come until then.
    """

    def __init__(
        self,
        llm: ChatModel,
        *,
        system: str = "",
        assistant: str = "",
        history: Sequence[Message] = (),
        at_once: int = AT_ONCE,
    ) -> None:
        self.llm = llm
        self.usage = Usage()
        self.exchanges: list[Exchange] = []
        self._before = ((Message("system", system),) if system else ()) + tuple(history)
        self._after = (Message("assistant", assistant),) if assistant else ()
        self._slots = asyncio.Semaphore(at_once)

    def overhead(self) -> int:
        """Count the tokens of all but the prompt's text: system, history, prefix, and the framing of each message."""
        return _count(self.llm, self._messages(""))

    async def complete(
        self, prompt: str, *, max_tokens: int | None = None, schema: Mapping[str, Any] | None = None
    ) -> str:
        """Return the model's whole answer to `prompt`. Raises LLMFailed."""
        messages = self._messages(prompt)
        async with self._slots:
            completion = Completion("", Usage(calls=1))
            try:
                completion = await self.llm.complete(messages, max_tokens=max_tokens, schema=schema)
            except LLMFailed as failed:
                completion = Completion("", failed.usage)
                raise
            except asyncio.CancelledError:
                completion = Completion("", _estimate(self.llm, messages, ""))
                raise
            finally:
                self._record(messages, completion)
        return completion.text

    async def stream(self, prompt: str, *, max_tokens: int | None = None) -> AsyncGenerator[str, None]:
        """Yield deltas of the answer to `prompt` as they come. Raises LLMFailed."""
        messages = self._messages(prompt)
        text, completion = "", None
        async with self._slots:
            try:
                async with aclosing(self.llm.stream(messages, max_tokens=max_tokens)) as items:
                    async for item in items:
                        if isinstance(item, Completion):
                            completion = item
                        else:
                            text += item
                            yield item
            except LLMFailed as failed:
                completion = Completion(text, failed.usage)
                raise
            finally:
                self._record(messages, completion or Completion(text, _estimate(self.llm, messages, text)))

    def _messages(self, prompt: str) -> tuple[Message, ...]:
        return (*self._before, Message("user", prompt), *self._after)

    def _record(self, messages: tuple[Message, ...], completion: Completion) -> None:
        self.usage += completion.usage
        self.exchanges.append(Exchange(self.llm.model, messages, completion.text, completion.finish_reason))


def _count(llm: ChatModel, messages: Sequence[Message]) -> int:
    return sum((llm.count(message.content) if message.content else 0) + FRAMING for message in messages)


def _estimate(llm: ChatModel, messages: Sequence[Message], text: str) -> Usage:
    """Estimate the cost of a call that ended before its server reported it."""
    own = getattr(llm, "estimate", None)
    if own is not None:
        return own(messages, text)
    return Usage(_count(llm, messages), llm.count(text) if text else 0, 1)
