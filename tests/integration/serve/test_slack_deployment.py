"""The Slack bot as a deployment of the application: it asks the service beside it, and a new replica goes on."""

import contextlib
from collections.abc import Iterator

import psutil
import pytest
from kit.cluster import Service
from kit.databases import DatabaseServer
from kit.processes import kill_9
from kit.slack_server import APP_TOKEN, SlackServer
from kit.workshop import Workshop
from pydantic import SecretStr

from pipelines.store import Store
from serve.app import build
from serve.settings import Settings
from serve.slack.settings import SlackRefused

pytestmark = pytest.mark.slow

SITE = {"data.html": {"loading-csv": "Call ray.data.read_csv with a path to load comma separated files."}}


@pytest.fixture(scope="module")
def slack(service: Service, server: DatabaseServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlackServer]:
    """Slack, with the bot of a deployed application connected to it."""
    with server.database() as url, Store(url) as store, SlackServer() as stand_in:
        Workshop(store).reindex(SITE)
        settings = Settings(
            database_url=url, home=tmp_path_factory.mktemp("home"), cpus=0.1, slack=True, slack_service=service.url,
            slack_bot_token=SecretStr("xoxb-T1"), slack_app_token=SecretStr(APP_TOKEN), slack_api_url=stand_in.url,
        )  # fmt: skip
        with service.deployed(settings):
            service.wait_until_ready()
            stand_in.wait_for(lambda: stand_in.sockets, 60)
            yield stand_in


def replicas() -> list[int]:
    """The processes of the bot's replicas."""
    found = []
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if " ".join(process.cmdline()).startswith("ray::ServeReplica:raydex:Slack"):
                found.append(process.pid)
    return found


def test_it_answers_and_a_new_replica_goes_on(slack: SlackServer) -> None:
    event = slack.mention("How do I load csv files?")
    slack.deliver(event)
    (message,) = slack.wait_for_answer(event["ts"], seconds=90)
    assert "https://docs.test/data.html#loading-csv" in message["text"]
    connected = len(slack.sockets)
    kill_9(*replicas())
    slack.wait_for(lambda: len(slack.sockets) > connected, 60)
    envelope = slack.deliver(event, attempt=1)
    slack.wait_for(lambda: envelope in slack.acknowledged)
    slack.say("And what does it return?", thread=event["ts"])
    slack.wait_for(lambda: len(slack.thread(event["ts"])) == 2, 30)
    slack.wait_for_answer(event["ts"], seconds=90)
    assert len(slack.of("chat.postMessage")) == 2


def test_an_application_without_tokens_is_not_built() -> None:
    with pytest.raises(SlackRefused, match="SLACK_APP_TOKEN is not set"):
        build(Settings(database_url="postgresql://", slack=True))
