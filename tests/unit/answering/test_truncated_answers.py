"""An answer whose model was cut off says so, in every reply: it is never passed off as whole."""

import json
from typing import Any

import httpx
import openai
import pytest
from kit.answering import make_hit
from kit.api import FakeStore, run_server
from kit.scripted_llm import Reply, ScriptedLLM

from pipelines.answering.engine import QueryEngine
from pipelines.answering.retrieval.retriever import Retriever
from pipelines.llm.client import LLM
from pipelines.llm.protocol import finish_reason
from serve.routes import create_app

HITS = [make_hit(f"https://d.test/csv#{n}", f"Load csv files in {n} steps.") for n in range(2)]
QUESTION = "How do I load csv files?"


@pytest.mark.parametrize(("ended", "reason"), [("length", "length"), (None, "length"), ("stop", "stop")])
def test_each_reply_says_whether_its_answer_was_cut_off(retriever: Retriever, ended: str | None, reason: str) -> None:
    with ScriptedLLM(default=Reply("Load csv fi", finish_reason=ended)) as llm:
        engine = QueryEngine(retriever, llm=LLM("scripted", base_url=llm.url))
        with run_server(create_app(engine, FakeStore())) as url, httpx.Client(base_url=url, timeout=60) as client:  # type: ignore[arg-type]
            # "accumulate" asks for whole replies, "compact" for a stream.
            bodies = [{"question": QUESTION, "mode": mode} for mode in ("accumulate", "compact")]
            answers = [client.post("/query", json=body).json() for body in bodies]
            event, data = client.post("/query/stream", json=bodies[1]).text.strip().split("\n\n")[-1].split("\n")
            chat = openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0).chat.completions
            asked: Any = {"model": "docs", "messages": [{"role": "user", "content": QUESTION}]}
            ends = [chat.create(**asked).choices[0], list(chat.create(**asked, stream=True))[-1].choices[0]]
    assert event == "event: answer"
    for answer in (*answers, json.loads(data.removeprefix("data: "))):
        assert (answer["finish_reason"], answer["degraded"]) == (reason, ["truncated"] if reason == "length" else [])
        assert "Load csv fi" in answer["answer"] and answer["agent"] == "llm"
    assert [end.finish_reason for end in ends] == [reason, reason]


def test_the_reason_of_each_server_is_understood() -> None:
    assert {finish_reason(ended) for ended in ("stop", "eos_token", "tool_calls", "end_turn")} == {"stop"}
    assert {finish_reason(ended) for ended in (None, "", "length", "max_tokens", "model_length")} == {"length"}
    assert finish_reason("content_filter") == "content_filter"
