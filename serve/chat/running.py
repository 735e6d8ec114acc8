"""Runs a bot in a separate thread, as a deployment does, and checks the service that it asks."""

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable, Coroutine, Set
from typing import Any

from pipelines.service_client import AskFailed, ServiceClient

log = logging.getLogger(__name__)

Say = Callable[[str], None]
AGAIN_S = 60.0  # between attempts to start, if the platform refuses a token or can't be reached
CLOSE_S = 15.0  # a little more than the bot needs to end


class ChatRefused(ValueError):
    """The platform's settings are invalid, or it refuses them; the message says what to do."""


class ChatUnreachable(RuntimeError):
    """The platform can't be reached, or fails."""


class BackgroundBot:
    """The bot `name` in a thread. It restarts after a refusal, because the cause may be fixed on the platform.

    `run` serves until the given event is set.
    """

    def __init__(self, name: str, run: Callable[[asyncio.Event], Coroutine[Any, Any, object]]) -> None:
        self._name, self._run = name, run
        self._loop, self._stop = asyncio.new_event_loop(), asyncio.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Raise RuntimeError if the bot has ended."""
        if not self._thread.is_alive():
            raise RuntimeError(f"the {self._name} bot has ended: its log says why")

    def close(self) -> None:
        """End it; answers in progress have a few seconds to finish."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(CLOSE_S)

    def _work(self) -> None:
        self._loop.run_until_complete(self._serve())

    async def _serve(self) -> None:
        while not self._stop.is_set():
            try:
                await self._run(self._stop)
            except (ChatRefused, ChatUnreachable) as error:
                log.error("%s", error)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._stop.wait(), AGAIN_S)


async def check_service(service: ServiceClient, collections: Set[str], say: Say) -> bool:
    """Report problems that keep questions to `collections` from being answered now.

    They may be fixed while the bot runs.
    """
    try:
        published = {row["name"] for row in await service.collections() if row.get("index") is not None}
    except AskFailed as error:
        say(f"the service at {service.url} does not answer yet: {error}")
        return False
    if unknown := sorted(collections - published):
        have = ", ".join(sorted(published)) or "none"
        say(f"the service has no published index of {', '.join(unknown)}; those that it has: {have}")
    return not unknown
