"""Traces: a question is one trace from its request to the model calls, and costs nothing without a collector."""

import json
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from contextvars import Context
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from kit.answering import MemoryStore, WordEmbedder, make_hit
from kit.api import FakeStore
from kit.collector import Collector, SentSpan, traced
from kit.guarded import SilentMetrics
from kit.scripted_llm import Reply, ScriptedLLM
from kit.scripted_server import HANG, ScriptedServer
from starlette.testclient import TestClient

from pipelines import tracing
from pipelines.answering.engine import QueryEngine
from pipelines.answering.reranking.http import HTTPReranker
from pipelines.answering.retrieval.retriever import Retriever
from pipelines.lexical import LexicalIndex
from pipelines.llm.client import LLM
from pipelines.logs import JsonLines
from serve.guard.policy import Policy, protect
from serve.routes import create_app

HITS = [make_hit(f"https://d.test/csv#{n}", f"Load csv files in {n} steps.") for n in range(3)]
QUESTION = "How are csv files loaded?"
TRACE, CALLER = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
GIVEN = {"traceparent": f"00-{TRACE}-{CALLER}-01", "X-Request-ID": "r-1"}
SERVER, CLIENT, FAILED = 2, 3, 2


@pytest.fixture(scope="module")
def llm() -> Iterator[ScriptedLLM]:
    with ScriptedLLM() as server:
        yield server


@pytest.fixture(scope="module")
def service(llm: ScriptedLLM, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    lexical = LexicalIndex(tmp_path_factory.mktemp("lexical"))
    with closing(Retriever(MemoryStore(*HITS), lambda _: WordEmbedder(), lambda _: lexical)) as retriever:
        retriever.prepare()
        model = LLM("scripted", base_url=llm.url)
        engine = QueryEngine(retriever, llm=model, reranker=HTTPReranker(llm.url, "scripted"))
        store: Any = FakeStore()
        app = protect(create_app(engine, store), store, Policy(), SilentMetrics())
        with TestClient(app, base_url="http://127.0.0.1", client=("127.0.0.1", 5)) as client:
            yield client


def ask(service: TestClient, path: str = "/query", **headers: str) -> Any:
    """Return the reply to QUESTION once all of its spans have ended."""
    return service.post(path, json={"question": QUESTION}, headers=headers).raise_for_status()


def calls(collector: Collector) -> list[SentSpan]:
    """Return the spans of model calls."""
    return [span for span in collector.spans if span.kind == CLIENT]


def test_question_is_one_trace_from_its_request_to_the_model_calls(service: TestClient) -> None:
    with traced() as collector:
        reply = ask(service, **GIVEN)
    ((request, ((question, (read, find, write)),)),) = collector.tree(CALLER)
    assert (request, question, read) == ("POST /query", "invoke_agent raydex", ("read", []))
    assert find[0] == "find" and [name for name, _ in find[1]] == ["route", "retrieve", "rerank"]
    parts = dict(find[1])["retrieve"]  # BM25 works before the search, or while the store searches
    assert {name for name, _ in chain(parts, dict(parts)["search"])} >= {"embed", "bm25", "search", "fuse", "rank"}
    assert write == ("write", [("synthesize", [("chat scripted", [])]), ("cite", [])])
    assert {span.trace for span in collector.spans} == {TRACE} == {reply.headers["X-Trace-ID"]}
    assert all(span.began < span.ended and not span.status for span in collector.spans)
    first, *_ = collector.spans
    assert first.kind == SERVER and first.attributes["http.response.status_code"] == 200
    assert first.attributes["raydex.request_id"] == reply.headers["X-Request-ID"] == "r-1"
    assert first.attributes["gen_ai.conversation.id"] == reply.json()["conversation"]


def test_model_and_reranker_endpoints_continue_the_trace(service: TestClient, llm: ScriptedLLM) -> None:
    llm.requests.clear()
    with traced() as collector:
        ask(service, **GIVEN)
    callers = [next(span for span in collector.spans if span.name == "rerank"), *calls(collector)]
    sent = [request.headers["traceparent"] for request in llm.requests]
    assert sent == [f"00-{TRACE}-{caller.id}-01" for caller in callers] and len(sent) == 2


def test_model_call_has_the_names_that_langfuse_and_phoenix_read(service: TestClient, llm: ScriptedLLM) -> None:
    with traced(OTEL_SERVICE_NAME="docs", OTEL_RESOURCE_ATTRIBUTES="team=web") as collector:
        ask(service)
    call = calls(collector)[-1]
    assert call.name == "chat scripted" and (call.resource["service.name"], call.resource["team"]) == ("docs", "web")
    assert call.attributes | {"gen_ai.usage.input_tokens": 0} == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "scripted",
        "gen_ai.request.max_tokens": 1024,
        "gen_ai.request.temperature": 0.0,
        "gen_ai.request.stream": True,
        "gen_ai.usage.input_tokens": 0,
        "gen_ai.usage.output_tokens": 2,
        "gen_ai.response.finish_reasons": ["stop"],
        "server.address": "127.0.0.1",
        "server.port": int(llm.url.split(":")[2].partition("/")[0]),
        "raydex.cost": 0.0,
    }


