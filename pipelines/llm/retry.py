"""A language model is asked until what it says can be used, a few times at the most.

Knows prompts and replies as texts; what makes a reply usable is the caller's function. Never raises for a model's sake.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

from pipelines.llm.client import FRAMING, LLMEmpty, LLMFailed
from pipelines.llm.session import ChatModel
from pipelines.records import Message, Usage

T = TypeVar("T")

TRIES = 3  # a model that has missed the form twice with a reminder misses it for good
SHOWN = 120  # characters of a reply that an error quotes

Progress = Callable[[int, int], None]
"""Called with how many are done, and of how many."""


class UnusableReply(ValueError):
    """A model's reply can't be used; the message says why."""


@dataclass(frozen=True, slots=True)
class ParsedReply(Generic[T]):
    """What came of asking: a value, or why there is none; and what all the tries cost."""

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
    """What `parse` makes of the model's reply to `prompt`.

    Where it raises Unusable, or the reply is empty, the model is shown its reply and `reminder` and asked again. A
    model that fails otherwise has had its own retries (LLM) and is not asked again.
    """
    messages = [*([Message("system", system)] if system else []), Message("user", prompt)]
    usage, error = Usage(), ""
    if too_long := _too_long(llm, messages):
        return ParsedReply(None, too_long, usage)
    for _ in range(tries):
        said = ""
        try:
            done = await llm.complete(messages, schema=schema)
            said, usage = done.text, usage + done.usage
            return ParsedReply(parse(said), None, usage)
        except UnusableReply as unusable:
            error = f"{unusable}; {llm.model} said {shown(said)}"
        except LLMEmpty as empty:
            error, usage = str(empty), usage + empty.usage
        except LLMFailed as failed:
            return ParsedReply(None, str(failed), usage + failed.usage)
        again = [Message("assistant", said)] if said else []
        longer = [*messages[: 2 if system else 1], *again, Message("user", reminder)] if reminder and said else messages
        messages = messages if _too_long(llm, longer) else longer
    return ParsedReply(None, f"{error} (asked {tries} times)", usage)


def shown(text: str) -> str:
    """A reply as an error quotes it: on one line, its beginning and its end."""
    line = " ".join(text.split())
    half = SHOWN // 2
    return repr(line if len(line) <= SHOWN else f"{line[:half]} … {line[-half:]}")


def _too_long(llm: ChatModel, messages: list[Message]) -> str:
    """Why the window of `llm` does not hold the messages and an answer, "" where it does."""
    needed = sum(llm.count(message.content) + FRAMING for message in messages) + llm.max_tokens
    if needed <= llm.context_window:
        return ""
    return (
        f"the prompt and an answer take {needed:,} tokens, the window of {llm.model} holds {llm.context_window:,}: "
        "choose a model with a longer one, or ask about less"
    )


class ConcurrencyLimit:
    """At most so many things at a time, in each event loop that comes along."""

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()

    def free(self) -> asyncio.Semaphore:
        """What to enter for a slot."""
        return self._by_loop.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(self._at_once))


async def gather_all(tasks: Sequence[Callable[[], Awaitable[T]]], progress: Progress | None) -> list[T]:
    """The results of `tasks`, in their order; `progress` hears of each that ends."""
    done = 0

    async def one(task: Callable[[], Awaitable[T]]) -> T:
        nonlocal done
        result = await task()
        done += 1
        if progress:
            progress(done, len(tasks))
        return result

    return await asyncio.gather(*map(one, tasks))
