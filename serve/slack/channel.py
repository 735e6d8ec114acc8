"""A Slack workspace: messages are written within its limits, and temporary failures are retried.

Limits: https://docs.slack.dev/apis/web-api/rate-limits. `chat.postMessage` allows about one message per second in a
channel, `chat.update` (tier 3) 50 per minute in a workspace.
"""

import contextlib
import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import aiohttp
from slack_sdk.errors import SlackApiError
from slack_sdk.http_retry import HttpResponse, RetryIntervalCalculator
from slack_sdk.http_retry import builtin_async_handlers as retry
from slack_sdk.http_retry.async_handler import AsyncRetryHandler
from slack_sdk.web.async_client import AsyncWebClient

from pipelines.text.phrases import read_table
from serve.chat.channel import ChannelRefused, MessageGone, WritingTurns
from serve.chat.question import Asked
from serve.chat.rating import rater_of
from serve.chat.reply import Reply
from serve.slack.text.answer import SlackMessage, to_messages

log = logging.getLogger(__name__)

# Seconds between writes in a channel, and between edits of unfinished answers in a workspace: 50 per minute.
CHANNEL_S, EDITS_S = 1.0, 1.2
# Failures are retried after 1, 2, 4, … seconds, for about five minutes; rate-limited calls when Slack says.
MOST_TRIES, LONGEST_PAUSE_S, MOST_LIMITED = 20, 16.0, 50
ERRORS = read_table("serve.slack.errors")
METADATA = "raydex_answer"  # the type of the metadata that links an answer to its message


class _Pauses(RetryIntervalCalculator):
    def calculate_sleep_duration(self, current_attempt: int) -> float:
        return min(2.0**current_attempt, LONGEST_PAUSE_S)


class _PassingFaults(AsyncRetryHandler):
    """Retries temporary failures of Slack; the SDK's handlers know neither a 502 nor Slack's own errors."""

    async def _can_retry_async(self, *, response: HttpResponse | None = None, **_: object) -> bool:
        said = response.body.get("error") if response and isinstance(response.body, dict) else ""
        return response is not None and (response.status_code >= 500 or said in ERRORS["passing"])


RETRY_HANDLERS: list[AsyncRetryHandler] = [
    retry.AsyncRateLimitErrorRetryHandler(MOST_LIMITED),
    _PassingFaults(MOST_TRIES, _Pauses()),
    retry.AsyncConnectionErrorRetryHandler(MOST_TRIES, _Pauses(), [aiohttp.ClientError, TimeoutError]),
]


class SlackChannel:
    """The bot's view of one workspace, through `client`."""

    def __init__(self, client: AsyncWebClient, channel_s: float = CHANNEL_S, edits_s: float = EDITS_S) -> None:
        self._client, self.turns = client, WritingTurns(channel_s, edits_s)

    def render(self, reply: Reply) -> list[SlackMessage]:
        return to_messages(reply)

    async def write(self, asked: Asked, part: int, message: SlackMessage, id: str = "") -> str:
        posting = {"thread_ts": asked.thread, "unfurl_links": False, "unfurl_media": False}
        body = {
            "channel": asked.channel,
            "text": message.text,
            "blocks": message.blocks,
            "parse": "none",
            "link_names": False,
            "metadata": {"event_type": METADATA, "event_payload": {"question": asked.ts, "part": part}},
            **({"ts": id} if id else posting),
        }
        try:
            return str((await self.call("chat.update" if id else "chat.postMessage", json=body))["ts"])
        except SlackApiError as error:
            name = error_of(error)
            if name in ERRORS["unfit"] and message.blocks:
                log.error("Slack refused the blocks of a message, which is sent as text: %s", error)
                return await self.write(asked, part, replace(message, blocks=[]), id)
            if name in ERRORS["closed"] and id:
                return await self.write(asked, part, message)
            raise (MessageGone if name in ERRORS["gone"] else ChannelRefused)(str(error)) from error

    async def delete(self, asked: Asked, id: str) -> None:
        with contextlib.suppress(SlackApiError):
            await self.call("chat.delete", json={"channel": asked.channel, "ts": id})

    async def replied(self, asked: Asked) -> bool:
        wanted = {"channel": asked.channel, "ts": asked.thread, "oldest": asked.ts, "limit": 50}
        try:
            reply = await self.call("conversations.replies", params={**wanted, "include_all_metadata": True})
        except (SlackApiError, OSError) as error:  # for example, without the scope for it
            log.info("can't look for a reply: %s", error)
            return False
        return any(_is_reply(message, asked) for message in reply.get("messages", ()))

    def rater(self, answer: str, user: str) -> str:
        """Return the id of an answer's rater, without naming the person."""
        return rater_of(str(self._client.token), answer, user)

    async def call(self, method: str, **sent: Any) -> dict[str, Any]:
        """Call a method until it succeeds. Raises SlackApiError if Slack refuses it, OSError if it can't be reached."""
        try:
            return dict((await self._client.api_call(method, **sent)).data)  # pyrefly: ignore[no-matching-overload]
        except (aiohttp.ClientError, TimeoutError) as error:
            raise ConnectionError(f"{method}: {error or type(error).__name__}") from error


def error_of(error: SlackApiError) -> str:
    """Return Slack's name of an error, such as `message_not_found`."""
    data = error.response.data if hasattr(error.response, "data") else error.response
    return str(data.get("error", "")) if isinstance(data, Mapping) else ""


def _is_reply(message: Mapping[str, Any], asked: Asked) -> bool:
    metadata = message.get("metadata") or {}
    of = (metadata.get("event_payload") or {}).get("question")
    return bool(metadata.get("event_type") == METADATA and of == asked.ts)
