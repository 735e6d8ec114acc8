"""Replies of real providers that differ from OpenAI's still give a reader the model's answer."""

import asyncio
import json
import time
from typing import Any

import pytest
from kit.answering import make_hit
from kit.scripted_llm import Reply, Request, ScriptedLLM, in_turn

from pipelines.answering.reranking.http import HTTPReranker
from pipelines.answering.synthesis.base import Task
from pipelines.answering.writing.agents import AgentResult, LLMAgent
from pipelines.embedding.openai import OpenAIEmbedder, count_for_openai
from pipelines.llm.client import LLM, LLMSettings
from pipelines.llm.errors import ContextTooLong, LLMBusy, LLMFailed
from pipelines.llm.servers.http import ask as ask_server
from pipelines.records import Message

HELLO = (Message("system", "Be brief."), Message("user", "Say hello."))


def delta(content: Any, ended: str | None = None) -> str:
    choice = {"index": 0, "delta": {"content": content}, "finish_reason": ended}
    return f"data: {json.dumps({'choices': [choice]})}\n\n"


def ask(server: ScriptedLLM, *, times: int = 1, **settings: Any) -> str:
    """Return the text of the last of `times` answers from one client."""

    async def run() -> str:
        llm = LLM("scripted", base_url=server.url, settings=LLMSettings(**settings))
        try:
            texts = [(await llm.complete(HELLO)).text for _ in range(times)]
        finally:
            await llm.close()
        return texts[-1]

    return asyncio.run(run())


HI, LO, END = delta("Hel"), delta("lo."), delta("", "stop") + "data: [DONE]\n\n"
NO_MESSAGES = ("retry: 3000\n\n", "id: 7\n\n", "event: ping\n\n", "data:\n\n", ": keep-alive\n\n", "data: ping\n\n",
               'event: ping\ndata: {"type": "ping"}\n\n')  # fmt: skip


@pytest.mark.parametrize("noise", NO_MESSAGES)
def test_events_without_json_are_ignored_everywhere(noise: str) -> None:
    for raw in (noise + HI + LO + END, HI + noise + LO + END, HI + LO + noise + END, HI + LO + END + noise):
        with ScriptedLLM(default=Reply(raw=raw)) as server:
            assert ask(server) == "Hello."


@pytest.mark.parametrize("kind", ["application/json", "text/plain", "application/octet-stream"])
def test_stream_is_recognized_despite_its_media_type(kind: str) -> None:
    with ScriptedLLM(default=Reply(raw=HI + LO + END, media_type=kind)) as server:
        assert ask(server) == "Hello."


def test_whole_reply_is_recognized_despite_its_media_type() -> None:
    whole = json.dumps({"choices": [{"message": {"content": "Hello."}, "finish_reason": "stop"}]})
    with ScriptedLLM(default=Reply(raw=whole, media_type="text/event-stream")) as server:
        assert ask(server) == "Hello."


@pytest.mark.parametrize("content", [["Hel", "lo."], [{"type": "text", "text": "Hello."}], ["Hel", {"text": "lo."}]])
def test_content_parts_can_be_strings(content: list[Any]) -> None:
    with ScriptedLLM(default=Reply(raw=delta(content) + END)) as server:
        assert ask(server) == "Hello."


@pytest.mark.parametrize("raw", [
    'event: error\ndata: {"message": "no such deployment"}\n\n',
    "event: error\ndata: no such deployment\n\n",
    'data: {"type": "error", "error": {"type": "not_found_error", "message": "no such deployment"}}\n\n',
    '{"error": {"message": "no such deployment"}}', '[{"error": {"message": "no such deployment"}}]',
    '{"detail": "no such deployment"}', '{"errors": [{"code": 7000, "message": "no such deployment"}]}',
    '{"base_resp": {}, "error_code": 3, "error_msg": "no such deployment"}',
])  # fmt: skip
def test_error_with_status_200_is_reported_in_the_words_of_the_provider(raw: str) -> None:
    with ScriptedLLM(default=Reply(raw=raw)) as server, pytest.raises(LLMFailed, match="no such deployment"):
        ask(server)
    assert len(server.asked) == 1


@pytest.mark.parametrize("raw", [
    'event: error\ndata: {"error": {"message": "Rate limit reached, try again in 10ms", "code": "rate_limit"}}\n\n',
    'data: {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded. Retry in 10ms"}}\n\n',
    '{"error": {"code": 429, "message": "Provider returned error", "metadata": {"retry_after_ms": 0}}}',
    '{"code": "Throttling.RateQuota", "message": "Requests throttled, try again in 10ms"}',
])  # fmt: skip
def test_temporary_error_with_status_200_is_retried(raw: str) -> None:
    with ScriptedLLM(default=in_turn(Reply(raw=raw), "Hello.")) as server:
        assert ask(server) == "Hello."
    with ScriptedLLM(default=Reply(raw=raw)) as server, pytest.raises(LLMBusy):
        ask(server, retries=1)
    assert len(server.asked) == 2


QUOTA = {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "Quota exceeded.", "details": [{"retryDelay": "0.6s"}]}


