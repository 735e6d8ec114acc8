"""Checks the bot's tokens with Slack, and explains how to fix one that does not work."""

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field

import aiohttp
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from serve.chat.running import ChatUnreachable
from serve.slack.channel import ERRORS, error_of
from serve.slack.settings import TELL, BotToken, SlackRefused

# Scopes that the bot's token needs: to receive mentions and direct messages, to write, and to search a thread for an
# answer of another process.
SCOPES = ("app_mentions:read", "chat:write", "im:history")
HISTORY_SCOPES = ("channels:history", "groups:history", "mpim:history")


class SlackUnreachable(ChatUnreachable):
    """Slack can't be reached, or fails."""


@dataclass(frozen=True, slots=True)
class Installation:
    """The bot in one workspace, `team`."""

    team: str
    name: str
    bot_user: str
    bot_id: str
    token: str = field(repr=False)
    missing: tuple[str, ...] = ()  # optional scopes that are missing

    @property
    def described(self) -> str:
        """The workspace's description for the operator."""
        lacks = f"; without {', '.join(self.missing)} a redelivered message may be answered twice"
        return f"workspace {self.name or self.team} ({self.team}){lacks if self.missing else ''}"


async def install(client: AsyncWebClient, bot: BotToken) -> Installation:
    """Return the installation of a bot token. Raises SlackRefused and SlackUnreachable."""
    reply = await _reply(client.auth_test(token=bot.token), bot.variable, client.base_url)
    scopes = _scopes(reply.headers)
    if missing := _missing(SCOPES, scopes):
        raise SlackRefused(
            f"{bot.variable} lacks the scopes {', '.join(missing)}: add them under OAuth & Permissions, install again"
        )
    team, name = str(reply.get("team_id", "")), str(reply.get("team", ""))
    if bot.team not in ("", team) and not reply.get(
        "is_enterprise_install"
    ):  # an organization has one token for all its workspaces
        raise SlackRefused(f"{bot.variable} is the token of the workspace {team} ({name}), not of {bot.team}")
    user, id = str(reply.get("user_id", "")), str(reply.get("bot_id", ""))
    return Installation(bot.team or team, name, user, id, bot.token, _missing(HISTORY_SCOPES, scopes))


async def open_socket(client: AsyncWebClient, app_token: str) -> str:
    """Return the URL of a new socket. Raises SlackRefused and SlackUnreachable."""
    reply = await _reply(client.apps_connections_open(app_token=app_token), "SLACK_APP_TOKEN", client.base_url)
    return str(reply["url"])


async def _reply(call: Awaitable[AsyncSlackResponse], variable: str, url: str) -> AsyncSlackResponse:
    try:
        return await call
    except (aiohttp.ClientError, TimeoutError) as error:
        raise SlackUnreachable(f"Slack can't be reached at {url}: {error}") from error
    except SlackApiError as error:
        name = error_of(error)
        if name == "missing_scope":
            raise SlackRefused(f"{variable} lacks the scope connections:write: make a new one with it") from error
        if why := ERRORS["refused"].get(name):
            raise SlackRefused(f"{variable} is refused ({name}): {why}. {TELL}") from error
        raise SlackUnreachable(f"Slack does not accept {variable} now: {name or error}") from error


def _missing(wanted: Sequence[str], given: frozenset[str] | None) -> tuple[str, ...]:
    return tuple(scope for scope in wanted if given is not None and scope not in given)


def _scopes(headers: Mapping[str, object]) -> frozenset[str] | None:
    """Return a token's scopes as Slack reports them; None if it does not."""
    text = str(headers.get("x-oauth-scopes") or "")
    return frozenset(scope.strip() for scope in text.split(",")) if text else None
