"""`raydex mcp` as a process with the SDK's client: answering by itself, and forwarding to a service."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from kit.api import run_server
from kit.html_workshop import HtmlWorkshop
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from jobs.__main__ import raydex
from pipelines.answering.factory import make_engine, make_retriever
from pipelines.answering.settings import AnswerSettings
from pipelines.store import Store
from serve.routes import create_app

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
AWAY = "postgresql://nobody@127.0.0.1:9/x"
SITE = {
    "1.0/data.html": '<html lang="en"><h1>Data</h1><section id="csv"><h2>CSV</h2><p>Call read_csv to load comma '
    "separated files.</p><pre>ds = read_csv(path)\nds.show()</pre></section></html>",
    "2.0/data.html": '<html lang="en"><h1>Data</h1><section id="csv"><h2>CSV</h2><p>Call read_table to load comma '
    "separated files.</p></section></html>",
    "2.0/serve.html": '<html lang="en"><h1>Serve</h1><p>Use the batch decorator to batch requests.</p></html>',
}


def index(store: Store) -> None:
    HtmlWorkshop(store, version=r"/(\d\.\d)/").reindex(SITE)


@pytest.fixture
def environment(database_url: str, tmp_path: Path, warm: None) -> dict[str, str]:
    path = os.pathsep.join([str(ROOT), *sys.path])
    return {**os.environ, "PYTHONPATH": path, "DATABASE_URL": database_url, "RAYDEX_HOME": str(tmp_path)}


@asynccontextmanager
async def talking(environment: dict[str, str], *flags: str) -> AsyncIterator[Client]:
    """Run a client of a `raydex mcp` with `flags`."""
    words = ["-m", "jobs", "mcp", *(flags or ("--no-llm",))]
    started = StdioServerParameters(command=sys.executable, args=words, env=environment, cwd=ROOT)
    async with Client(started) as client:
        assert [tool.name for tool in (await client.list_tools()).tools][:2] == ["search_docs", "ask_docs"]
        yield client


async def results(client: Client, *calls: tuple[str, dict[str, Any]]) -> list[Any]:
    return [await client.call_tool(name, arguments) for name, arguments in calls]


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


def test_server_answers_in_its_own_process_once_there_is_an_index(store, environment, database_url) -> None:
    async def talk() -> None:
        async with talking(environment) as client:
            listed, found = await results(client, ("list_collections", {}), ("search_docs", {"query": "x"}))
            assert "raydex index" in listed.content[0].text
            assert found.is_error and "raydex index" in found.content[0].text
            await asyncio.to_thread(index, store)
            check(await results(client, *CALLS))

    asyncio.run(talk())
    with psycopg.connect(database_url) as connection:
        assert connection.execute("select channel, known from question").fetchall() == [("mcp", True)]


def test_server_forwards_to_a_service_and_reports_if_it_is_down(store, environment, tmp_path) -> None:
    index(store)
    settings = AnswerSettings(home=tmp_path, llm={"off": True})
    app = create_app(make_engine(settings, make_retriever(settings, store)), store)

    async def talk() -> None:
        with ExitStack() as service:
            url = service.enter_context(run_server(app))
            elsewhere = {"DATABASE_URL": AWAY, "HTTP_PROXY": "http://127.0.0.1:9"}  # neither is contacted
            async with talking(environment | elsewhere, "--service", url) as client:
                check(await results(client, *CALLS))
                service.close()
                (result,) = await results(client, ("list_collections", {}))
                assert result.is_error and "is `raydex serve` running there?" in result.content[0].text

    asyncio.run(talk())


@pytest.mark.parametrize(("flags", "code", "said"), [
    (("--service", "docs.example.com"), 2, "raydex mcp: the service 'docs.example.com' is not a URL"),
    (("--service", "http://127.0.0.1:9", "--collection", "docs"), 2, "leave out --collection and --no-llm"),
    (("--no-llm",), 1, "raydex mcp: "),
])  # fmt: skip
def test_invalid_start_ends_with_a_message(monkeypatch, capfd, tmp_path, flags, code, said) -> None:
    monkeypatch.setattr("signal.signal", lambda *_: None)
    monkeypatch.setattr("sys.argv", ["raydex"])
    monkeypatch.setattr("pipelines.store.DATABASE_PATIENCE_S", 0.1)
    monkeypatch.setattr("os.environ", os.environ | {"DATABASE_URL": AWAY, "RAYDEX_HOME": str(tmp_path)})
    with pytest.raises(SystemExit) as ended:
        raydex(["mcp", *flags])
    printed = capfd.readouterr()
    assert (ended.value.code, printed.out) == (code, "")
    assert said in printed.err and "Traceback" not in printed.err


def test_server_stops_on_request(environment: dict[str, str]) -> None:
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
