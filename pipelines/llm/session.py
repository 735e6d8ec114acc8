"""The calls of one question to one model: bounded in number at a time, counted, recorded.

Knows what stands around a prompt (system prompt, history, assistant prefix); knows neither prompts nor HTTP.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Protocol

from pipelines.llm.client import FRAMING, Completion, LLMFailed
from pipelines.records import Exchange, Message, Usage


class ChatModel(Protocol):
    """What LLMSession need of an LLM. One that also has `estimate` (as LLM has) says what a broken call cost."""

    model: str
    context_window: int
    context_share: float
    max_tokens: int

    def count(self, text: str) -> int:
        """Tokens of `text`, rather too many than too few."""
        ...

    async def complete(
        self, messages: Sequence[Message], *, max_tokens: int | None = None, schema: Mapping[str, Any] | None = None
    ) -> Completion:
        """The whole answer, never empty. Raises LLMFailed."""
        ...

    def stream(
        self, messages: Sequence[Message], *, max_tokens: int | None = None
    ) -> AsyncGenerator[str | Usage, None]:
        """Deltas, the Usage last. Raises LLMFailed."""
        ...


class LLMSession:
    """Each prompt is sent as [system] + history + [prompt] + [assistant], empty ones left out.

    At most `at_once` calls run at a time; a stream counts until it is closed, so nothing may call in the midst of
    one where `at_once` is 1. `usage` is the sum so far and `exchanges` are the prompts with what came back, in order
    of completion; both also hold calls that failed or were cancelled half way, with what had come until then.
    """

    def __init__(
        self,
        llm: ChatModel,
        *,
        system: str = "",
        assistant: str = "",
        history: Sequence[Message] = (),
        at_once: int = 4,
    ) -> None:
        self.llm = llm
        self.usage = Usage()
        self.exchanges: list[Exchange] = []
        self._before = ((Message("system", system),) if system else ()) + tuple(history)
        self._after = (Message("assistant", assistant),) if assistant else ()
        self._slots = asyncio.Semaphore(at_once)

    def overhead(self) -> int:
        """Tokens of everything but the prompt's own text: system, history, prefix, and the framing of each message."""
        return _tokens(self.llm, self._messages(""))

    async def complete(
        self, prompt: str, *, max_tokens: int | None = None, schema: Mapping[str, Any] | None = None
    ) -> str:
        """The model's whole answer to `prompt`. Raises LLMFailed."""
        messages = self._messages(prompt)
        async with self._slots:
            done = Completion("", Usage(calls=1))
            try:
                done = await self.llm.complete(messages, max_tokens=max_tokens, schema=schema)
            except LLMFailed as failed:
                done = Completion("", failed.usage)
                raise
            except asyncio.CancelledError:
                done = Completion("", _estimate(self.llm, messages, ""))
                raise
            finally:
                self._record(messages, done.text, done.usage)
        return done.text

    async def stream(self, prompt: str, *, max_tokens: int | None = None) -> AsyncGenerator[str, None]:
        """Deltas of the answer to `prompt` as they come. Raises LLMFailed."""
        messages = self._messages(prompt)
        said, usage = "", None
        async with self._slots:
            try:
                async with aclosing(self.llm.stream(messages, max_tokens=max_tokens)) as items:
                    async for item in items:
                        if isinstance(item, Usage):
                            usage = item
                        else:
                            said += item
                            yield item
            except LLMFailed as failed:
                usage = failed.usage
                raise
            finally:
                self._record(messages, said, usage or _estimate(self.llm, messages, said))

    def _messages(self, prompt: str) -> tuple[Message, ...]:
        return (*self._before, Message("user", prompt), *self._after)

    def _record(self, messages: tuple[Message, ...], text: str, usage: Usage) -> None:
        self.usage += usage
        self.exchanges.append(Exchange(self.llm.model, messages, text))


def _tokens(llm: ChatModel, messages: Sequence[Message]) -> int:
    return sum((llm.count(message.content) if message.content else 0) + FRAMING for message in messages)


def _estimate(llm: ChatModel, messages: Sequence[Message], said: str) -> Usage:
    """What a call cost that ended before its server said so."""
    own = getattr(llm, "estimate", None)
    if own is not None:
        return own(messages, said)
    return Usage(_tokens(llm, messages), llm.count(said) if said else 0, 1)
