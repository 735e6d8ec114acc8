"""Asks a language model until its reply is usable, up to a few times.

Handles prompts and replies as strings; the caller's function decides which replies are usable. Never raises because of
a model's failure.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

from pipelines.llm.client import FRAMING
from pipelines.llm.errors import LLMEmpty, LLMFailed
from pipelines.llm.session import ChatModel
from pipelines.records import Message, Usage
from pipelines.text.counts import counted

T = TypeVar("T")
Item = TypeVar("Item")

TRIES = 3  # a model that missed the format twice despite a reminder will miss it again
QUOTED = 120  # maximum characters of a reply quoted in an error

Progress = Callable[[int, int], None]
"""Called with the number done and the total."""


class UnusableReply(ValueError):
    """A model's reply can't be used; the message gives the reason."""


@dataclass(frozen=True, slots=True)
class ParsedReply(Generic[T]):
    """The result of asking: a value, or the reason why there is none, with the cost of all tries."""

    value: T | None
    error: str | None
    usage: Usage


async def ask(
    llm: ChatModel,
    prompt: str,
    parse: Callable[[str], T],
    *,
    system: str = "",
    reminder: str = "",
    schema: Mapping[str, Any] | None = None,
    tries: int = TRIES,
) -> ParsedReply[T]:
    """Return the value that `parse` returns for the model's reply to `prompt`.

    If `parse` raises UnusableReply, or the reply is empty, the model is asked again, with its reply and `reminder`. A
    model that fails in another way is not asked again, because LLM has already retried it.
    """
    messages = [*([Message("system", system)] if system else []), Message("user", prompt)]
    usage, error = Usage(), ""
    if too_long := _too_long(llm, messages):
        return ParsedReply(None, too_long, usage)
    for _ in range(tries):
        try:
            completion = await llm.complete(messages, schema=schema)
        except LLMEmpty as empty:
            error, usage = str(empty), usage + empty.usage
            continue
        except LLMFailed as failed:
            return ParsedReply(None, str(failed), usage + failed.usage)
        text, usage = completion.text, usage + completion.usage
        try:
            return ParsedReply(parse(text), None, usage)
        except UnusableReply as unusable:
            error = f"{unusable}; {llm.model} replied {_quote(text)}"
        if reminder and text:
            longer = [*messages[: 2 if system else 1], Message("assistant", text), Message("user", reminder)]
            messages = messages if _too_long(llm, longer) else longer
    return ParsedReply(None, f"{error} (asked {counted(tries, 'time')})", usage)


def _quote(text: str) -> str:
    """Quote a reply on one line, as its beginning and end."""
    line = " ".join(text.split())
    half = QUOTED // 2
    return repr(line if len(line) <= QUOTED else f"{line[:half]} … {line[-half:]}")


def _too_long(llm: ChatModel, messages: list[Message]) -> str:
    """Return why the messages and an answer don't fit the context window of `llm`, "" if they do."""
    needed = sum(llm.count(message.content) + FRAMING for message in messages) + llm.max_tokens
    if needed <= llm.context_window:
        return ""
    return (
        f"the prompt and an answer take {counted(needed, 'token')}, the window of {llm.model} holds "
        f"{llm.context_window:,}: choose a model with a longer one, or ask about less"
    )


class ConcurrencyLimit:
    """Allows at most `at_once` tasks at a time, in each event loop."""

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()

    def free(self) -> asyncio.Semaphore:
        """Return the running loop's semaphore."""
        return self._by_loop.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(self._at_once))


async def gather_all(
    work: Callable[[Item], Awaitable[T]], items: Sequence[Item], at_once: int, progress: Progress | None = None
) -> list[T]:
    """Return the results of `work` for `items`, in their order, running `at_once` of them at a time.

    `progress` is called after each.
    """
    slots, done = asyncio.Semaphore(at_once), 0

    async def run_and_count(item: Item) -> T:
        nonlocal done
        async with slots:
            result = await work(item)
        done += 1
        if progress:
            progress(done, len(items))
        return result

    return await asyncio.gather(*map(run_and_count, items))
