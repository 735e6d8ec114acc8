"""`python -m serve.slack` and `raydex slack`: answers in Slack until Ctrl-C.

Arguments: `check` checks the tokens, the workspaces and the service and exits; `manifest` prints the app's manifest.
"""

import asyncio
import os
import sys
from pathlib import Path

from platformdirs import user_data_path
from pydantic_settings import BaseSettings, SettingsConfigDict

from pipelines.answering.settings import Home
from pipelines.answering.settings.variables import warn_of_unread
from serve.chat.command import own_service, run_command
from serve.chat.running import Say
from serve.slack.settings import SlackSettings, check_installed
from serve.slack.workspaces import read_workspaces

MANIFEST = Path(__file__).with_name("manifest.yaml")


class SlackVariables(BaseSettings, SlackSettings):
    """The settings, from the environment."""

    model_config = SettingsConfigDict(
        env_prefix="RAYDEX_", populate_by_name=True, extra="ignore", hide_input_in_errors=True
    )

    collection: str = ""
    home: Home = user_data_path("raydex")


def main(words: list[str]) -> int:
    """Serve until interrupted. Exit codes: 0 stopped, 1 failed, 2 invalid setting or token."""
    if words == ["manifest"]:
        print(MANIFEST.read_text("utf-8"), end="")
        return 0
    return run_command("slack", words, _run)


async def _run(stop: asyncio.Event, *, say: Say, only_check: bool) -> bool:
    check_installed()
    warn_of_unread(os.environ)
    from serve.slack.bot import run_bot

    settings = SlackVariables()
    workspaces = read_workspaces(settings.slack_workspaces, os.environ, settings.collection)
    url = settings.slack_service or own_service(settings.home)
    return await run_bot(settings, workspaces, url, settings.home / "slack", stop, say=say, only_check=only_check)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
