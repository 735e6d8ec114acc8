"""The bot: receives mentions, direct messages and button clicks over Socket Mode, and answers them."""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.app.async_app import AsyncApp
from slack_bolt.authorization import AuthorizeResult
from slack_bolt.context.ack.async_ack import AsyncAck
from slack_bolt.context.async_context import AsyncBoltContext
from slack_bolt.request.async_request import AsyncBoltRequest
from slack_sdk.web.async_client import AsyncWebClient

from pipelines.service_client import ServiceClient
from serve.chat.bot import ChatBot
from serve.chat.inbox import Inbox
from serve.chat.running import Say, check_service
from serve.slack.channel import RETRY_HANDLERS, SlackChannel
from serve.slack.installations import Installation, install, open_socket
from serve.slack.rating import DIALOG, rate, take_reasons
from serve.slack.settings import SlackSettings, find_tokens
from serve.slack.text.answer import RATE_DOWN, RATE_UP, SlackMessage
from serve.slack.text.question import read_question
from serve.slack.workspaces import Workspaces

log = logging.getLogger(__name__)

# Slack requires an acknowledgement within three seconds. It is sent once the first message is posted, so that Slack
# redelivers the event if the process is killed before that.
ACKNOWLEDGE_S = 2.0
PING_S = 5.0  # a silently broken socket is replaced after about this long
RETRY = "x-slack-retry-num"
Listener = Callable[..., Awaitable[None]]
MakeChannel = Callable[[AsyncWebClient], SlackChannel]


async def run_bot(
    settings: SlackSettings,
    workspaces: Workspaces,
    service_url: str,
    folder: Path | None,
    stop: asyncio.Event,
    *,
    say: Say,
    only_check: bool = False,
    make_channel: MakeChannel = SlackChannel,
) -> bool:
    """Serve until `stop`; with `only_check`, exit after checking everything. Return whether the service works.

    `folder` stores messages that are being answered; `make_channel` creates a workspace's channel from its bot's
    client. Raises SlackRefused and SlackUnreachable.
    """
    app_token, tokens = find_tokens(settings, workspaces)
    service = ServiceClient(service_url, settings.slack_key.get_secret_value())
    async with aiohttp.ClientSession() as session:
        client = AsyncWebClient(base_url=settings.slack_api_url.rstrip("/") + "/", session=session, retry_handlers=[])
        installations = [await install(client, token) for token in tokens]
        for one in installations:
            say(one.described)
        well = await check_service(service, workspaces.collections, say)
        if only_check:
            await open_socket(client, app_token)
            say("the tokens are good")
            await service.aclose()
            return well
        say(f"answering from the service at {service_url}; Ctrl-C ends it")
        await SlackBot(client, installations, service, workspaces, Inbox(folder), make_channel).run(app_token, stop)
        return well


class SlackBot:
    """Answers in the workspaces of `installations`, by asking `service`; `inbox` knows which messages are answered."""

    def __init__(
        self,
        client: AsyncWebClient,
        installations: Sequence[Installation],
        service: ServiceClient,
        workspaces: Workspaces,
        inbox: Inbox,
        make_channel: MakeChannel,
    ) -> None:
        self._client, self._service = client, service
        self._installations = {one.team: one for one in installations}
        web = partial(AsyncWebClient, base_url=client.base_url, session=client.session, retry_handlers=RETRY_HANDLERS)
        self._channels = {one.team: make_channel(web(one.token)) for one in installations}
        self._chat = ChatBot[SlackMessage](
            "slack", service, inbox, self._channel_of, lambda asked: workspaces.collection(asked.team, asked.channel)
        )

    async def run(self, app_token: str, stop: asyncio.Event) -> None:
        """Serve until `stop`. Raises SlackRefused and SlackUnreachable at the start; later it reconnects."""
        handler = AsyncSocketModeHandler(self._app(), app_token, web_client=self._client, ping_interval=PING_S)
        try:
            handler.client.wss_uri = await open_socket(self._client, app_token)
            await handler.connect_async()
            await self._chat.serve(stop)
        finally:
            await handler.close_async()
            await self._chat.end()

    def _app(self) -> AsyncApp:
        """Return the Bolt app. It acknowledges when a handler returns, so longer work is started as a task."""

        async def authorize(
            team_id: str | None,
        ) -> AuthorizeResult | None:  # a function, because Bolt accepts no method here
            return self._authorize(team_id or "")

        quiet = logging.getLogger("serve.slack.bolt")
        quiet.setLevel(logging.ERROR)  # it warns about a SLACK_BOT_TOKEN that it does not use
        app = AsyncApp(
            name="raydex",
            logger=quiet,
            client=self._client,
            authorize=authorize,  # pyrefly: ignore[bad-argument-type]
            process_before_response=True,
            request_verification_enabled=False,  # only for HTTP requests, of which there are none
        )
        app.event(re.compile(".*"))(self._hear)
        app.action(re.compile(f"^({RATE_UP}|{RATE_DOWN})$"))(self._acting(rate))
        app.action(re.compile(".*"))(_acknowledge)
        app.view(DIALOG)(self._acting(take_reasons))
        return app

    def _authorize(self, team: str) -> AuthorizeResult | None:
        """Return the bot's identity in a workspace; Bolt acknowledges and drops events from unknown ones."""
        if one := self._installation(team):
            return AuthorizeResult(
                enterprise_id=None, team_id=team, bot_user_id=one.bot_user, bot_id=one.bot_id, bot_token=one.token
            )
        log.error("a message of workspace %s, which has no token: add it to the file of workspaces", team)
        return None

    def _installation(self, team: str) -> Installation | None:
        """Return the installation of a workspace; a single one also serves workspaces that share a channel with it."""
        only = next(iter(self._installations.values())) if len(self._installations) == 1 else None
        return self._installations.get(team, only)

    def _channel_of(self, team: str) -> SlackChannel | None:
        one = self._installation(team)
        return self._channels[one.team] if one else None

    async def _hear(self, event: dict[str, Any], context: AsyncBoltContext, request: AsyncBoltRequest) -> None:
        """Take a message addressed to the bot, and acknowledge it once its first reply is posted."""
        asked = read_question(event, context.team_id or "", context.bot_user_id or "")
        again = request.headers.get(RETRY) not in (None, ["0"])
        began = self._chat.take(asked, again=again) if asked else None
        if began:
            try:
                await asyncio.wait_for(began.wait(), ACKNOWLEDGE_S)
            except TimeoutError:
                log.info("the first reply is late: Slack limits it, or can't be reached")

    def _acting(self, act: Callable[[Any, SlackChannel, ServiceClient], Coroutine[Any, Any, None]]) -> Listener:
        """Return a listener that acknowledges a button or a dialog, and then performs its action."""

        async def listen(ack: AsyncAck, body: dict[str, Any], context: AsyncBoltContext) -> None:
            await ack()
            if channel := self._channel_of(context.team_id or ""):
                self._chat.start(act(body, channel, self._service))

        return listen


async def _acknowledge(ack: AsyncAck) -> None:
    await ack()
