"""Metrics on Ray's Prometheus endpoint, and a log line and a span for every request.

Each request has an id (`X-Request-ID`), which is in its log lines and its reply. The endpoint shows the metrics with
Ray's prefix (`ray_raydex_requests_total`); outside a cluster they are discarded. Ray estimates a histogram's `_sum`
from its buckets, so read quantiles from it, not means.
"""

import contextlib
import functools
import logging
import re
import threading
import time
import uuid
from collections.abc import Iterator
from itertools import count
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pipelines import tracing
from pipelines.logs import ids, with_ids
from pipelines.records import Answer
from pipelines.store import Freshness, Store, StoreUnavailable, UnusableDatabase, is_copy

log = logging.getLogger(__name__)

REQUEST_ID, TRACE_ID = "X-Request-ID", "X-Trace-ID"
PLAIN_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
# Seconds. A step takes between a millisecond (HNSW) and a minute (a slow language model). Each bound is about 2.5 times
# the previous one, which is accurate enough for quantiles.
SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0]
PROBES = ("/health", "/health/ready")
# nginx's status for a client that disconnected before its answer began.
CLIENT_LEFT = 499


# ------------------------------------------------------------------------------------------------ metrics


class Metrics:
    """Counters and histograms of one process. Counting never raises, so no answer fails because of its metrics."""

    def __init__(self) -> None:
        from ray.util.metrics import Counter, Gauge, Histogram

        self._requests = Counter("raydex_requests_total", "Requests by route and status", ("route", "status"))
        self._answers = Counter(
            "raydex_answers_total", "Answers by writer and confidence", ("written_by", "confidence")
        )
        self._steps = Histogram("raydex_step_seconds", "Latency of each step of an answer", SECONDS, ("step",))
        self._tokens = Counter("raydex_tokens_total", "Tokens of language models", ("agent", "kind"))
        self._cost = Counter("raydex_cost_dollars_total", "Price of language models in US dollars", ("agent",))
        self._degraded = Counter("raydex_degraded_total", "Answers made without a part", ("part",))
        self._first_delta = Histogram(
            "raydex_time_to_first_delta_seconds", "Time until a stream's first delta", SECONDS
        )
        self._fresh = {
            name: Gauge(f"raydex_{name}", said, ("collection",))
            for name, said in {
                "oldest_check_timestamp_seconds": "When the page that waits longest was checked",
                "last_run_timestamp_seconds": "When the last full run ended well",
                "failing_pages": "Pages that could not be read for more than 3 days",
            }.items()
        }

    def count_request(self, route: str, status: int) -> None:
        """Count a request; `route` is the path's pattern, never the path, to keep the number of labels small."""
        with _log_exceptions():
            _add(self._requests, 1, route=route, status=str(status))

    def count_answer(self, answer: Answer) -> None:
        """Count an answer: its author, and its costs."""
        with _log_exceptions():
            _add(self._answers, 1, written_by=answer.written_by, confidence=answer.confidence)
        self.count_work(answer)

    def count_work(self, answer: Answer) -> None:
        """Count the costs of an answer, even if no reader asked: its steps, tokens, price and degraded parts."""
        with _log_exceptions():
            for step, seconds in answer.timings.items():
                self._steps.observe(float(seconds), {"step": step})
            _add(self._tokens, answer.usage.prompt_tokens, agent=answer.agent, kind="prompt")
            _add(self._tokens, answer.usage.completion_tokens, agent=answer.agent, kind="completion")
            _add(self._cost, answer.usage.cost, agent=answer.agent)
            for part in answer.degraded:
                _add(self._degraded, 1, part=part.partition(":")[0])

    def observe_first_delta(self, seconds: float) -> None:
        """Observe the time from a question to its stream's first delta."""
        with _log_exceptions():
            self._first_delta.observe(float(seconds))

    def show_freshness(self, collection: str, freshness: Freshness) -> None:
        """Set the gauges of a collection's freshness; unknown times are not shown."""
        times = (freshness.oldest_check, freshness.last_run)
        values = [*(time.timestamp() if time else None for time in times), freshness.failing]
        with _log_exceptions():
            for gauge, value in zip(self._fresh.values(), values, strict=True):
                if value is not None:
                    gauge.set(value, {"collection": collection})


