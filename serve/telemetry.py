"""What an operator sees: metrics on Ray's Prometheus endpoint, and a line of JSON for every request and log record.

Each request has an id (`X-Request-ID`), which its log lines and its reply carry. Metrics stand at the endpoint with
Ray's prefix (`ray_raydex_requests_total`); outside a cluster they are counted and go nowhere. A histogram's `_sum` is
what Ray makes of the buckets, so read quantiles from it, not means.
"""

import contextlib
import functools
import json
import logging
import re
import sys
import time
import uuid
from collections.abc import Iterator
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import IO, Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pipelines.records import Answer

log = logging.getLogger(__name__)

REQUEST_ID = "X-Request-ID"
SANE_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
# Seconds. A step takes between a millisecond (HNSW) and what a slow language model needs; each bound ≈ 2.5 times the
# one before it, which is as exact as a quantile is asked for.
SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0]
PROBES = ("/health", "/health/ready")
# nginx's number for a client that went away before its answer began.
GONE = 499

_request_id: ContextVar[str] = ContextVar("request_id", default="")


# ------------------------------------------------------------------------------------------------ metrics


class Metrics:
    """Counters and histograms of one process. Counting never raises: no answer is lost to its metrics."""

    def __init__(self) -> None:
        from ray.util.metrics import Counter, Histogram

        self._requests = Counter("raydex_requests_total", "Requests by route and status", ("route", "status"))
        self._steps = Histogram("raydex_step_seconds", "Latency of each step of an answer", SECONDS, ("step",))
        self._tokens = Counter("raydex_tokens_total", "Tokens of language models", ("agent", "kind"))
        self._cost = Counter("raydex_cost_dollars_total", "Price of language models in US dollars", ("agent",))
        self._degraded = Counter("raydex_degraded_total", "Answers that went without a part", ("part",))
        self._first_delta = Histogram("raydex_time_to_first_delta_seconds", "Until a stream's first word", SECONDS)

    def request(self, route: str, status: int) -> None:
        """Count one request; `route` is the path's pattern, never the path (labels must stay few)."""
        with _quietly():
            _add(self._requests, 1, route=route, status=str(status))

    def answered(self, answer: Answer) -> None:
        """Count an answer: its steps, tokens, cost and what it went without."""
        with _quietly():
            for step, seconds in answer.timings.items():
                self._steps.observe(float(seconds), {"step": step})
            _add(self._tokens, answer.usage.prompt_tokens, agent=answer.agent, kind="prompt")
            _add(self._tokens, answer.usage.completion_tokens, agent=answer.agent, kind="completion")
            _add(self._cost, answer.usage.cost, agent=answer.agent)
            for part in answer.degraded:
                _add(self._degraded, 1, part=part.partition(":")[0])

    def first_delta(self, seconds: float) -> None:
        """Note how long after its question a stream's first delta left."""
        with _quietly():
            self._first_delta.observe(float(seconds))


@functools.cache
def metrics() -> Metrics:
    """The metrics of this process."""
    return Metrics()


def _add(counter: Any, value: float, **tags: str) -> None:
    if value > 0:  # Ray refuses to add nothing
        counter.inc(value, tags)


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    try:
        yield
    except Exception:
        log.warning("a metric was not counted", exc_info=True)


# ------------------------------------------------------------------------------------------------ requests


class Telemetry:
    """ASGI middleware: gives each request its id, and counts and logs it when its reply has ended.

    What is logged of a request is method, path, route, status, time and the name of its key: no question, no query
    string, no header. Ray Serve's own proxy puts the id on the reply itself: behind it `reply_id` is False, or the
    header would stand there twice.
    """

    def __init__(self, app: ASGIApp, counted: Metrics | None = None, reply_id: bool = True) -> None:
        self._app, self._metrics, self._reply_id = app, counted or metrics(), reply_id

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status = time.perf_counter(), GONE
        id = sane_id(Headers(scope=scope).get(REQUEST_ID, ""))
        scope["state"] = {**(scope.get("state") or {}), "request_id": id}

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                if self._reply_id:
                    MutableHeaders(scope=message)[REQUEST_ID] = id
            await send(message)

        with with_request_id(id):
            try:
                await self._app(scope, receive, noted)
            except Exception:
                status = 500
                raise
            finally:
                self._done(scope, status, time.perf_counter() - started)

    def _done(self, scope: Scope, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "none")
        self._metrics.request(route, status)
        level = logging.DEBUG if scope["path"].endswith(PROBES) and status < 400 else logging.INFO
        more = {
            "method": scope["method"],
            "path": scope["path"][:200],
            "route": route,
            "status": status,
            "seconds": round(seconds, 4),
            "key": getattr(scope["state"].get("key"), "name", ""),
        }
        log.log(level, "%s %s %s", more["method"], more["path"], status, extra=more)


def sane_id(given: str) -> str:
    """`given` if it is a plain short id, else a new one: nobody writes lines of their own into the log."""
    return given if SANE_ID.fullmatch(given) else uuid.uuid4().hex


def request_id() -> str:
    """The id of the request being answered, "" outside one."""
    return _request_id.get()


@contextlib.contextmanager
def with_request_id(id: str) -> Iterator[None]:
    """Log lines inside carry `id`: for work of a request that another process or thread does."""
    before = _request_id.set(id)
    try:
        yield
    finally:
        _request_id.reset(before)


# ------------------------------------------------------------------------------------------------ logs


class RequestIdFilter(logging.Filter):
    """Puts the request's id on every record that passes."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.request_id = request_id()
        return True


class JsonLines(logging.Formatter):
    """A record as one line of JSON: time (UTC), level, logger, message, request_id, and what came as `extra`."""

    ORDINARY = frozenset({*logging.makeLogRecord({}).__dict__, "message", "asctime", "request_id", "taskName"})

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "request_id": getattr(record, "request_id", ""),
            **{name: value for name, value in record.__dict__.items() if name not in self.ORDINARY},
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str, ensure_ascii=True)


def log_as_json(stream: IO[str] | None = None, level: int = logging.INFO) -> None:
    """Write what Raydex logs as JSON lines to `stream` (standard error); called again, it replaces what it set."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines())
    handler.addFilter(RequestIdFilter())
    for name in ("serve", "pipelines"):
        logger = logging.getLogger(name)
        logger.handlers = [kept for kept in logger.handlers if not isinstance(kept.formatter, JsonLines)] + [handler]
        logger.setLevel(level)
        logger.propagate = False
