"""Events that a reader receives while a question is answered, and the generator that yields them."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from dataclasses import dataclass
from typing import TypeVar

from pipelines.answering.retrieval.search import Retrieval
from pipelines.llm.session import Status
from pipelines.records import Answer

ItemT = TypeVar("ItemT")


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of the answer's text.

    With `reset`, an agent failed halfway: discard its text so far, because another agent starts over.
    """

    text: str
    reset: bool = False


Event = Retrieval | Status | Delta | Answer
Send = Callable[[Event], None]


async def pull(work: Callable[[Callable[[ItemT], None]], Coroutine[None, None, None]]) -> AsyncGenerator[ItemT, None]:
    """Yield the items that `work` sends, then raise its error if it failed. Closing the generator cancels the work."""
    items: asyncio.Queue[ItemT | None] = asyncio.Queue()
    working = asyncio.create_task(work(items.put_nowait))
    working.add_done_callback(lambda _: items.put_nowait(None))
    try:
        while (item := await items.get()) is not None:
            yield item
        await working
    finally:
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
