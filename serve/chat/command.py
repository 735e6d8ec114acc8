"""A bot as a command: it serves until Ctrl-C, or exits after checking everything."""

import asyncio
import logging
import signal
import sys
from collections.abc import Awaitable
from pathlib import Path
from typing import Protocol

from pydantic import ValidationError

from pipelines.answering.settings import describe_errors
from pipelines.files.services import find_services
from serve.chat.running import ChatRefused, ChatUnreachable, Say

OWN_SERVICE = "http://127.0.0.1:8000"


class Run(Protocol):
    """Serves until `stop`, with the settings of the environment; returns whether the service works."""

    def __call__(self, stop: asyncio.Event, *, say: Say, only_check: bool) -> Awaitable[bool]: ...


def run_command(name: str, words: list[str], run: Run) -> int:
    """Run the bot `name` until interrupted, or with the argument `check` only check it.

    Exit codes: 0 stopped, 1 failed, 2 invalid setting or token.
    """

    def say(message: str) -> None:
        print(f"raydex {name}: {message}", file=sys.stderr, flush=True)

    if words not in ([], ["check"]):
        say(f"{words[0]}: `python -m serve.{name}` takes no flags, `raydex {name}` does")
        return 2
    logging.basicConfig(format=f"raydex {name}: %(message)s", level=logging.WARNING)
    try:
        well = asyncio.run(_until_signal(run, say, only_check=bool(words)))
    except (ValidationError, ChatRefused, ChatUnreachable) as error:
        say(describe_errors(error) if isinstance(error, ValidationError) else str(error))
        return 1 if isinstance(error, ChatUnreachable) else 2
    return 0 if well or not words else 1


def own_service(home: Path) -> str:
    """Return the URL of the service that runs from `home`, or else the default URL."""
    return next((one.url for one in find_services(home)), OWN_SERVICE)


async def _until_signal(run: Run, say: Say, *, only_check: bool) -> bool:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return await run(stop, say=say, only_check=only_check)
