"""Nonsense of maximum length is answered through every interface, and longer texts are refused with the limit."""

import asyncio
import itertools
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from kit.answering import MemoryStore, WordEmbedder, make_hit
from kit.api import FakeStore, run_server
from kit.slack_bot import run_slack_bot
from kit.slack_server import SlackServer
from mcp import Client

from pipelines.answering.engine import QueryEngine
from pipelines.answering.retrieval.retriever import Retriever
from pipelines.lexical import LexicalIndex
from serve.routes import create_app

pytestmark = pytest.mark.slow

UNITS = [
    "a", "(", "word ", "问", "a\u0301", "`", "http://a.b/c?d=e&", "1", "[1]", "how do i ", "<", "*",
]  # fmt: skip
LIMIT, AGENTS_LIMIT, LONG = 8_000, 2_000, 100_000
TOO_LONG, TOO_LONG_FOR_AGENTS = "at most 8,000", "at most 2,000"
BODIES = {
    "/query": lambda text: {"question": text},
    "/query/stream": lambda text: {"question": text},
    "/search": lambda text: {"question": text},
    "/v1/chat/completions": lambda text: {"model": "docs", "messages": [{"role": "user", "content": text}]},
}


def text_of(unit: str, length: int) -> str:
    """Return `length` characters with a letter at either end, so that nothing is stripped."""
    return f"x{''.join(itertools.islice(itertools.cycle(unit), length - 2))}x"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    chunks = MemoryStore(make_hit("https://d.test/data#csv", "Call read_csv to load comma separated files."))
    folder: Path = tmp_path_factory.mktemp("lexical")
    retriever = Retriever(chunks, lambda _: WordEmbedder(), lambda index: LexicalIndex(folder / str(index.id)))
    with run_server(create_app(QueryEngine(retriever), FakeStore())) as url:  # type: ignore[arg-type]
        yield url
    retriever.close()


def often(each: bool) -> tuple[pytest.MarkDecorator, ...]:
    """Return a pair's marks: `make test` sends each text through one interface, `make test-all` through all of them."""
    return () if each else (pytest.mark.exhaustive,)


@pytest.mark.parametrize(
    ("path", "unit"),
    [
        pytest.param(path, unit, id=f"{path}-{unit!a}", marks=often(n % len(BODIES) == way))
        for way, path in enumerate(BODIES)
        for n, unit in enumerate(UNITS)
    ],
)
def test_long_text_is_answered_up_to_the_limit_and_refused_beyond(service: str, path: str, unit: str) -> None:
    asked = httpx.post(f"{service}{path}", json=BODIES[path](text_of(unit, LIMIT)), timeout=60)
    assert asked.status_code == 200, asked.text
    refused = httpx.post(f"{service}{path}", json=BODIES[path](text_of(unit, LONG)), timeout=60)
    assert refused.status_code == 413 and TOO_LONG in refused.text
    before = httpx.post(f"{service}/query", json={
        "question": "And how do I read it?", "history": [{"role": "user", "content": text_of(unit, LIMIT)}],
    }, timeout=60)  # fmt: skip
    assert before.status_code == 200, before.text


@pytest.mark.parametrize(
    "unit", [pytest.param(unit, id=ascii(unit), marks=often(n % 6 == 0)) for n, unit in enumerate(UNITS)]
)
def test_long_mcp_text_is_answered_up_to_the_limit_and_refused_beyond(service: str, unit: str) -> None:
    async def ask(length: int) -> tuple[bool, str]:
        async with Client(f"{service}/mcp") as client:
            answer = await client.call_tool("ask_docs", {"question": text_of(unit, length)})
            return bool(answer.is_error), answer.content[0].text  # type: ignore[union-attr]

    failed, said = asyncio.run(ask(AGENTS_LIMIT))
    assert not failed, said[:300]
    failed, said = asyncio.run(ask(LONG))
    assert failed and TOO_LONG_FOR_AGENTS in said


@pytest.mark.parametrize(
    "units", [pytest.param(UNITS[1::6], id="some"), pytest.param(UNITS, id="all", marks=often(False))]
)
def test_long_texts_in_slack_are_answered_or_refused(service: str, tmp_path: Path, units: list[str]) -> None:
    with SlackServer() as slack, run_slack_bot(slack, service, tmp_path / "slack"):
        for unit in units:
            slack.wait_for_answer(slack.say(text_of(unit, LIMIT - 100)))
        ts = slack.say(text_of("word ", 39_000))  # Slack's limit is 40,000 characters
        slack.wait_for(lambda: "is too long" in str(slack.thread(ts)), 30)
