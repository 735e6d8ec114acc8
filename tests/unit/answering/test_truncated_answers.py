"""An answer whose model was cut off says so, in every reply: it is never passed off as whole."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import openai
import pytest
from kit.answering import make_hit
from kit.api import FakeStore, run_server
from kit.scripted_llm import Reply, ScriptedLLM

from pipelines.answering.engine import QueryEngine
from pipelines.answering.retrieval.search import Retrieval, Search
from pipelines.llm.client import LLM
from pipelines.llm.protocol import finish_reason
from pipelines.records import Index, IndexSettings
from serve.routes import create_app

INDEX = Index(1, "docs", IndexSettings("words"), "live", 1)
HITS = tuple(make_hit(f"https://d.test/csv#{n}", f"Load csv files in {n} steps.") for n in range(2))
QUESTION = "How are csv files loaded?"
WHOLE = Reply("Load csv files in 0 steps [1].")
CUT_OFF = {"length": Reply("Load csv fi", finish_reason="length"), "none": Reply("Load csv fi", finish_reason=None)}


class FixedRetriever:
    """Finds HITS."""

    async def aretrieve(self, search: Search) -> Retrieval:
        return Retrieval(QUESTION, HITS, INDEX, 1, (), {}, (QUESTION,))

    def has_loaded(self, collection: str | None = None) -> bool:
        return True

    async def aload(self, collection: str | None = None) -> None:
        """It has nothing to load."""

    async def aready(self, collection: str | None = None) -> Index:
        return INDEX

    async def aembed(self, texts: Sequence[str], collection: str | None = None) -> np.ndarray:
        return np.ones((len(texts), 1), np.float32)


@pytest.fixture(scope="module")
def llm() -> Iterator[ScriptedLLM]:
    with ScriptedLLM() as server:
        yield server


@pytest.fixture(scope="module")
def url(llm: ScriptedLLM) -> Iterator[str]:
    engine = QueryEngine(FixedRetriever(), llm=LLM("scripted", base_url=llm.url))
    with run_server(create_app(engine, FakeStore())) as url:  # type: ignore[arg-type]
        yield url


def ask(url: str, **more: Any) -> dict[str, Any]:
    import httpx

    return dict(httpx.post(f"{url}/query", json={"question": QUESTION, **more}, timeout=60).json())


# "accumulate" asks for whole replies, "compact" for a stream.
@pytest.mark.parametrize("mode", ["accumulate", "compact"])
@pytest.mark.parametrize("kind", CUT_OFF)
def test_an_answer_that_was_cut_off_is_degraded(url: str, llm: ScriptedLLM, mode: str, kind: str) -> None:
    llm.default = CUT_OFF[kind]
    answer = ask(url, mode=mode)
    assert (answer["finish_reason"], answer["degraded"]) == ("length", ["truncated"])
    assert "Load csv fi" in answer["answer"]


@pytest.mark.parametrize("mode", ["accumulate", "compact"])
def test_a_whole_answer_is_not(url: str, llm: ScriptedLLM, mode: str) -> None:
    llm.default = WHOLE
    answer = ask(url, mode=mode)
    assert (answer["finish_reason"], answer["degraded"]) == ("stop", [])


@pytest.mark.parametrize("kind", CUT_OFF)
def test_a_stream_says_so_in_its_answer(url: str, llm: ScriptedLLM, kind: str) -> None:
    import httpx

    llm.default = CUT_OFF[kind]
    text = httpx.post(f"{url}/query/stream", json={"question": QUESTION}, timeout=60).text
    event, data = text.strip().split("\n\n")[-1].split("\n")
    answer = json.loads(data.removeprefix("data: "))
    assert event == "event: answer"
    assert (answer["finish_reason"], answer["degraded"]) == ("length", ["truncated"])


@pytest.mark.parametrize("kind", CUT_OFF)
def test_openais_clients_see_their_own_finish_reason(url: str, llm: ScriptedLLM, kind: str) -> None:
    llm.default = CUT_OFF[kind]
    client = openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
    asked: Any = {"model": "docs", "messages": [{"role": "user", "content": QUESTION}]}
    whole = client.chat.completions.create(**asked)
    chunks = list(client.chat.completions.create(**asked, stream=True))
    assert whole.choices[0].finish_reason == chunks[-1].choices[0].finish_reason == "length"
    llm.default = WHOLE
    assert client.chat.completions.create(**asked).choices[0].finish_reason == "stop"


def test_the_reason_of_each_server_is_understood() -> None:
    assert {finish_reason(ended) for ended in ("stop", "eos_token", "tool_calls", "end_turn")} == {"stop"}
    assert {finish_reason(ended) for ended in (None, "", "length", "max_tokens", "model_length")} == {"length"}
    assert finish_reason("content_filter") == "content_filter"
