"""Runs an OpenTelemetry collector on loopback, which receives spans over OTLP/HTTP.

    with collecting() as collector:
        …
    collector.spans

Read the spans after the senders have stopped.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from kit.receivers import WebhookReceiver
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue

from pipelines import tracing


@dataclass(frozen=True)
class SentSpan:
    """A received span. Ids are hex, times are nanoseconds, and `kind` and `status` use the protocol's numbers."""

    name: str
    trace: str
    id: str
    parent: str
    kind: int
    status: int
    began: int
    ended: int
    attributes: dict[str, Any]
    resource: dict[str, Any]


class Collector(WebhookReceiver):
    """Receives spans."""

    @property
    def spans(self) -> list[SentSpan]:
        """Return all spans in the order of their start."""
        requests = [ExportTraceServiceRequest.FromString(post.body) for post in self.posts]
        found = [
            SentSpan(
                span.name,
                span.trace_id.hex(),
                span.span_id.hex(),
                span.parent_span_id.hex(),
                span.kind,
                span.status.code,
                span.start_time_unix_nano,
                span.end_time_unix_nano,
                _read(span.attributes),
                _read(of_process.resource.attributes),
            )
            for request in requests
            for of_process in request.resource_spans
            for scope in of_process.scope_spans
            for span in scope.spans
        ]
        return sorted(found, key=lambda span: span.began)

    def tree(self, parent: str = "") -> list[Any]:
        """Return the names of the spans under `parent`, each with its children: `[("find", [("route", [])])]`."""
        return [(span.name, self.tree(span.id)) for span in self.spans if span.parent == parent]


@contextmanager
def collecting(**variables: str) -> Iterator[Collector]:
    """Start a collector and set this process's variables to it, for commands that start and stop tracing themselves."""
    with Collector() as collector, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url.removesuffix("/hook"))
        for name, value in variables.items():
            patch.setenv(name, value)
        yield collector


@contextmanager
def traced(**variables: str) -> Iterator[Collector]:
    """Start a collector that has all spans after the block has ended."""
    with collecting(**variables) as collector:
        tracing.start(os.environ)
        try:
            yield collector
        finally:
            tracing.stop()


def _read(attributes: Any) -> dict[str, Any]:
    return {each.key: _value(each.value) for each in attributes}


def _value(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    return [_value(each) for each in value.array_value.values] if kind == "array_value" else getattr(value, str(kind))
