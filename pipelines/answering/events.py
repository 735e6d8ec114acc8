"""What a question sends to its reader while it is answered, and the one generator that passes it on."""

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
    """A piece of the answer's text. `reset`: an agent failed half way, its text is void and another agent begins."""

    text: str
    reset: bool = False


Event = Retrieval | Status | Delta | Answer
Send = Callable[[Event], None]


async def pull(work: Callable[[Callable[[ItemT], None]], Coroutine[None, None, None]]) -> AsyncGenerator[ItemT, None]:
    """Yield what `work` sends, as it comes, then raise what it raised. Closing the generator cancels the work."""
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
