"""What many tests share: one embedded Postgres for the whole session, and a fresh database for each test.

The server's folder is temporary and its own: no test sees the data of the machine it runs on.
"""

import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from hypothesis import settings
from psycopg import sql

from pipelines import embedded
from pipelines.store import Store

settings.register_profile("untimed", deadline=None)  # a busy machine is no failure
settings.load_profile("untimed")

ROOT = Path(__file__).parents[1]
_numbers = itertools.count(1)


@pytest.fixture(scope="session", autouse=True)
def nothing_of_this_machine() -> None:
    """Settings of the machine's user must not reach a test."""
    for name in ("DATABASE_URL", "RAYDEX_HOME", "RAY_ADDRESS", "OPENAI_BASE_URL", "OPENAI_API_KEY"):
        os.environ.pop(name, None)


@pytest.fixture(scope="session")
def server_url(tmp_path_factory: pytest.TempPathFactory, nothing_of_this_machine: None) -> Iterator[str]:
    """URL of the session's Postgres, as its superuser."""
    with embedded.running(tmp_path_factory.mktemp("raydex")) as url:
        yield url


@pytest.fixture
def empty_database_url(server_url: str) -> Iterator[str]:
    """URL of a database without any table, dropped after the test."""
    name = f"test_{os.getpid()}_{next(_numbers)}"
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
        yield urlunsplit(urlsplit(server_url)._replace(path=f"/{name}"))
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))


@pytest.fixture
def database_url(empty_database_url: str) -> str:
    """URL of a fresh database with Raydex's tables."""
    with Store(empty_database_url) as store:
        store.migrate()
    return empty_database_url


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    """A Store on a fresh database; a call is tried once."""
    with Store(database_url) as store:
        yield store


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of real data; tests that need it skip where it is absent."""
    folder = Path(os.environ.get("RAYDEX_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no real data at {folder}: set RAYDEX_DATA")
    return folder
