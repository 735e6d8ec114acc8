"""The bot: hears mentions, direct messages and buttons over Socket Mode, and answers them."""

import asyncio
import contextlib
import logging
import re
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.app.async_app import AsyncApp
from slack_bolt.authorization import AuthorizeResult
from slack_bolt.context.ack.async_ack import AsyncAck
from slack_bolt.context.async_context import AsyncBoltContext
from slack_bolt.request.async_request import AsyncBoltRequest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from serve.slack.calls import SlackCalls
from serve.slack.inbox import Inbox, TakenMessage
from serve.slack.installations import Installation, open_socket
from serve.slack.live import METADATA, LiveAnswer
from serve.slack.rating import DIALOG, rate, take_reasons
from serve.slack.service import AskFailed, ServiceClient
from serve.slack.text.answer import RATE_DOWN, RATE_UP, AnswerView, help_message
from serve.slack.text.question import Asked, read_question
from serve.slack.workspaces import Workspaces

log = logging.getLogger(__name__)

# Slack wants an acknowledgement within three seconds. It gets it once the first message stands, so that a process that
# is killed before is asked again.
ACKNOWLEDGE_S = 2.0
# A service that is busy or restarting is asked again, as long as that is soon.
MOST_ASKS, LONGEST_WAIT_S = 3, 30.0
# The answers in progress get that long at the end; Ray Serve kills a replica after 20 s.
END_S = 10.0
PING_S = 5.0  # a socket that is torn without a word is replaced after about that long
LEFT_OVER_EVERY_S = 15.0  # another process that was killed may have left something
STALE_S = 3600.0  # what was asked longer ago is not answered after a restart
STALE = "I was stopped before I could answer. Please ask again."
FAILED = "Something went wrong on my side. Please ask again."
MakeCalls = Callable[[AsyncWebClient], SlackCalls]
RETRY = "x-slack-retry-num"


