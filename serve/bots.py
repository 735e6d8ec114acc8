"""The chat bots that run beside the service, each as a deployment: one entry a platform."""

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

    slack: bool = False  # whether the Slack bot runs beside the service, as a deployment


@dataclass(frozen=True, slots=True)
class Bot:
    """A bot as it is sent to the node of its replica; `name` is that of its deployment.

    `run` serves until an event, and asks the service at a URL unless the settings name one; its folder keeps what was
    taken to be answered.
    """

    name: str
    run: Callable[[BotSettings, str, Path, asyncio.Event, Say], Coroutine[Any, Any, None]]


def wanted_bots(settings: BotSettings, variables: Mapping[str, str]) -> list[Bot]:
    """Return the bots that the settings ask for; tokens of workspaces come from `variables`. Raises ChatRefused."""
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
