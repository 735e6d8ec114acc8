"""The chat bots that run alongside the service, each as a deployment: one entry per platform."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from serve.chat.running import Say
from serve.slack.settings import SlackSettings, check_installed, find_tokens
from serve.slack.workspaces import Workspaces, read_workspaces


class BotSettings(SlackSettings):
    """The settings of all bots."""

    slack: bool = False  # whether the Slack bot runs alongside the service, as a deployment


@dataclass(frozen=True, slots=True)
class Bot:
    """A bot as sent to its replica's node; `name` is its deployment's name.

    `run` serves until an event is set, and asks the service at a URL unless the settings name one. Its folder stores
    messages that are being answered.
    """

    name: str
    run: Callable[[BotSettings, str, Path, asyncio.Event, Say], Coroutine[Any, Any, None]]


def wanted_bots(settings: BotSettings, variables: Mapping[str, str]) -> list[Bot]:
    """Return the bots enabled in the settings; workspace tokens come from `variables`. Raises ChatRefused."""
    bots = []
    if settings.slack:
        check_installed()
        workspaces = read_workspaces(settings.slack_workspaces, variables)
        find_tokens(settings, workspaces)
        bots.append(Bot("Slack", partial(_run_slack, workspaces)))
    return bots


async def _run_slack(
    workspaces: Workspaces, settings: BotSettings, url: str, folder: Path, stop: asyncio.Event, say: Say
) -> None:
    from serve.slack.bot import run_bot

    await run_bot(settings, workspaces, settings.slack_service or url, folder, stop, say=say)
