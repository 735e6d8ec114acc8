"""Asks a language model until its reply is usable, a few times at most.

Knows prompts and replies as texts; the caller's function decides what is usable. Never raises because of a model.
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

T = TypeVar("T")
Item = TypeVar("Item")

TRIES = 3  # a model that missed the form twice despite a reminder will miss it again
QUOTED = 120  # characters of a reply in an error

Progress = Callable[[int, int], None]
"""Called with how many are done, and of how many."""


class UnusableReply(ValueError):
    """A model's reply cannot be used; the message has the reason."""


@dataclass(frozen=True, slots=True)
class ParsedReply(Generic[T]):
    """The outcome of asking: a value, or the reason why there is none; and the cost of all tries."""

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
    """Return what `parse` makes of the model's reply to `prompt`.

    Where it raises UnusableReply, or the reply is empty, the model gets its reply with `reminder` and is asked again.
    A model that fails otherwise has had its own retries (LLM) and is not asked again.
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
    return ParsedReply(None, f"{error} (asked {tries} times)", usage)


def _quote(text: str) -> str:
    """Quote a reply on one line: its beginning and its end."""
    line = " ".join(text.split())
    half = QUOTED // 2
    return repr(line if len(line) <= QUOTED else f"{line[:half]} … {line[-half:]}")


def _too_long(llm: ChatModel, messages: list[Message]) -> str:
    """Return why the window of `llm` does not hold the messages and an answer, "" where it does."""
    needed = sum(llm.count(message.content) + FRAMING for message in messages) + llm.max_tokens
    if needed <= llm.context_window:
        return ""
    return (
        f"the prompt and an answer take {needed:,} tokens, the window of {llm.model} holds {llm.context_window:,}: "
        "choose a model with a longer one, or ask about less"
    )


class ConcurrencyLimit:
    """At most `at_once` things at a time, in each event loop."""

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()

    def free(self) -> asyncio.Semaphore:
        """Return the running loop's semaphore."""
        return self._by_loop.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(self._at_once))


async def gather_all(
    work: Callable[[Item], Awaitable[T]], items: Sequence[Item], at_once: int, progress: Progress | None = None
) -> list[T]:
    """Return what `work` gives for each of `items`, in their order, `at_once` of them at a time.

    `progress` is called as each ends.
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