def test_request_without_a_trace_starts_one_and_a_stream_names_it(service: TestClient) -> None:
    with traced() as collector:
        stream = ask(service, "/query/stream")
        mad = ask(service, traceparent="00-no-trace-01")
    roots = [span for span in collector.spans if not span.parent]
    assert [span.name for span in roots] == ["POST /query/stream", "POST /query"]
    assert [span.trace for span in roots] == [reply.headers["X-Trace-ID"] for reply in (stream, mad)]
    assert sum(name == "invoke_agent raydex" for ((name, _),) in (collector.tree(root.id) for root in roots)) == 2


def test_no_text_is_sent_unless_enabled(service: TestClient, llm: ScriptedLLM) -> None:
    with traced() as collector:
        ask(service)
        llm.default = Reply(status=400, error="How are csv files loaded?")  # like a server that quotes the prompt
        ask(service)
    llm.default = Reply()
    sent = b"".join(post.body for post in collector.posts)
    assert b"csv" not in sent and b"Scripted" not in sent


def test_texts_are_sent_in_the_format_of_the_conventions_if_enabled(service: TestClient) -> None:
    with traced(OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT="true") as collector:
        ask(service)
    question = next(span for span in collector.spans if span.name == "invoke_agent raydex")
    asked = json.loads(question.attributes["gen_ai.input.messages"])
    assert asked == [{"role": "user", "parts": [{"type": "text", "content": QUESTION}]}]
    call = calls(collector)[-1]
    assert "Load csv files" in json.loads(call.attributes["gen_ai.input.messages"])[-1]["parts"][0]["content"]
    ((said,),) = (each["parts"] for each in json.loads(call.attributes["gen_ai.output.messages"]))
    assert said == {"type": "text", "content": "Scripted answer."}


def test_failed_call_is_visible(service: TestClient, llm: ScriptedLLM) -> None:
    llm.default = Reply(status=401)
    with traced() as collector:
        assert "llm:llm" in ask(service).json()["degraded"]
    llm.default = Reply()
    call = calls(collector)[-1]
    assert (call.status, call.attributes["error.type"]) == (FAILED, "LLMKeyRefused")


def test_unsampled_trace_is_not_sent_and_the_model_is_told(service: TestClient, llm: ScriptedLLM) -> None:
    llm.requests.clear()
    with traced() as collector:
        ask(service, traceparent=GIVEN["traceparent"][:-2] + "00")
    assert collector.spans == []
    assert {request.headers["traceparent"][-3:] for request in llm.requests} == {"-00"}


def test_hanging_collector_delays_neither_answer_nor_shutdown(service: TestClient) -> None:
    with ScriptedServer({"/v1/traces": lambda _: HANG}) as hanging, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", hanging.url)
        patch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "1")  # it hangs during the question
        patch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.1")
        before = set(threading.enumerate())
        tracing.start(os.environ)
        (sending,) = set(threading.enumerate()) - before
        assert ask(service).json()["answer"]
        tracing.stop(within_s=0.01)
        assert not hanging.over.is_set()
    sending.join()  # otherwise it logs failures in the middle of other tests


def test_step_in_another_process_continues_the_trace() -> None:
    with traced() as collector:
        with tracing.span("question", root=True):
            carried = tracing.headers()

        def replica() -> None:
            with tracing.span("retriever", parent=carried), tracing.span("embed"):
                pass

        Context().run(replica)
        Context().run(lambda: tracing.span("stray", parent={}).__enter__())
    assert collector.tree() == [("question", [("retriever", [("embed", [])])])]


def test_log_lines_name_the_trace() -> None:
    record = logging.makeLogRecord({"msg": "seen"})
    with traced(), tracing.span("question", root=True):
        assert json.loads(JsonLines().format(record))["trace_id"] == tracing.trace_id() != ""
    assert "trace_id" not in json.loads(JsonLines().format(record))


def test_nothing_is_imported_or_recorded_without_a_collector() -> None:
    code = """
import sys
from pipelines import tracing
named = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}
for more in ({"OTEL_EXPORTER_OTLP_ENDPOINT": ""}, {"OTEL_SDK_DISABLED": "true"}, {"OTEL_TRACES_EXPORTER": "none"}):
    tracing.start(named | more)
    with tracing.span("question", root=True) as span:
        assert span is None and not tracing.headers() and not tracing.trace_id()
tracing.stop()
assert not [name for name in sys.modules if name.startswith("opentelemetry")]
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[3])
