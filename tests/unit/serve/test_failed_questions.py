"""A question without an answer leaves one row with the reason; an invalid request leaves none."""

import json
from typing import Any

import pytest
from fastapi.testclient import TestClient
from kit.guarded import with_key

from pipelines.answering.retrieval.live import ModelNotReady
from pipelines.answering.synthesis.prompts import TemplateError
from pipelines.answering.writing.agents import StepUnavailable
from pipelines.store import Key, StoreUnavailable

WORDS = "How do I load csv files?"
WAYS = ["query", "query/stream", "chat", "chat streamed"]


@pytest.fixture
def client(app, engine, recorder) -> TestClient:
    return TestClient(with_key(app, Key("team", ("query",))))


def ask(client: TestClient, way: str, collection: str = "docs", **more: Any) -> Any:
    """Ask in one of the four ways, in the conversation c1."""
    if way.startswith("query"):
        return client.post(f"/{way}", json={"question": WORDS, "collection": collection, "conversation": "c1", **more})
    body = {"model": collection, "messages": [{"role": "user", "content": WORDS}], "stream": way == "chat streamed"}
    return client.post("/v1/chat/completions", json={**body, "raydex": {"conversation": "c1", **more}})


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("error", [
    StoreUnavailable("gone"), ModelNotReady("m"), StepUnavailable("the agent is full"), TimeoutError(),
    RuntimeError("a bug"), TemplateError("the template qa does not use: tone"),
], ids=lambda error: type(error).__name__)  # fmt: skip
def test_failed_question_is_recorded_once_with_its_error(client, engine, recorder, way, error):
    engine.fails = error
    reply = ask(client, way, mode="refine")
    assert reply.status_code >= 400
    (row,) = recorder.failures
    assert recorder.rows == [] and row["id"] == engine.asks[0].id and row["question"] == WORDS
    assert row["error"] == f"{type(error).__name__}: {error}"
    assert (row["collection"], row["conversation"], row["mode"], row["key_name"]) == ("docs", "c1", "refine", "team")


@pytest.mark.parametrize("way", ["query/stream", "chat streamed"])
@pytest.mark.parametrize("error", [StepUnavailable("the agent is full"), RuntimeError("a bug")], ids=repr)
def test_broken_stream_is_recorded_once_under_its_announced_id(client, engine, recorder, way, error):
    engine.fails_midway = error
    reply = ask(client, way)
    assert reply.status_code == 200 and (str(error) in reply.text) == isinstance(error, StepUnavailable)
    (row,) = recorder.failures
    assert row["error"] == f"{type(error).__name__}: {error}" and recorder.rows == []
    if way == "chat streamed":
        assert json.loads(reply.text.splitlines()[0].removeprefix("data: "))["id"] == f"chatcmpl-{row['id']}"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("refused", [{"collection": "nope"}, {"mode": "haiku"}])
def test_question_refused_by_the_engine_is_recorded(client, recorder, way, refused):
    assert ask(client, way, **refused).status_code in (400, 404, 422)
    assert len(recorder.failures) == 1 and recorder.rows == []


@pytest.mark.parametrize("way", WAYS)
def test_answers_and_invalid_requests_are_not_failures(client, recorder, way):
    assert ask(client, way, k=0).status_code in (400, 422)
    assert recorder.failures == recorder.rows == []
    assert ask(client, way).status_code == 200
    assert len(recorder.rows) == 1 and recorder.failures == []
