"""An answer whose model was cut off says so in every reply."""

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
from pipelines.llm.client import LLM, LLMSettings
from pipelines.llm.protocol import finish_reason
from serve.routes import create_app

HITS = [make_hit(f"https://d.test/csv#{n}", f"Load csv files in {n} steps.") for n in range(2)]
QUESTION = "How do I load csv files?"


@pytest.mark.parametrize(("ended", "reason"), [("length", "length"), (None, "length"), ("stop", "stop")])
def test_each_reply_says_whether_its_answer_was_cut_off(retriever: Retriever, ended: str | None, reason: str) -> None:
    with ScriptedLLM(default=Reply("Load csv fi", finish_reason=ended)) as llm:
        engine = QueryEngine(retriever, llm=LLM("scripted", base_url=llm.url))
        with run_server(create_app(engine, FakeStore())) as url, httpx.Client(base_url=url, timeout=60) as client:  # type: ignore[arg-type]
            # "accumulate" requests whole replies, "compact" a stream.
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


WORDS = [f"Load csv file {n} of the folder.\n\n" for n in range(600)]  # 20,000 characters without repetition
SHORT = LLMSettings(longest_reply=3_000)


@pytest.mark.parametrize("mode", ["compact", "accumulate"])
@pytest.mark.parametrize("deltas", [WORDS, ["".join(WORDS)]], ids=["in deltas", "in one piece"])
def test_endless_answer_is_cut_off_and_says_so(retriever: Retriever, deltas: list[str], mode: str) -> None:
    with ScriptedLLM(default=Reply(deltas=deltas)) as llm:
        engine = QueryEngine(retriever, llm=LLM("scripted", base_url=llm.url, settings=SHORT))
        with run_server(create_app(engine, FakeStore())) as url:  # type: ignore[arg-type]
            answer = httpx.post(f"{url}/query", json={"question": QUESTION, "mode": mode}, timeout=60).json()
    assert (answer["finish_reason"], answer["degraded"], answer["agent"]) == ("length", ["truncated"], "llm")
    assert "Load csv file 1 of the folder." in answer["answer"]
    calls = len(HITS) if mode == "accumulate" else 1
    assert len(answer["answer"]) < calls * (SHORT.longest_reply + 500)


@pytest.mark.parametrize("field", ["reasoning_content", "content"])
def test_endless_thoughts_are_cut_off_too(retriever: Retriever, field: str) -> None:
    thoughts = {"thoughts": WORDS} if field == "reasoning_content" else {"deltas": ["<think>", *WORDS]}
    with ScriptedLLM(default=Reply("Never.", **thoughts)) as llm:  # type: ignore[arg-type]
        engine = QueryEngine(retriever, llm=LLM("scripted", base_url=llm.url, settings=SHORT))
        with run_server(create_app(engine, FakeStore())) as url:  # type: ignore[arg-type]
            answer = httpx.post(f"{url}/query", json={"question": QUESTION}, timeout=60).json()
    assert answer["agent"] == "extractive" and "Never." not in answer["answer"]


def test_finish_reason_of_each_server_is_understood() -> None:
    assert {finish_reason(ended) for ended in ("stop", "eos_token", "tool_calls", "end_turn")} == {"stop"}
    assert {finish_reason(ended) for ended in (None, "", "length", "max_tokens", "model_length")} == {"length"}
    assert finish_reason("content_filter") == "content_filter"
