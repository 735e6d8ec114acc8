"""Background tasks of chat clients on /v1: a model answers them verbatim, and they do not count as questions."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import openai
import pytest
import yaml
from kit.answering import MemoryStore, WordEmbedder, make_hit
from kit.api import FakeStore, MemoryRecorder, run_server
from kit.scripted_llm import Reply, ScriptedLLM

from pipelines.answering.engine import QueryEngine
from pipelines.answering.retrieval.retriever import Retriever
from pipelines.answering.writing.agents import LLMAgent
from pipelines.lexical import LexicalIndex
from pipelines.llm.client import LLM
from serve.routes import create_app

HITS = [make_hit(f"https://d.test/csv#{n}", f"Load csv files in {n} steps.") for n in range(3)]
TASKS: list[dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parents[2] / "data" / "background_tasks.yaml").read_text("utf-8")
)
TITLE = TASKS[0]["user"].replace("{chat}", "USER: How are csv files loaded?\nASSISTANT: In steps [1].")
# Text that the answer stages would all change: numbers, a link to another site, HTML, "I do not know".
JSON = '{ "title": "csv [1][9] <b>x</b> [see](http://evil.test) I do not know" }'


@pytest.fixture(scope="module")
def retriever(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Retriever]:
    lexical = LexicalIndex(tmp_path_factory.mktemp("lexical"))
    with closing(Retriever(MemoryStore(*HITS), lambda _: WordEmbedder(), lambda _: lexical)) as made:
        made.prepare()
        yield made


def chat(url: str, *messages: dict[str, str], **more: Any) -> Any:
    with openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as client:
        asked: Any = {"model": "docs", "messages": list(messages), **more}
        reply = client.chat.completions.create(**asked)
        return list(reply) if more.get("stream") else reply


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def test_model_answers_a_client_task_verbatim_without_a_record(retriever: Retriever) -> None:
    written, recorder = {"role": "system", "content": "Be brief."}, MemoryRecorder()
    with ScriptedLLM(default=JSON) as llm:
        engine = QueryEngine(
            retriever, agents=[LLMAgent("a", LLM("m", base_url=llm.url), system="Own", assistant="Sure")]
        )
        app = create_app(engine, FakeStore(), recorder=recorder, observer=recorder, v1_sources="append")  # type: ignore[arg-type]
        with run_server(app) as url:
            whole = chat(url, written, user(TITLE))
            streamed = chat(url, written, user(TITLE), stream=True)
            long = chat(url, user(TITLE.replace("</chat", "and so on\n" * 2_000 + "</chat")))
            asked = chat(url, user("How are csv files loaded?"))
    for request in llm.asked[:2]:
        assert request.messages == [written, user(TITLE)]
    assert whole.choices[0].message.content == long.choices[0].message.content == JSON
    assert "".join(chunk.choices[0].delta.content or "" for chunk in streamed if chunk.choices) == JSON
    assert whole.choices[0].finish_reason == "stop" and whole.usage.completion_tokens > 0
    assert not whole.raydex["citations"] and whole.raydex["agent"] == "a" and "task" in whole.raydex["route"]["why"]
    assert "Sources:" in asked.choices[0].message.content
    assert [row["question"] for row in recorder.rows] == ["How are csv files loaded?"] and not recorder.failures
    assert len(recorder.counted) == 1 and [answer.usage.calls for answer in recorder.worked] == [1, 1, 1]


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task["of"])
def test_reply_without_a_model_is_empty_and_valid(retriever: Retriever, task: dict[str, Any]) -> None:
    recorder = MemoryRecorder()
    fill = {"{chat}": "USER: How are csv files loaded?\nASSISTANT: In steps.", "{ask}": "How are csv files loaded?"}
    texts = {role: task[role] for role in ("system", "user") if role in task}
    for name, text in fill.items():
        texts = {role: said.replace(name, text) for role, said in texts.items()}
    messages = [{"role": role, "content": text} for role, text in texts.items()]
    if task.get("history"):
        messages = [user("How are csv files loaded?"), {"role": "assistant", "content": "In steps."}, *messages]
    with run_server(create_app(QueryEngine(retriever), FakeStore(), recorder=recorder)) as url:  # type: ignore[arg-type]
        whole, streamed = chat(url, *messages), chat(url, *messages, stream=True)
    assert whole.choices[0].message.content == task["empty"]
    assert "".join(chunk.choices[0].delta.content or "" for chunk in streamed) == task["empty"]
    assert streamed[-1].choices[0].finish_reason == "stop" and not whole.raydex["citations"]
    assert not recorder.rows and not recorder.failures


@pytest.mark.parametrize("reply", [Reply(status=500, error="broken"), Reply(status=400, error="too long"), Reply("")])
def test_failing_model_leaves_the_empty_reply(retriever: Retriever, reply: Reply) -> None:
    with ScriptedLLM(default=reply) as llm:
        engine = QueryEngine(retriever, llm=LLM("m", base_url=llm.url))
        with run_server(create_app(engine, FakeStore())) as url:  # type: ignore[arg-type]
            whole = chat(url, user(TITLE))
    assert json.loads(whole.choices[0].message.content) == {"title": ""}
    assert whole.raydex["degraded"] == ["llm:llm"]


def test_task_for_an_unknown_collection_is_refused(retriever: Retriever) -> None:
    with (
        run_server(create_app(QueryEngine(retriever), FakeStore())) as url,  # type: ignore[arg-type]
        pytest.raises(openai.NotFoundError),
    ):
        chat(url, user(TITLE), model="gpt-x")
