"""Starts the bot from its settings, for the command and for the deployment."""

import asyncio
import contextlib
import logging
import threading
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path

import aiohttp
from slack_sdk.web.async_client import AsyncWebClient

from serve.slack.bot import MakeCalls, SlackBot
from serve.slack.calls import SlackCalls
from serve.slack.inbox import Inbox
from serve.slack.installations import Installation, SlackUnreachable, install, open_socket
from serve.slack.service import AskFailed, ServiceClient
from serve.slack.settings import SlackRefused, SlackSettings, find_tokens
from serve.slack.workspaces import Workspaces

log = logging.getLogger(__name__)

Say = Callable[[str], None]
AGAIN_S = 60.0  # between attempts to start, where Slack refuses a token or can't be reached
CLOSE_S = 15.0  # a little more than the bot takes to end


async def run_bot(
    settings: SlackSettings,
    workspaces: Workspaces,
    service_url: str,
    folder: Path | None,
    stop: asyncio.Event,
    *,
    say: Say,
    only_check: bool = False,
    make_calls: MakeCalls = SlackCalls,
) -> bool:
    """Serve until `stop`; with `only_check` end once everything was checked. Return whether the service was well.

    `folder` keeps what was taken to be answered; `make_calls` gives the calls of a workspace's bot from its client.
    Raises SlackRefused and SlackUnreachable.
    """
    app_token, tokens = find_tokens(settings, workspaces)
    service = ServiceClient(service_url, settings.slack_key.get_secret_value())
    async with _open_client(settings.slack_api_url) as client:
        installations = [await install(client, token) for token in tokens]
        for one in installations:
            say(_describe(one))
        well = await _check_service(service, workspaces, say)
        if only_check:
            await open_socket(client, app_token)
            say("the tokens are good")
            await service.close()
            return well
        say(f"answering from the service at {service_url}; Ctrl-C ends it")
        await SlackBot(client, installations, service, workspaces, Inbox(folder), make_calls).run(app_token, stop)
        return well


class BackgroundBot:
    """The bot in a thread of its own. It starts again where Slack refused it, since that may be mended there."""

    def __init__(self, settings: SlackSettings, workspaces: Workspaces, service_url: str, folder: Path | None) -> None:
        self._run = partial(run_bot, settings, workspaces, service_url, folder, say=log.warning)
        self._loop, self._stop = asyncio.new_event_loop(), asyncio.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Raise RuntimeError if the bot has ended."""
        if not self._thread.is_alive():
            raise RuntimeError("the Slack bot has ended: its log says why")

    def close(self) -> None:
        """End it; answers in progress have a few seconds."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(CLOSE_S)

    def _work(self) -> None:
        self._loop.run_until_complete(self._serve())

    async def _serve(self) -> None:
        while not self._stop.is_set():
            try:
                await self._run(stop=self._stop)
            except (SlackRefused, SlackUnreachable) as error:
                log.error("%s", error)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._stop.wait(), AGAIN_S)


@contextlib.asynccontextmanager
async def _open_client(api_url: str) -> AsyncIterator[AsyncWebClient]:
    """Yield a client of Slack's Web API; the bot repeats failed calls itself."""
    async with aiohttp.ClientSession() as session:
        yield AsyncWebClient(base_url=api_url.rstrip("/") + "/", session=session, retry_handlers=[])


def _describe(one: Installation) -> str:
    lacks = f"; without {', '.join(one.missing)} a redelivered message may be answered twice" if one.missing else ""
    return f"workspace {one.name or one.team} ({one.team}){lacks}"


async def _check_service(service: ServiceClient, workspaces: Workspaces, say: Say) -> bool:
    """Say what would keep questions from being answered now; it may be mended while the bot runs."""
    try:
        published = {row["name"] for row in await service.collections() if row.get("index") is not None}
    except AskFailed as error:
        say(f"the service at {service.url} does not answer yet: {error.detail}")
        return False
    if unknown := sorted(workspaces.collections - published):
        have = ", ".join(sorted(published)) or "none"
        say(f"the service has no published index of {', '.join(unknown)}; those that it has: {have}")
    return not unknown
