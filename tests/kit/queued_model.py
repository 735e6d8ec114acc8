"""Provides language models for tests: one with queued replies, and one that streams parts."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from pipelines.llm.client import Completion
from pipelines.records import Message, Usage

QueuedReply = str | Exception | Callable[[str], str]


class QueuedModel:
    """Gives `replies` in turn, and repeats the last one: a string, an error or a function of the prompt.

    Its tokens are words, and each call costs 0.25 dollars. `asked` has the messages of every call, `most` the maximum
    number of concurrent calls.
    """

    context_share = 0.5

    def __init__(
        self, *replies: QueuedReply, model: str = "judge", context_window: int = 4_000, max_tokens: int = 200,
        pause: float = 0,
    ) -> None:  # fmt: skip
        self.replies, self.model = list(replies), model
        self.context_window, self.max_tokens = context_window, max_tokens
        self.asked: list[list[Message]] = []
        self.schemas: list[Any] = []
        self.running = self.most = 0
        self._pause = pause

    def count(self, text: str) -> int:
        return len(text.split())

    async def complete(self, messages: Sequence[Message], *, max_tokens: Any = None, schema: Any = None) -> Completion:
        self.asked.append(list(messages))
        self.schemas.append(schema)
        self.running += 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(self._pause)
        self.running -= 1
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        if isinstance(reply, Exception):
            raise reply
        prompt = next(m.content for m in messages if m.role == "user")
        return Completion(reply(prompt) if callable(reply) else reply, Usage(100, 10, 1, 0.25))

    def stream(self, messages: Sequence[Message], *, max_tokens: Any = None) -> Any:
        raise NotImplementedError


class Says:
    """A model that streams `parts`, then raises `error` or hangs. It records its prompts."""

    model, context_window, context_share, max_tokens = "says", 4000, 0.5, 200

    def __init__(self, *parts: str, error: Exception | None = None, hangs: bool = False) -> None:
        self.parts, self.error, self.hangs = parts, error, hangs
        self.run: list[str] = []
        self.cancelled = False

    def count(self, text: str) -> int:
        return len(text.split())

    async def complete(self, messages: Sequence[Message], **_: Any) -> Completion:
        texts = [part async for part in self.stream(messages)]
        return Completion("".join(str(part) for part in texts[:-1]), Usage(10, 5, 1, 0.5))

    async def stream(self, messages: Sequence[Message], **_: Any) -> AsyncIterator[str | Completion]:
        self.run.append("\n".join(message.content for message in messages))
        try:
            for part in self.parts:
                await asyncio.sleep(0)
                yield part
            if self.hangs:
                await asyncio.sleep(60)
        except (asyncio.CancelledError, GeneratorExit):
            self.cancelled = True
            raise
        if self.error:
            raise self.error
        yield Completion("".join(self.parts), Usage(10, 5, 1, 0.5))
