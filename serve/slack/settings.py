"""Settings of the Slack bot, and its tokens."""

import importlib.util
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import AfterValidator, AliasChoices, BaseModel, Field, SecretStr

from serve.chat.running import ChatRefused
from serve.slack.workspaces import Workspaces

SLACK_API = "https://slack.com/api/"
TELL = "docs/slack.md says how to make the app, `raydex slack --manifest` prints its manifest"


def _check_url(url: str) -> str:
    if url and not url.startswith(("http://", "https://")):
        raise ValueError(f"{url!r} is not an address: it must begin with http:// or https://")
    return url


Url = Annotated[str, AfterValidator(_check_url)]


class SlackRefused(ChatRefused):
    """A token is missing, has the wrong type, or allows too little; the message says what to do."""


@dataclass(frozen=True, slots=True)
class BotToken:
    """A bot token: the variable that contains it, and the workspace that it must belong to, "" for any."""

    variable: str
    team: str
    token: str = field(repr=False)


class SlackSettings(BaseModel):
    """The settings for Slack, its tokens, and the service to ask.

    `slack_service` is the URL of the service, "" for the one on this machine. Tokens have the variable names of Slack's
    own tools, and are never printed.
    """

    slack_bot_token: Annotated[
        SecretStr, Field(validation_alias=AliasChoices("slack_bot_token", "SLACK_BOT_TOKEN"))
    ] = SecretStr("")
    slack_app_token: Annotated[
        SecretStr, Field(validation_alias=AliasChoices("slack_app_token", "SLACK_APP_TOKEN"))
    ] = SecretStr("")
    slack_api_url: Annotated[Url, Field(validation_alias=AliasChoices("slack_api_url", "SLACK_API_URL"))] = SLACK_API
    slack_workspaces: str = ""  # YAML file: bot tokens of workspaces, collections of channels
    slack_service: Annotated[Url, Field(validation_alias=AliasChoices("slack_service", "RAYDEX_SERVICE"))] = ""
    slack_key: Annotated[SecretStr, Field(validation_alias=AliasChoices("slack_key", "RAYDEX_KEY"))] = SecretStr("")


def check_installed() -> None:
    """Raise SlackRefused unless the bot's library is installed."""
    if importlib.util.find_spec("slack_bolt") is None:
        raise SlackRefused("the Slack bot needs the package slack-bolt: `pip install 'raydex[slack]'`")


def find_tokens(settings: SlackSettings, workspaces: Workspaces) -> tuple[str, list[BotToken]]:
    """Return the app's token and its bots' tokens. Raises SlackRefused if one is missing or has the wrong type."""
    app_token, token = settings.slack_app_token.get_secret_value(), settings.slack_bot_token.get_secret_value()
    bots = [BotToken(workspaces.file.workspaces[team].token, team, own) for team, own in workspaces.tokens.items()]
    if token and token not in workspaces.tokens.values():
        bots.append(BotToken("SLACK_BOT_TOKEN", "", token))
    if not app_token:
        raise SlackRefused(f"SLACK_APP_TOKEN is not set: the app-level token (xapp-…) with connections:write. {TELL}")
    if app_token.startswith("xox"):
        raise SlackRefused("SLACK_APP_TOKEN holds a token of a bot or user: the app-level token begins with xapp-")
    if not bots:
        raise SlackRefused(f"SLACK_BOT_TOKEN is not set: the bot token (xoxb-…) of the installed app. {TELL}")
    for bot in bots:
        if bot.token.startswith(("xapp-", "xoxp-")):
            raise SlackRefused(f"{bot.variable} holds a token of another kind: the bot token begins with xoxb-")
    return app_token, bots
