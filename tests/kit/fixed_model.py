"""Provides a language model that always gives the same reply."""

import asyncio
from collections.abc import Sequence
from typing import Any

from pipelines.llm.client import Completion
from pipelines.records import Message, Usage


class FixedModel:
    """Replies with `text`. If `text` is an error, raises it; if it is None, waits forever. Its tokens are words.

    `prompts` records the prompts. `sizes` records the tokens of each call, including the maximum for its reply.
    """

    model, context_share = "fixed", 0.5

    def __init__(self, text: str | Exception | None, *, context_window: int = 2000, max_tokens: int = 200) -> None:
        self.text, self.context_window, self.max_tokens = text, context_window, max_tokens
        self.prompts: list[str] = []
        self.sizes: list[int] = []

    def count(self, text: str) -> int:
        return len(text.split())

    async def complete(self, messages: Sequence[Message], *, max_tokens: Any = None, schema: Any = None) -> Completion:
        self.prompts.append(messages[-1].content)
        self.sizes.append(sum(self.count(message.content) for message in messages) + max_tokens)
        if self.text is None:
            await asyncio.Event().wait()
        if isinstance(self.text, Exception):
            raise self.text
        return Completion(str(self.text), Usage(10, 2, 1, 0.5))

    def stream(self, messages: Sequence[Message], *, max_tokens: Any = None) -> Any:
        raise AssertionError("this model is asked for whole replies")
