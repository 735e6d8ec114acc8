"""A language model whose replies are kept in a file: what it has answered once is neither asked nor paid again.

Knows messages and replies as texts; not what they are about, and no endpoint.
"""

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pipelines.llm.client import Completion
from pipelines.llm.session import ChatModel
from pipelines.records import Message, Usage, digest


class CachedModel:
    """Stands where a Model is wanted, and asks `llm` only what `path` has no reply to.

    The file has one JSON object a line, {"asked", "said"}: `asked` names the model, the messages and what form was
    wanted. A line is written as its reply comes, so a killed process loses the calls under way and no other; a line
    that is not whole counts for nothing. A reply that can't be used is kept like any other, a failed call is not.
    `reused` counts the replies that came from the file; they cost nothing.
    """

    def __init__(self, llm: ChatModel, path: Path) -> None:
        self.model, self.max_tokens = llm.model, llm.max_tokens
        self.context_window, self.context_share = llm.context_window, llm.context_share
        self.reused = 0
        self._llm, self._path = llm, path
        self._said = _read(path)

    def count(self, text: str) -> int:
        """Tokens of `text`, as the model counts them."""
        return self._llm.count(text)

    async def complete(
        self, messages: Sequence[Message], *, max_tokens: int | None = None, schema: Mapping[str, Any] | None = None
    ) -> Completion:
        """The reply that is kept, else the model's. Raises LLMFailed, and OSError where it can't be kept."""
        asked = _name(self.model, messages, max_tokens or self.max_tokens, schema)
        if asked in self._said:
            self.reused += 1
            return Completion(self._said[asked], Usage())
        done = await self._llm.complete(messages, max_tokens=max_tokens, schema=schema)
        self._keep(asked, done.text)
        return done

    def stream(
        self, messages: Sequence[Message], *, max_tokens: int | None = None
    ) -> AsyncGenerator[str | Usage, None]:
        """The model's own stream; none is kept."""
        return self._llm.stream(messages, max_tokens=max_tokens)

    async def close(self) -> None:
        """Close the model's connections, if it has any."""
        close = getattr(self._llm, "close", None)
        if close:
            await close()

    def _keep(self, asked: str, said: str) -> None:
        self._said[asked] = said
        with self._path.open("a+b") as file:
            file.seek(max(0, file.seek(0, 2) - 1))
            torn = file.read(1) not in (b"", b"\n")  # a process died in the midst of its line
            file.write(b"\n" * torn + json.dumps({"asked": asked, "said": said}).encode() + b"\n")


def _name(model: str, messages: Sequence[Message], max_tokens: int, schema: Mapping[str, Any] | None) -> str:
    said = (part for message in messages for part in (message.role, message.content))
    return digest(model, str(max_tokens), json.dumps(schema, sort_keys=True), *said)


def _read(path: Path) -> dict[str, str]:
    lines = path.read_bytes().split(b"\n") if path.exists() else []
    return dict(kept for line in lines if (kept := _kept(line)))


def _kept(line: bytes) -> tuple[str, str] | None:
    try:
        row = json.loads(line)
    except ValueError:
        return None
    asked, said = (row.get("asked"), row.get("said")) if isinstance(row, dict) else (None, None)
    return (asked, said) if isinstance(asked, str) and isinstance(said, str) else None
