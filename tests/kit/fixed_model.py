"""A language model that always replies the same."""

import asyncio
from collections.abc import Sequence
from typing import Any

from pipelines.llm.client import Completion
from pipelines.records import Message, Usage


class FixedModel:
    """Answers with `text`; raises it where it is an error, waits for ever where it is None. Words are its tokens.

    `prompts` are what it was asked, `sizes` the tokens of each call with those that its reply may have.
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