class SlackBot:
    """Answers in the workspaces of `installations`, by asking `service`; `inbox` knows what is answered already."""

    def __init__(
        self,
        client: AsyncWebClient,
        installations: list[Installation],
        service: ServiceClient,
        workspaces: Workspaces,
        inbox: Inbox,
        make_calls: MakeCalls = SlackCalls,
    ) -> None:
        self._client, self._service, self._workspaces, self._inbox = client, service, workspaces, inbox
        self._installations = {one.team: one for one in installations}
        self._calls = {one.team: make_calls(self._web(one.token)) for one in installations}
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self, app_token: str, stop: asyncio.Event) -> None:
        """Serve until `stop`. Raises SlackRefused and SlackUnreachable at the start; later it reconnects."""
        handler = AsyncSocketModeHandler(self._app(), app_token, web_client=self._client, ping_interval=PING_S)
        try:
            handler.client.wss_uri = await open_socket(self._client, app_token)
            await handler.connect_async()  # type: ignore[no-untyped-call]
            while not stop.is_set():
                for taken in list(self._inbox.left_over()):
                    self._start(self._answer(taken))
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(stop.wait(), LEFT_OVER_EVERY_S)
        finally:
            await handler.close_async()  # type: ignore[no-untyped-call]
            await self._end()

    def _web(self, token: str) -> AsyncWebClient:
        return AsyncWebClient(token, self._client.base_url, session=self._client.session, retry_handlers=[])

    def _app(self) -> AsyncApp:
        """Return the Bolt app. It acknowledges when a handler is through: what takes longer is started as a task."""

        async def authorize(team_id: str | None) -> AuthorizeResult | None:  # a function: Bolt takes no method here
            return self._authorize(team_id or "")

        quiet = logging.getLogger("serve.slack.bolt")
        quiet.setLevel(logging.ERROR)  # it warns of a SLACK_BOT_TOKEN that it does not use
        app = AsyncApp(
            name="raydex",
            logger=quiet,
            client=self._client,
            authorize=authorize,  # type: ignore[arg-type]
            process_before_response=True,
            request_verification_enabled=False,  # of HTTP requests: there are none
        )
        app.event(re.compile(".*"))(self._hear)
        app.action(re.compile(f"^({RATE_UP}|{RATE_DOWN})$"))(self._rate)
        app.action(re.compile(".*"))(_acknowledge)
        app.view(DIALOG)(self._take_reasons)
        return app

    def _authorize(self, team: str) -> AuthorizeResult | None:
        """Say who the bot is in a workspace; Bolt acknowledges and drops what comes from another one."""
        if one := self._installation(team):
            return AuthorizeResult(
                enterprise_id=None, team_id=team, bot_user_id=one.bot_user, bot_id=one.bot_id, bot_token=one.token
            )
        log.error("a message of workspace %s, which has no token: add it to the file of workspaces", team)
        return None

    def _installation(self, team: str) -> Installation | None:
        """Return the installation of a workspace; a single one also hears from those that share a channel with it."""
        only = next(iter(self._installations.values())) if len(self._installations) == 1 else None
        return self._installations.get(team, only)

    def _calls_of(self, team: str) -> SlackCalls | None:
        one = self._installation(team)
        return self._calls[one.team] if one else None

    async def _hear(self, event: dict[str, Any], context: AsyncBoltContext, request: AsyncBoltRequest) -> None:
        """Take a message that is addressed to the bot, and acknowledge it once its first reply stands."""
        asked = read_question(event, context.team_id or "", context.bot_user_id or "")
        taken = self._inbox.take(asked) if asked else None
        if taken is None:
            return
        began = asyncio.Event()
        self._start(self._answer(taken, again=_attempt(request) > 0, began=began))
        try:
            await asyncio.wait_for(began.wait(), ACKNOWLEDGE_S)
        except TimeoutError:
            log.info("the first reply is late: Slack limits it, or can't be reached")

    async def _rate(self, ack: AsyncAck, body: dict[str, Any], context: AsyncBoltContext) -> None:
        await ack()
        if calls := self._calls_of(context.team_id or ""):
            self._start(rate(body, calls, self._service))

    async def _take_reasons(self, ack: AsyncAck, body: dict[str, Any], context: AsyncBoltContext) -> None:
        await ack()
        if calls := self._calls_of(context.team_id or ""):
            self._start(take_reasons(body, calls, self._service))

    async def _answer(self, taken: TakenMessage, *, again: bool = False, began: asyncio.Event | None = None) -> None:
        """Answer a message, to the end; what could not be said is left to the next process."""
        began = began or asyncio.Event()
        try:
            calls = self._calls_of(taken.asked.team)
            elsewhere = again and not taken.first and calls and await self._replied(calls, taken.asked)
            if calls and not elsewhere:
                await self._reply(calls, taken, began)
        except OSError as error:
            log.error("a message was not answered, the next start tries again: %s", error)
            return
        except SlackApiError as error:
            log.error("a message was not answered: %s", error)
        finally:
            began.set()
        self._inbox.close(taken.asked)

    async def _reply(self, calls: SlackCalls, taken: TakenMessage, began: asyncio.Event) -> None:
        """Say at once that the question is heard, and then what the service says."""
        asked = taken.asked
        view = AnswerView(self._workspaces.collection(asked.team, asked.channel))
        live = LiveAnswer(calls, asked, view.messages if asked.question else help_message, taken.first)
        await live.begin()
        self._inbox.note(asked, live.first)
        began.set()
        if taken.age_s > STALE_S:
            view.fail(STALE)
        elif asked.question:
            try:
                await self._ask(asked, view, live)
            except Exception as error:  # a fault of ours: who asked must not wait for ever
                log.error("the bot failed", exc_info=error)
                view.fail(FAILED)
        await live.finish()

    async def _ask(self, asked: Asked, view: AnswerView, live: LiveAnswer) -> None:
        """Ask the service, again if it is busy, and let `view` take what comes."""
        question = {"question": asked.question, "conversation": asked.conversation, "channel": "slack"}
        if collection := self._workspaces.collection(asked.team, asked.channel):
            question["collection"] = collection
        for left in reversed(range(MOST_ASKS)):
            try:
                async for name, data in self._service.stream(question):
                    view.take(name, data)
                    live.changed()
                return
            except AskFailed as error:
                log.warning("the service did not answer: %s", error.detail)
                if not left or error.seconds is None or error.seconds > LONGEST_WAIT_S:
                    view.fail(str(error))
                    return
                view.wait("The service is busy: asking again in a moment …")
                live.changed()
                await asyncio.sleep(error.seconds)

    async def _replied(self, calls: SlackCalls, asked: Asked) -> bool:
        """Return whether another process, on another machine, has replied to a message that Slack delivers again."""
        wanted = {"channel": asked.channel, "ts": asked.thread, "oldest": asked.ts, "limit": 50}
        try:
            reply = await calls.call("conversations.replies", {**wanted, "include_all_metadata": True}, as_json=False)
        except (SlackApiError, OSError) as error:  # without the scope for it, say
            log.info("can't look for a reply: %s", error)
            return False
        return any(_is_reply(message, asked) for message in reply.get("messages", ()))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            log.error("the bot failed", exc_info=error)

    async def _end(self) -> None:
        """Let the answers in progress end; those that take too long are left to the next process."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=END_S)
        for task in (left := list(self._tasks)):
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        self._inbox.release()
        await self._service.close()


def _attempt(request: AsyncBoltRequest) -> int:
    """Return how often Slack has delivered a request before."""
    said = str((request.headers.get(RETRY) or ["0"])[0])
    return int(said) if said.isdecimal() else 0


def _is_reply(message: Mapping[str, Any], asked: Asked) -> bool:
    metadata = message.get("metadata") or {}
    payload = metadata.get("event_payload") or {}
    return bool(metadata.get("event_type") == METADATA and payload.get("question") == asked.ts)


async def _acknowledge(ack: AsyncAck) -> None:
    await ack()
