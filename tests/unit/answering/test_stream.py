"""Server-sent events: their order and kinds, failures before and after the first one, and leaving clients."""

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import httpx
import pytest
from fastapi.testclient import TestClient
from kit.api import TEXT, FakeEngine, FakeStore, MemoryRecorder, leave_when, run_server, wait_for

from pipelines.answering.events import Delta, pull
from pipelines.answering.writing.agents import StepUnavailable
from serve.routes import create_app

QUESTION = {"question": "How do I load csv files?"}
CHAT = {"model": "docs", "messages": [{"role": "user", "content": "csv?"}]}


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine(FakeStore())


@pytest.fixture
def recorder() -> MemoryRecorder:
    return MemoryRecorder()


@pytest.fixture
def client(engine: FakeEngine, recorder: MemoryRecorder) -> TestClient:
    return TestClient(create_app(engine, FakeStore(), recorder=recorder, observer=recorder))  # type: ignore[arg-type]


@pytest.fixture
def base(engine: FakeEngine, recorder: MemoryRecorder) -> Iterator[str]:
    with run_server(create_app(engine, FakeStore(), recorder=recorder, heartbeat_s=0.05)) as url:  # type: ignore[arg-type]
        yield url


def events(text: str) -> list[tuple[str, Any]]:
    """Return names and bodies of server-sent events."""
    blocks = [dict(line.split(": ", 1) for line in block.split("\n")) for block in text.strip().split("\n\n")]
    return [(block["event"], json.loads(block["data"])) for block in blocks]


def stream_events(client: TestClient, **more: Any) -> list[tuple[str, Any]]:
    reply = client.post("/query/stream", json={**QUESTION, **more})
    assert reply.status_code == 200 and reply.headers["content-type"].startswith("text/event-stream")
    return events(reply.text)


def test_events_are_hits_deltas_citations_and_the_whole_answer_in_order(client: TestClient) -> None:
    found = stream_events(client)
    assert [name for name, _ in found] == ["hits", "status", *["delta"] * 5, "citation", "answer"]
    assert found[0][1].keys() == {"hits", "index", "revision", "queries"}
    status = {"stage": "reading", "agent": "an agent", "passages": 1, "tokens": 200, "seconds": 3.5, "about": ""}
    assert found[1][1] == status
    assert "".join(body["text"] for name, body in found if name == "delta") == TEXT == found[-1][1]["answer"]
    assert found[-2][1] == found[-1][1]["citations"][0]


def test_last_event_equals_the_reply_of_query(client: TestClient) -> None:
    whole = stream_events(client, conversation="c")[-1][1]
    reply = client.post("/query", json={**QUESTION, "conversation": "c"}).json()
    assert {**whole, "id": ""} == {**reply, "id": ""}


def test_each_event_is_one_data_line_for_every_client(client: TestClient) -> None:
    text = client.post("/query/stream", json=QUESTION).text
    assert len(text.splitlines()) == len(text.split("\n")) - 1


def test_nan_score_becomes_null(client: TestClient, engine: FakeEngine) -> None:
    engine.hit = replace(engine.hit, score=float("nan"))
    found = stream_events(client)
    assert found[0][1]["hits"][0]["score"] is None and found[-1][1]["hits"][0]["score"] is None


def test_reset_delta_voids_the_text_before_it(client: TestClient, engine: FakeEngine) -> None:
    engine.resets = True
    deltas = [body for name, body in stream_events(client) if name == "delta"]
    assert deltas[0] == {"text": "never mind"} and deltas[1]["reset"] is True and "reset" not in deltas[2]


def test_late_failure_is_the_last_event(client: TestClient, engine: FakeEngine, recorder: MemoryRecorder) -> None:
    engine.fails_midway = StepUnavailable("the agent is full")
    name, body = stream_events(client)[-1]
    assert name == "error" and body["error"] == "the agent is full" and body["retry_after"] > 0
    engine.fails_midway = RuntimeError("secret")
    name, body = stream_events(client)[-1]
    assert name == "error" and "secret" not in str(body)
    assert recorder.rows == []


def test_streamed_answer_is_recorded(client: TestClient, recorder: MemoryRecorder) -> None:
    whole = stream_events(client)[-1][1]
    assert [row["answer"].id for row in recorder.rows] == [whole["id"]]  # type: ignore[attr-defined]
    assert [answer.id for answer in recorder.counted] == [whole["id"]] and len(recorder.first_deltas) == 1


# ---------------------------------------------------------------------------------------------- over real HTTP


def test_silent_stream_sends_heartbeats(base: str, engine: FakeEngine) -> None:
    engine.hangs = True
    with httpx.stream("POST", f"{base}/query/stream", json=QUESTION) as reply:
        assert "event: heartbeat" in reply.iter_lines()


@pytest.mark.parametrize(
    ("path", "body"),
    [("/query/stream", QUESTION), ("/v1/chat/completions", {**CHAT, "stream": True})],
)
def test_client_that_leaves_a_stream_cancels_its_question(base, engine, recorder, path, body):
    engine.hangs = True
    with httpx.stream("POST", base + path, json=body) as reply:
        next(reply.iter_bytes())
    assert engine.cancelled.wait(60) and recorder.rows == recorder.failures == []


@pytest.mark.parametrize(("path", "body"), [("/query", QUESTION), ("/v1/chat/completions", CHAT)])
def test_client_that_does_not_wait_for_its_answer_cancels_its_question(base, engine, recorder, path, body):
    engine.hangs = True
    leave_when(engine.hanging.is_set, base + path, body)
    assert engine.cancelled.wait(60) and recorder.rows == recorder.failures == []


def test_client_that_leaves_before_the_first_event_cancels_its_question(base: str, engine: FakeEngine) -> None:
    begun, cancelled = [], []

    async def search(ask: Any) -> Any:
        begun.append(ask)
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.append(ask)
            raise

    engine.asearch = search  # type: ignore[method-assign]
    leave_when(lambda: begun, f"{base}/query/stream", QUESTION)
    wait_for(lambda: cancelled and cancelled == begun)


# ---------------------------------------------------------------------------------------------- the reader


def test_one_task_starts_and_ends_the_work() -> None:
    tasks = []

    async def work(send: Callable[[Delta], None]) -> None:
        try:
            while True:
                tasks.append(asyncio.current_task())
                send(Delta("x"))
                await asyncio.sleep(0)
        finally:
            tasks.append(asyncio.current_task())

    async def read_in_two_tasks() -> None:
        deltas = pull(work)
        await asyncio.create_task(deltas.__anext__())
        await asyncio.create_task(deltas.__anext__())
        await deltas.aclose()
        await deltas.aclose()

    asyncio.run(read_in_two_tasks())
    assert len(tasks) >= 3 and len(set(tasks)) == 1
