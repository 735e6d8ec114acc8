"""Calls Slack's Web API within its limits: paced, and again after a 429 or a fault that passes.

Limits: https://docs.slack.dev/apis/web-api/rate-limits. `chat.postMessage` takes about one message a second in a
channel, `chat.update` (tier 3) 50 a minute in a workspace.
"""

import asyncio
import hmac
import logging
import math
import time
from collections.abc import Callable, Mapping
from typing import Any

import aiohttp
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

log = logging.getLogger(__name__)

CHANNEL_S = 1.0  # between writes in a channel
EDITS_S = 1.2  # between edits of unfinished answers in a workspace: 50 a minute
# Without Retry-After; and the faults that pass, which are tried again after 1, 2, 4, … seconds.
RETRY_AFTER_S, LONGEST_PAUSE_S, MOST_TRIES = 1.0, 16.0, 20  # five minutes
PASSING = frozenset({"internal_error", "fatal_error", "service_unavailable", "request_timeout", "team_added_to_org"})

Arguments = Mapping[str, Any]


class Turns:
    """Hands out turns at least `every_s` seconds apart, first come, first served."""

    def __init__(self, every_s: float) -> None:
        self._every_s, self._next = every_s, 0.0

    def book(self) -> float:
        """Take the next turn, and return the seconds until it comes."""
        now = time.monotonic()
        turn = max(now, self._next)
        self._next = turn + self._every_s
        return turn - now


class SlackCalls:
    """Calls of one workspace's bot; a method that Slack has limited rests for all of them until its time is over."""

    def __init__(self, client: AsyncWebClient, channel_s: float = CHANNEL_S, edits_s: float = EDITS_S) -> None:
        self._client, self._channel_s = client, channel_s
        self._edits = Turns(edits_s)
        self._channels: dict[str, Turns] = {}
        self._rests: dict[str, float] = {}

    async def edit_turn(self) -> None:
        """Wait until an unfinished answer may be edited."""
        await asyncio.sleep(self._edits.book())

    async def channel_turn(self, channel: str, *, at_once: bool = False) -> None:
        """Wait until something may be written in `channel`; `at_once` only keeps the next one waiting."""
        wait = self._channels.setdefault(channel, Turns(self._channel_s)).book()
        if not at_once:
            await asyncio.sleep(wait)

    async def call(
        self, method: str, arguments: Arguments | Callable[[], Arguments], *, as_json: bool = True
    ) -> dict[str, Any]:
        """Call a method until it succeeds. Raises SlackApiError if Slack refuses it, OSError if it can't be reached.

        A function gives the arguments of each try, so that what is sent after a wait is the newest. Methods that only
        read take no JSON.
        """
        tries = 0
        while True:
            await self._rest(method)
            try:
                body = dict(arguments() if callable(arguments) else arguments)
                sent = {"json": body} if as_json else {"params": body}
                reply = await self._client.api_call(method, **sent)  # type: ignore[arg-type]
                return dict(reply.data)  # type: ignore[arg-type]
            except SlackApiError as error:
                if _is_limited(error):
                    self._rests[method] = time.monotonic() + _seconds(error)
                    log.info("Slack limits %s: next call in %.0f s", method, _seconds(error))
                    continue
                tries += 1
                if not _may_pass(error) or tries == MOST_TRIES:
                    raise
            except (aiohttp.ClientError, TimeoutError) as error:
                tries += 1
                if tries == MOST_TRIES:
                    raise ConnectionError(f"{method}: {error or type(error).__name__}") from error
            await asyncio.sleep(min(2.0 ** (tries - 1), LONGEST_PAUSE_S))

    def sign(self, *parts: str) -> str:
        """Return a hash of `parts` that only who has the bot's token can make, or compare with a guess."""
        return hmac.new(str(self._client.token).encode(), "\0".join(parts).encode(), "sha256").hexdigest()[:32]

    async def _rest(self, method: str) -> None:
        while (wait := self._rests.get(method, -math.inf) - time.monotonic()) > 0:
            await asyncio.sleep(wait)


def error_of(error: SlackApiError) -> str:
    """Return Slack's name of an error, such as `message_not_found`."""
    data = error.response.data if hasattr(error.response, "data") else error.response
    return str(data.get("error", "")) if isinstance(data, Mapping) else ""


def _is_limited(error: SlackApiError) -> bool:
    return getattr(error.response, "status_code", 0) == 429 or error_of(error) in ("ratelimited", "rate_limited")


def _may_pass(error: SlackApiError) -> bool:
    return getattr(error.response, "status_code", 0) >= 500 or error_of(error) in PASSING


def _seconds(error: SlackApiError) -> float:
    headers = {str(name).lower(): value for name, value in dict(error.response.headers or {}).items()}
    try:
        return max(0.0, float(headers["retry-after"]))
    except (KeyError, TypeError, ValueError):
        return RETRY_AFTER_S
