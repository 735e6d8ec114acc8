"""`python -m serve.slack` and `raydex slack`: answers in Slack until Ctrl-C.

Words: `check` ends once the tokens, the workspaces and the service were checked, `manifest` prints that of the app.
"""

import asyncio
import logging
import os
import signal
import sys
from pathlib import Path

from platformdirs import user_data_path
from pydantic import ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from pipelines.answering.settings import Home, describe_errors
from pipelines.services import find_services
from serve.slack.installations import SlackUnreachable
from serve.slack.running import run_bot
from serve.slack.settings import SlackRefused, SlackSettings
from serve.slack.workspaces import BadWorkspaces, read_workspaces

MANIFEST = Path(__file__).with_name("manifest.yaml")
OWN_SERVICE = "http://127.0.0.1:8000"


class SlackVariables(BaseSettings, SlackSettings):
    """The settings, from the environment."""

    model_config = SettingsConfigDict(
        env_prefix="RAYDEX_", populate_by_name=True, extra="ignore", hide_input_in_errors=True
    )

    collection: str = ""
    home: Home = user_data_path("raydex")


def main(words: list[str]) -> int:
    """Serve until interrupted. Exit codes: 0 stopped, 1 failed, 2 a setting or a token is not valid."""
    if words == ["manifest"]:
        print(MANIFEST.read_text("utf-8"), end="")
        return 0
    if words not in ([], ["check"]):
        return _failed(f"{words[0]}: `python -m serve.slack` takes no flags, `raydex slack` does", 2)
    logging.basicConfig(format="raydex slack: %(message)s", level=logging.WARNING)
    try:
        well = asyncio.run(_run(SlackVariables(), only_check=bool(words)))
    except ValidationError as error:
        return _failed(describe_errors(error), 2)
    except (BadWorkspaces, SlackRefused, SlackUnreachable) as error:
        return _failed(str(error), 1 if isinstance(error, SlackUnreachable) else 2)
    return 0 if well or not words else 1


async def _run(settings: SlackVariables, *, only_check: bool) -> bool:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    workspaces = read_workspaces(settings.slack_workspaces, os.environ, settings.collection)
    url = settings.slack_service or next((one.url for one in find_services(settings.home)), OWN_SERVICE)
    folder = settings.home / "slack"
    return await run_bot(settings, workspaces, url, folder, stop, say=_say, only_check=only_check)


def _failed(message: str, code: int) -> int:
    _say(message)
    return code


def _say(message: str) -> None:
    print(f"raydex slack: {message}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
