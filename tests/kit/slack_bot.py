"""Runs the Slack bot in a thread, against a fake Slack and a service, and scripts the service's streams."""

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from kit.scripted_server import Raw
from kit.slack_server import APP_TOKEN, SlackServer
from pydantic import SecretStr

from serve.slack.bot import run_bot
from serve.slack.channel import SlackChannel
from serve.slack.settings import SlackSettings
from serve.slack.workspaces import Workspaces

ROOT = Path(__file__).parents[2]
QUICK = partial(SlackChannel, channel_s=0.05, edits_s=0.05)
NONE = Workspaces()
SOURCE = "https://d.test/data#csv"


class RunningBot:
    """A bot in a thread.

    `said` has its messages to its operator. `error` is the reason for its end, or None if it was stopped.
    """

    def __init__(
        self, slack: SlackServer, service: str, folder: Path | None, workspaces: Workspaces, paced: bool = True
    ) -> None:
        self.said: list[str] = []
        self.error: Exception | None = None
        token = "" if workspaces.tokens else next(iter(slack.teams))
        settings = SlackSettings(
            slack_bot_token=SecretStr(token), slack_app_token=SecretStr(APP_TOKEN), slack_api_url=slack.url
        )
        make_channel = SlackChannel if paced else QUICK
        self._run = lambda stop: run_bot(
            settings, workspaces, service, folder, stop, say=self.said.append, make_channel=make_channel
        )
        self._started = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._main()), daemon=True)
        self._thread.start()
        assert self._started.wait(60)

    def stop(self) -> None:
        """Stop the bot like a signal, and wait for its end."""
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(60)

    async def _main(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self._started.set()
        try:
            await self._run(self._stop)
        except Exception as error:
            self.error = error


def start_slack_command(slack: SlackServer, service: str, home: Path) -> "subprocess.Popen[str]":
    """Start `raydex slack` in its own process, and return once it is connected."""
    before = len(slack.sockets)
    environment = {**os.environ, "SLACK_API_URL": slack.url, "SLACK_APP_TOKEN": APP_TOKEN, "RAYDEX_HOME": str(home),
                   "SLACK_BOT_TOKEN": next(iter(slack.teams)), "PYTHONPATH": str(ROOT)}  # fmt: skip
    words = [sys.executable, "-m", "jobs", "slack", "--service", service]
    process = subprocess.Popen(words, env=environment, stderr=subprocess.PIPE, text=True)
    slack.wait_for(lambda: len(slack.sockets) > before or process.poll() is not None, 30)
    return process


@contextlib.contextmanager
def run_slack_bot(
    slack: SlackServer, service: str, folder: Path | None = None, workspaces: Workspaces = NONE, paced: bool = False
) -> Iterator[RunningBot]:
    """Run a bot that is connected to `slack` and queries `service`. Only with `paced` does it keep Slack's pauses."""
    before = len(slack.sockets)
    bot = RunningBot(slack, service, folder, workspaces, paced)
    slack.wait_for(lambda: len(slack.sockets) > before or bot.error)
    try:
        yield bot
    finally:
        bot.stop()


def citation(n: int = 1, source: str = SOURCE, title: str = "Data › CSV", **more: Any) -> dict[str, Any]:
    """Return a citation in the service's format."""
    headings = title.split(" › ")
    return {"n": n, "source": source, "title": title, "snippet": "…", "headings": headings, "supported": True, **more}


def answer(text: str, citations: Iterable[Mapping[str, Any]] = (citation(),), **more: Any) -> dict[str, Any]:
    """Return the last event of a stream."""
    return {
        "id": "a1", "answer": text, "known": True, "confidence": "high", "citations": list(citations), "degraded": [],
        "conversation": "c", **more,
    }  # fmt: skip


def stream(whole: Mapping[str, Any], deltas: Iterable[str] = ()) -> Raw:
    """Return the reply of /query/stream for an answer."""
    hits = [{**one, "headings": one["headings"]} for one in whole["citations"]]
    events = [("hits", {"hits": hits}), *(("delta", {"text": delta}) for delta in deltas), ("answer", whole)]
    text = "".join(f"event: {name}\ndata: {json.dumps(data)}\n\n" for name, data in events)
    return Raw(200, text, "text/event-stream")
