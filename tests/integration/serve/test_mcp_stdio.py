"""`raydex mcp` as a process, spoken to by the SDK's client: in its own process, and forwarded to a service."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from kit.api import run_server
from kit.html_workshop import HtmlWorkshop
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from pipelines.answering.factory import make_engine, make_retriever
from pipelines.answering.settings import AnswerSettings
from pipelines.store import Store
from serve.routes import create_app

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
SITE = {
    "1.0/data.html": '<html lang="en"><h1>Data</h1><section id="csv"><h2>CSV</h2><p>Call read_csv to load comma '
    "separated files.</p><pre>ds = read_csv(path)\nds.show()</pre></section></html>",
    "2.0/data.html": '<html lang="en"><h1>Data</h1><section id="csv"><h2>CSV</h2><p>Call read_table to load comma '
    "separated files.</p></section></html>",
    "2.0/serve.html": '<html lang="en"><h1>Serve</h1><p>Use the batch decorator to batch requests.</p></html>',
}


@pytest.fixture
def indexed(store: Store) -> Store:
    HtmlWorkshop(store, version=r"/(\d\.\d)/").reindex(SITE)
    return store


@pytest.fixture
def environment(database_url: str, tmp_path: Path) -> dict[str, str]:
    path = os.pathsep.join([str(ROOT), *sys.path])
    return {**os.environ, "PYTHONPATH": path, "DATABASE_URL": database_url, "RAYDEX_HOME": str(tmp_path)}


def converse(environment: dict[str, str], *calls: tuple[str, dict[str, Any]], flags: tuple[str, ...] = ()) -> list[Any]:
    """The results of calls to a `raydex mcp` with `flags`."""

    async def all() -> list[Any]:
        words = ["-m", "jobs", "mcp", "--no-llm", *flags]
        started = StdioServerParameters(command=sys.executable, args=words, env=environment, cwd=ROOT)
        async with Client(started) as client:
            assert [tool.name for tool in (await client.list_tools()).tools][:2] == ["search_docs", "ask_docs"]
            return [await client.call_tool(name, arguments) for name, arguments in calls]

    return asyncio.run(all())


CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("list_collections", {}),
    ("search_docs", {"query": "load comma separated files", "version": "2.0"}),
    ("ask_docs", {"question": "How do I load comma separated files?", "version": "1.0"}),
    ("read_page", {"url": "https://docs.test/1.0/data.html#csv"}),
    ("search_docs", {"query": "files", "version": "3.0"}),
)


def check(results: list[Any]) -> None:
    listed, found, answer, page, wrong = results
    (docs,) = listed.structured_content["collections"]
    assert (docs["versions"], docs["languages"], docs["url"]) == (["2.0", "1.0"], ["en"], "https://docs.test/")
    assert {section["version"] for section in found.structured_content["sections"]} == {"2.0"}
    assert answer.structured_content["sources"][0]["source"] == "https://docs.test/1.0/data.html#csv"
    assert "```\nds = read_csv(path)\nds.show()\n```" in page.structured_content["text"]
    assert wrong.is_error and "1.0, 2.0" in wrong.content[0].text


def test_it_answers_in_its_own_process(indexed: Store, environment: dict[str, str], database_url: str) -> None:
    check(converse(environment, *CALLS))
    with psycopg.connect(database_url) as connection:
        assert connection.execute("select channel, known from question").fetchall() == [("mcp", True)]


@pytest.fixture
def service(indexed: Store, tmp_path: Path) -> Iterator[str]:
    settings = AnswerSettings(home=tmp_path, llm={"off": True})
    with run_server(create_app(make_engine(settings, make_retriever(settings, indexed)), indexed)) as url:
        yield url


def test_it_forwards_to_a_service(service: str, environment: dict[str, str]) -> None:
    check(
        converse(
            {**environment, "DATABASE_URL": "postgresql://nobody@127.0.0.1:9/x"}, *CALLS, flags=("--service", service)
        )
    )


def test_a_service_that_is_away_is_an_error_of_the_tool(environment: dict[str, str]) -> None:
    (result,) = converse(environment, ("list_collections", {}), flags=("--service", "http://127.0.0.1:9"))
    assert result.is_error
    assert "is `raydex serve` running there?" in result.content[0].text


def test_an_address_that_is_no_url_is_refused(environment: dict[str, str]) -> None:
    words = [sys.executable, "-m", "jobs", "mcp", "--service", "docs.example.com"]
    ended = subprocess.run(words, env=environment, cwd=ROOT, input="", capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert "raydex mcp: the service 'docs.example.com' is no URL" in ended.stderr


def test_without_an_index_it_says_what_to_do(store: Store, environment: dict[str, str]) -> None:
    listed, found = converse(environment, ("list_collections", {}), ("search_docs", {"query": "x"}))
    assert "raydex index" in listed.content[0].text
    assert found.is_error and "raydex index" in found.content[0].text


def test_a_database_that_is_away_ends_it_with_a_message(environment: dict[str, str]) -> None:
    away = {**environment, "DATABASE_URL": "postgresql://nobody@127.0.0.1:9/x"}
    ended = subprocess.run(
        [sys.executable, "-m", "jobs", "mcp", "--no-llm"], env=away, cwd=ROOT, input="", capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert ended.returncode == 1
    assert "raydex mcp: " in ended.stderr and "Traceback" not in ended.stderr
    assert ended.stdout == ""


def test_it_ends_when_it_is_told_to(indexed: Store, environment: dict[str, str]) -> None:
    words = [sys.executable, "-m", "jobs", "mcp", "--no-llm"]
    with subprocess.Popen(
        words, env=environment, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as running:
        assert running.stdin and running.stdout
        running.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",'
                            b'"capabilities":{},"clientInfo":{"name":"x","version":"1"}}}\n')  # fmt: skip
        running.stdin.flush()
        assert b'"serverInfo"' in running.stdout.readline()
        running.send_signal(signal.SIGTERM)
        assert running.wait(60) == 130
