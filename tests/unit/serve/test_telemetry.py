"""Telemetry for operators: every request has an id, is counted by route, and is one log line without secrets."""

import asyncio
import io
import json
import logging
from datetime import UTC, datetime
from typing import Any

import pytest
from fastapi import FastAPI, HTTPException, Request
from starlette.responses import JSONResponse
from starlette.testclient import TestClient

from pipelines.logs import LOGGERS, log_as_json, with_ids
from pipelines.records import Answer, Usage
from pipelines.store import Freshness, Key
from serve import telemetry
from serve.telemetry import Metrics, Telemetry, look_at_freshness, request_id


class CountingMetrics(Metrics):
    """Metrics that are recorded here instead of sent to Ray."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, int]] = []

    def count_request(self, route: str, status: int) -> None:
        self.requests.append((route, status))


def client(metrics: CountingMetrics | None = None) -> TestClient:
    app = FastAPI()

    @app.post("/query")
    async def query(request: Request) -> dict[str, Any]:
        request.state.key = Key("ci", ("query",))
        return {"id": request_id(), "state": request.state.request_id}

    @app.get("/items/{item}")
    async def item(item: str) -> dict[str, str]:
        return {}

    @app.get("/refused")
    async def refused() -> None:
        raise HTTPException(401)

    @app.get("/broken")
    async def broken() -> None:
        raise RuntimeError("boom")

    @app.get("/health")
    async def health() -> dict[str, str]:
        return {}

    return TestClient(Telemetry(app, metrics or CountingMetrics()), raise_server_exceptions=False)


def test_request_id_is_kept_and_a_malformed_one_replaced() -> None:
    asking = client()
    reply = asking.post("/query", headers={"X-Request-ID": "trace-1.a_B"})
    assert reply.headers["X-Request-ID"] == reply.json()["id"] == reply.json()["state"] == "trace-1.a_B"
    for mad in ("", "x" * 65, 'a"}{', "two words"):
        reply = asking.post("/query", headers={"X-Request-ID": mad})
        assert reply.headers["X-Request-ID"] == reply.json()["id"] != mad and len(reply.json()["id"]) == 32
    assert "X-Request-ID" in asking.get("/refused").headers
    assert request_id() == ""


def test_request_id_set_by_a_proxy_is_not_sent_twice() -> None:
    async def named(scope: Any, receive: Any, send: Any) -> None:
        await JSONResponse({"id": request_id()})(scope, receive, send)

    reply = TestClient(Telemetry(named, CountingMetrics(), reply_id=False)).get("/", headers={"X-Request-ID": "a"})
    assert "X-Request-ID" not in reply.headers and reply.json()["id"] == "a"


def test_requests_are_counted_by_path_pattern() -> None:
    asking = client(metrics := CountingMetrics())
    for path in ("/items/1", "/items/2", "/nowhere/3", "/broken", "/refused"):
        asking.get(path)
    expected = [("/items/{item}", 200), ("/items/{item}", 200), ("none", 404), ("/broken", 500), ("/refused", 401)]
    assert metrics.requests == expected


def test_client_that_leaves_before_its_reply_is_counted_as_gone() -> None:
    metrics = CountingMetrics()

    async def silent(scope: Any, receive: Any, send: Any) -> None: ...

    scope = {"type": "http", "method": "POST", "path": "/query", "headers": []}
    asyncio.run(Telemetry(silent, metrics)(scope, None, None))  # type: ignore[arg-type]
    assert metrics.requests == [("none", 499)]


@pytest.fixture
def lines() -> Any:
    """Return the objects in the JSON lines that `serve` logs."""
    stream = io.StringIO()
    loggers = [logging.getLogger(name) for name in LOGGERS]
    before = [(logger.handlers, logger.level, logger.propagate) for logger in loggers]
    log_as_json(stream)
    yield lambda: [json.loads(line) for line in stream.getvalue().splitlines()]
    for logger, (handlers, level, propagate) in zip(loggers, before, strict=True):
        logger.handlers, logger.propagate = handlers, propagate
        logger.setLevel(level)


def test_request_is_one_log_line_without_question_or_secret(lines: Any) -> None:
    headers = {"Authorization": "Bearer rdx_secret", "X-Request-ID": "r1"}
    client().post("/query?token=hidden", content=b"my question", headers=headers)
    (line,) = lines()
    assert (line["request_id"], line["route"], line["status"], line["key"]) == ("r1", "/query", 200, "ci")
    assert line["level"] == "info" and line["seconds"] >= 0
    assert not any(secret in json.dumps(line) for secret in ("question", "hidden", "rdx_secret"))


def test_probes_are_not_logged_unless_they_fail(lines: Any) -> None:
    client().get("/health")
    assert lines() == []


def test_log_lines_in_threads_of_a_request_have_its_id_on_one_line(lines: Any) -> None:
    log = logging.getLogger("pipelines.answering.retrieval.retriever")

    async def answering() -> None:
        await asyncio.to_thread(log.warning, "two\nlines", extra={"leg": "bm25"})

    with with_ids(request_id="r2"):
        asyncio.run(answering())
    try:
        raise ValueError("bad")
    except ValueError:
        log.exception("failed %s", "again")
    first, second = lines()
    assert (first["request_id"], first["message"], first["leg"]) == ("r2", "two\nlines", "bm25")
    assert second["message"] == "failed again" and "request_id" not in second
    assert "ValueError: bad" in second["exception"]


def test_setting_up_logging_twice_writes_each_line_once(lines: Any) -> None:
    stream = io.StringIO()
    log_as_json(io.StringIO())
    log_as_json(stream)
    logging.getLogger("serve.x").info("once")
    assert len(stream.getvalue().splitlines()) == 1


def test_counting_needs_no_cluster_and_never_raises(caplog: pytest.LogCaptureFixture) -> None:
    metrics = telemetry.process_metrics()
    answer = Answer("q", "a", "extractive", (), (), ("bm25",), {"retrieve": 0.1}, 1, 1, usage=Usage(10, 0, 1, 0.5))
    metrics.count_answer(answer)
    metrics.count_request("/query", 200)
    metrics.observe_first_delta(0.01)
    assert caplog.records == []
    metrics.observe_first_delta("not a number")  # type: ignore[arg-type]
    assert "not counted" in caplog.text


def test_freshness_of_each_collection_is_shown_except_for_copies():
    checked = datetime(2026, 1, 2, tzinfo=UTC)

    class Shown(Metrics):
        def __init__(self) -> None:
            self._fresh = {name: self for name in ("check", "run", "failing")}  # type: ignore[assignment]
            self.values: list[tuple[float, str]] = []

        def set(self, value: float, tags: dict[str, str]) -> None:
            self.values.append((value, tags["collection"]))

    class Collections:
        def collections(self) -> list[dict[str, str]]:
            return [{"name": "docs"}, {"name": "docs@1"}, {"name": "new"}]

        def freshness(self, name: str) -> Freshness:
            return Freshness(checked, None, 2) if name == "docs" else Freshness()

    shown = Shown()
    for name, freshness in look_at_freshness(Collections()).items():  # type: ignore[arg-type]
        shown.show_freshness(name, freshness)
    assert shown.values == [(checked.timestamp(), "docs"), (2, "docs"), (0, "new")]