@functools.cache
def process_metrics() -> Metrics:
    """Return the metrics of this process."""
    return Metrics()


def _add(counter: Any, value: float, **tags: str) -> None:
    if value > 0:  # Ray refuses to add 0
        counter.inc(value, tags)


@contextlib.contextmanager
def _log_exceptions() -> Iterator[None]:
    try:
        yield
    except Exception:
        log.warning("a metric was not counted", exc_info=True)


# ------------------------------------------------------------------------------------------------ freshness


# Ray shows a gauge only for seconds after it was set. Gauges contain times, so ages stay right between two queries.
SHOW_S, SHOWN_BETWEEN_LOOKS = 5.0, 60


class FreshnessGauges:
    """Shows in `metrics` how fresh each collection is, until `close`; queries the database periodically."""

    def __init__(self, store: Store, metrics: Metrics) -> None:
        self._store, self._metrics, self._closing = store, metrics, threading.Event()
        threading.Thread(target=self._work, name="freshness", daemon=True).start()

    def close(self) -> None:
        self._closing.set()

    def _work(self) -> None:
        found: dict[str, Freshness] = {}
        for turn in count():
            if turn % SHOWN_BETWEEN_LOOKS == 0:
                with contextlib.suppress(StoreUnavailable, UnusableDatabase):
                    found = look_at_freshness(self._store)
            for name, freshness in found.items():
                self._metrics.show_freshness(name, freshness)
            if self._closing.wait(SHOW_S):
                return


def look_at_freshness(store: Store) -> dict[str, Freshness]:
    """Return the freshness of each collection. Raises StoreUnavailable."""
    return {row["name"]: store.freshness(row["name"]) for row in store.collections() if not is_copy(row["name"])}


# ------------------------------------------------------------------------------------------------ requests


class Telemetry:
    """ASGI middleware: gives each request an id, and counts and logs the request when its reply has ended.

    A POST request is a span, in the trace named by its `traceparent`. The log line has method, path, route, status,
    time and the name of the key, but no question, query string or header. Behind Ray Serve's own proxy, which adds the
    id to the reply itself, `reply_id` is False; otherwise the reply would have the header twice.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics | None = None, reply_id: bool = True) -> None:
        self._app, self._metrics, self._reply_id = app, metrics or process_metrics(), reply_id

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status = time.perf_counter(), CLIENT_LEFT
        given = Headers(scope=scope).get(REQUEST_ID, "")
        # Clients must not be able to inject lines into the log.
        id = given if PLAIN_ID.fullmatch(given) else uuid.uuid4().hex
        scope["state"] = {**(scope.get("state") or {}), "request_id": id}

        async def watch(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                if self._reply_id:
                    MutableHeaders(scope=message)[REQUEST_ID] = id
                if trace := tracing.trace_id():
                    MutableHeaders(scope=message)[TRACE_ID] = trace
            await send(message)

        with with_ids(request_id=id), _span_of(scope):
            try:
                await self._app(scope, receive, watch)
            except Exception:
                status = 500
                raise
            finally:
                route = getattr(scope.get("route"), "path", "none")
                seen = {"http.route": route, "http.response.status_code": status, "raydex.request_id": id}
                tracing.note(seen, name=f"POST {route}")
                self._log(scope, route, status, time.perf_counter() - started)

    def _log(self, scope: Scope, route: str, status: int, seconds: float) -> None:
        self._metrics.count_request(route, status)
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


def _span_of(scope: Scope) -> contextlib.AbstractContextManager[tracing.Span]:
    if scope["method"] != "POST":
        return contextlib.nullcontext()
    sent = {"http.request.method": "POST", "url.path": scope["path"][:200]}
    return tracing.span("POST", sent, kind="SERVER", root=True, parent=Headers(scope=scope))


def request_id() -> str:
    """Return the id of the request in progress, "" outside one."""
    return str(ids().get("request_id", ""))
