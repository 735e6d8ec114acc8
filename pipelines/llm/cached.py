"""Wraps a language model and keeps its replies in a file, so that no reply is paid for twice.

Handles messages and replies as strings. Knows nothing about their subject or about any endpoint.
"""

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pipelines.llm.client import Completion
from pipelines.llm.session import ChatModel
from pipelines.records import Message, Usage, digest
from pipelines.text.parsing import NotParsed, parse_json


class CachedModel:
    """A ChatModel that calls `llm` only for prompts without a reply in `path`.

    The file has one JSON object per line, {"asked", "said"}. `asked` is a hash of the model, the messages and the
    requested output format. Each line is written as soon as its reply arrives, so a killed process loses only the calls
    in flight. Incomplete lines are ignored. Unusable replies are kept like any others; failed calls are not. `reused`
    counts the replies that came from the file, which cost nothing.
    """

    def __init__(self, llm: ChatModel, path: Path) -> None:
        self.model, self.max_tokens = llm.model, llm.max_tokens
        self.context_window, self.context_share = llm.context_window, llm.context_share
        self.context_seconds, self.pace = getattr(llm, "context_seconds", 0), getattr(llm, "pace", None)
        self.reused = 0
        self._llm, self._path = llm, path
        self._replies = _read(path)

    def count(self, text: str) -> int:
        """Count the tokens of `text` the way the model does."""
        return self._llm.count(text)

    async def complete(
        self, messages: Sequence[Message], *, max_tokens: int | None = None, schema: Mapping[str, Any] | None = None
    ) -> Completion:
        """Return the stored reply, or call the model. Raises LLMFailed, and OSError if the reply can't be stored."""
        key = _key(self.model, messages, max_tokens or self.max_tokens, schema)
        if key in self._replies:
            self.reused += 1
            return Completion(self._replies[key], Usage())
        completion = await self._llm.complete(messages, max_tokens=max_tokens, schema=schema)
        self._keep(key, completion.text)
        return completion

    def stream(
        self, messages: Sequence[Message], *, max_tokens: int | None = None
    ) -> AsyncGenerator[str | Completion, None]:
        """Return the model's own stream; streams are not cached."""
        return self._llm.stream(messages, max_tokens=max_tokens)

    async def close(self) -> None:
        """Close the model's connections, if it has any."""
        close = getattr(self._llm, "close", None)
        if close:
            await close()

    def _keep(self, key: str, text: str) -> None:
        self._replies[key] = text
        with self._path.open("a+b") as file:
            file.seek(max(0, file.seek(0, 2) - 1))
            torn = file.read(1) not in (b"", b"\n")  # a process died while writing its line
            file.write(b"\n" * torn + json.dumps({"asked": key, "said": text}).encode() + b"\n")


def _key(model: str, messages: Sequence[Message], max_tokens: int, schema: Mapping[str, Any] | None) -> str:
    parts = (part for message in messages for part in (message.role, message.content))
    return digest(model, str(max_tokens), json.dumps(schema, sort_keys=True), *parts)


def _read(path: Path) -> dict[str, str]:
    lines = path.read_bytes().split(b"\n") if path.exists() else []
    return dict(kept for line in lines if (kept := _read_line(line)))


def _read_line(line: bytes) -> tuple[str, str] | None:
    try:
        row = parse_json(line)
    except NotParsed:
        return None
    key, text = (row.get("asked"), row.get("said")) if isinstance(row, dict) else (None, None)
    return (key, text) if isinstance(key, str) and isinstance(text, str) else None
