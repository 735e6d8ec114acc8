"""An unresponsive database: `raydex serve` says after 3 s what it waits for, and stops on request."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from pipelines.store import StoreUnavailable, wait_for_database
from pipelines.store.database import address as connecting

ROOT = Path(__file__).parents[3]


@pytest.fixture
def silent() -> Iterator[int]:
    """Return the port of a server that accepts connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    "number",
    [pytest.param(signal.SIGINT, marks=pytest.mark.exhaustive), signal.SIGTERM],
    ids=lambda number: number.name,
)
def test_service_says_what_it_waits_for_and_stops_on_request(tmp_path, silent, number):
    variables = {"RAYDEX_HOME": str(tmp_path), "DATABASE_URL": f"postgresql://me:s3cret@127.0.0.1:{silent}/x"}
    service = subprocess.Popen([sys.executable, "-m", "jobs", "serve", "--port", "0"], cwd=ROOT, text=True,
                               stderr=subprocess.PIPE, env=os.environ | variables)  # fmt: skip
    assert service.stderr is not None
    said = service.stderr.readline()
    assert said.startswith(f"raydex serve: waiting for the database at 127.0.0.1:{silent} (") and "s3cret" not in said
    service.send_signal(number)
    rest = service.communicate(timeout=60)[1]
    assert service.returncode == 128 + number and "Traceback" not in rest


def test_server_that_answers_or_refuses_us_is_not_waited_for(database_url: str) -> None:
    heard: list[str] = []
    wait_for_database(database_url, heard.append)
    with pytest.raises(StoreUnavailable, match="password authentication failed"):
        wait_for_database(database_url.replace("raydex_owner:", "raydex_owner:wrong"), heard.append)
    assert heard == []


def test_server_without_a_free_connection_is_waited_for(
    database_url: str, superuser_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connecting, "TELL_S", 2.0)  # a busy machine has refused us too by then
    heard: list[str] = []
    limit = f"alter database {urlsplit(database_url).path[1:]} connection limit {{}}"

    def give_connections(message: str) -> None:
        heard.append(message)
        server.execute(limit.format(-1))

    with psycopg.connect(superuser_url, autocommit=True) as server:
        server.execute(limit.format(0))
        wait_for_database(database_url, give_connections, patience_s=20.0)
    assert "too many connections" in heard[0]


def test_waiting_ends_after_the_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connecting, "TELL_S", 0.2)
    heard: list[str] = []
    with pytest.raises(StoreUnavailable, match=r"127.0.0.1:9 can't be used: .*refused"):
        wait_for_database("postgresql://me:s3cret@127.0.0.1:9/x", heard.append, patience_s=1.0)
    assert len(heard) == 1 and "waiting for the database at 127.0.0.1:9" in heard[0] and "s3cret" not in heard[0]
    assert heard[0].endswith("at most 1 s; Ctrl-C ends the wait")