@pytest.mark.parametrize("error", [
    {"error": QUOTA}, {"error": {"message": "Rate limit reached. Please try again in 600ms."}},
    {"message": "Too many requests", "retry_after": 0.6},
])  # fmt: skip
def test_retry_time_is_taken_from_the_body(error: dict[str, Any]) -> None:
    refusal = Reply(raw=json.dumps(error), status=429)
    with ScriptedLLM(default=in_turn(refusal, refusal, "Hello.")) as server:
        began = time.monotonic()
        assert ask(server) == "Hello."
    assert time.monotonic() - began >= 1.2


# ---------------------------------------------------------------------------------------------- the system role


@pytest.mark.parametrize(("status", "words"), [
    (400, "System role not supported"),  # Gemma's template in vLLM
    (500, "System role not supported"),  # the same in llama.cpp
    (400, "Unsupported value: 'messages[0].role' does not support 'system' with this model."),  # o1-mini
    (400, "Developer instruction is not enabled for models/gemma-3-27b-it"),  # Gemini
    (400, "This model doesn't support system messages. Try again without a system message."),  # Bedrock
    (400, "Conversation roles must alternate user/assistant/user/assistant/..."),  # Mistral's first template
    (422, "messages.0.role: only 'user' and 'assistant' roles are supported"),
])  # fmt: skip
def test_model_without_a_system_role_gets_the_prompt_in_the_first_question(status: int, words: str) -> None:
    def has_system(request: Request) -> bool:
        return bool(request.system)

    with ScriptedLLM([(has_system, Reply(status=status, error={"message": words}))], default="Hello.") as server:
        assert ask(server, times=2) == "Hello."
    assert [bool(request.system) for request in server.asked] == [True, False, False]  # remembered
    assert server.asked[-1].messages == [{"role": "user", "content": "Be brief.\n\nSay hello."}]


def test_model_that_refuses_the_system_prompt_everywhere_is_asked_twice() -> None:
    refusal = Reply(status=400, error={"message": "System role not supported"})
    with ScriptedLLM(default=refusal) as server, pytest.raises(LLMFailed, match="System role not supported"):
        ask(server)
    assert len(server.asked) == 2


# ---------------------------------------------------------------------------------------------- a short window

TASK = Task("How?", tuple(make_hit(f"h{n}", text=f"Passage {n}. " + "words " * 500) for n in range(5)))


def answer(server: ScriptedLLM) -> list[Any]:
    async def run() -> list[Any]:
        agent = LLMAgent("model", LLM("scripted", base_url=server.url, settings=LLMSettings(max_tokens=64)))
        return [part async for part in agent.answer(TASK)]

    return asyncio.run(run())


@pytest.mark.parametrize(("status", "words"), [
    (400, "Input is too long for requested model."),
    (400, "This model's maximum prompt length is 2000 but the request contains {n} tokens."),
    (413, "Request body too large. Max size: 2000 tokens."),
    (400, "Your request exceeded model token limit: 2000 (requested: {n})"),
    (413, "Request too large on tokens per minute (TPM): Limit 2000, Requested {n}, please reduce your message size."),
    (200, "the request exceeds the available context size"),
])  # fmt: skip
def test_too_long_question_is_retried_with_less_context(status: int, words: str) -> None:
    def is_long(request: Request) -> bool:
        return len(request.text.split()) > 1500

    refused = []

    def refuse(request: Request) -> Reply:
        refused.append(request)
        message = words.format(n=2 * len(request.text.split()))
        if status == 200:
            return Reply(raw=f'data: {{"error": {{"message": "{message}"}}}}\n\n')
        return Reply(status=status, error={"message": message})

    with ScriptedLLM([(is_long, refuse)], default="It is so [1].") as server:
        *parts, result = answer(server)
    assert "".join(part for part in parts if isinstance(part, str)) == "It is so [1]."
    assert isinstance(result, AgentResult) and not result.failed and result.usage.calls == len(server.asked)
    assert 1 <= len(refused) <= 3


def test_server_that_finds_everything_too_long_is_left_after_a_few_tries() -> None:
    refusal = Reply(status=400, error={"message": "prompt is too long"})
    with ScriptedLLM(default=refusal) as server:
        *_, result = answer(server)
    assert "prompt is too long" in result.failed
    assert len(server.asked) <= 4


def test_stated_limit_is_the_window_from_then_on() -> None:
    async def learn(llm: LLM) -> tuple[int, int]:
        with pytest.raises(ContextTooLong) as failed:
            await llm.complete(HELLO)
        assert failed.value.limit == 1000
        return llm.context_window, llm.max_tokens

    refusal = Reply(status=400, error={"message": "maximum context length is 1000 tokens"})
    with ScriptedLLM(default=refusal) as server:
        assert asyncio.run(learn(LLM("scripted", base_url=server.url))) == (1000, 500)


# ---------------------------------------------------------------------------------------------- proxies


def test_local_model_is_reached_without_the_configured_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    with ScriptedLLM(default="From a proxy.") as proxy, ScriptedLLM(default="Hello.") as server:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url.removesuffix("/v1"))
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        assert ask(server) == "Hello."
        embedder = OpenAIEmbedder(count_for_openai("openai:scripted"), server.url, None)
        assert embedder.embed_chunks(["a"]).shape == (1, 64)
        reranker = HTTPReranker(server.url, "scripted")
        assert asyncio.run(reranker.rerank("a", TASK.hits))
        assert ask_server(server.url, "/models")["data"]
    assert not proxy.requests and len(server.requests) == 4
