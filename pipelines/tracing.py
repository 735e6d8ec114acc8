"""Records what a question or a run does as spans, sent to an OpenTelemetry collector (OTLP over HTTP).

Tracing is off until `start` finds a collector. Until then, nothing is imported and a span is a call that does nothing.
Spans leave out the text of questions, passages and answers unless a setting includes it. This module reads no
environment and knows no Ray.
"""

import json
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any, ClassVar

# These name the collector; the SDK itself reads them and all other OpenTelemetry variables.
ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
CAPTURED = {"true", "span_only", "span_and_event"}
STOP_S = 3.0  # a collector that hangs must not keep a command or a replica from ending
GEN_AI = {"gen_ai.provider.name": "openai"}  # names the protocol of the calls, not the server

Attributes = Mapping[str, Any]
Headers = Mapping[str, str]
NONE: Attributes = {}
Span = Any  # an OpenTelemetry span; None if nothing is recorded


class _Sending:
    """The objects that make and send this process's spans (None while tracing is off), and whether spans include
    texts.
    """

    provider: ClassVar[Any] = None
    api: ClassVar[Any] = None
    propagator: ClassVar[Any] = None
    texts: ClassVar[bool] = False


def start(variables: Headers) -> None:
    """Send spans to the collector that `variables` name, if any, until `stop`.

    The process's environment must contain the variables too, because the SDK reads the rest of them there.
    """
    named = any(variables.get(name) for name in ENDPOINTS) and variables.get("OTEL_TRACES_EXPORTER") != "none"
    if _Sending.provider is not None or not named or variables.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return
    from opentelemetry import trace
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    resource = Resource.create({"service.name": "raydex"}).merge(OTELResourceDetector().detect())
    _Sending.provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    _Sending.provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    _Sending.api, _Sending.propagator = trace, TraceContextTextMapPropagator()
    _Sending.texts = variables.get(CAPTURE, "").lower() in CAPTURED


def stop(within_s: float = STOP_S) -> None:
    """Send the remaining spans, for at most `within_s`, and record no more."""
    ended, _Sending.provider, _Sending.api = _Sending.provider, None, None
    if ended is not None:
        ending = threading.Thread(target=ended.shutdown, daemon=True)
        ending.start()
        ending.join(within_s)


@contextmanager
def span(name: str, attributes: Attributes = NONE, *, current: bool = True, **options: Any) -> Iterator[Span]:
    """Yield a span with the options of `_begin`. Unless `current` is False, spans begun in the body become its
    children.

    For an error, only the type is recorded, because its message may quote a text.
    """
    begun, api = _begin(name, attributes, **options), _Sending.api
    if begun is None:
        yield None
        return
    try:
        with api.use_span(begun, record_exception=False, set_status_on_exception=False) if current else nullcontext():
            yield begun
    except BaseException as error:
        begun.set_attribute("error.type", type(error).__qualname__)
        begun.set_status(api.StatusCode.ERROR)
        raise
    finally:
        begun.end()


def past(name: str, began: float, ended: float, attributes: Attributes = NONE) -> None:
    """Record a span between two Unix times, under the current span."""
    if begun := _begin(name, attributes, at=began):
        begun.end(int(ended * 1e9))


def _begin(
    name: str,
    attributes: Attributes,
    *,
    kind: str = "INTERNAL",
    root: bool = False,
    parent: Headers | None = None,
    at: float | None = None,
) -> Span:
    """Return a child of the current span, or of the span that the headers `parent` name.

    If there is no parent, the span is recorded only if it may be the `root` of a trace. It begins now, or at the Unix
    time `at`.
    """
    if _Sending.api is None:
        return None
    where = _Sending.propagator.extract(parent) if parent is not None else None
    if not root and not _Sending.api.get_current_span(where).get_span_context().is_valid:
        return None
    tracer, start = _Sending.provider.get_tracer("raydex"), None if at is None else int(at * 1e9)
    return tracer.start_span(name, where, _Sending.api.SpanKind[kind], attributes, start_time=start)


def note(attributes: Attributes, name: str = "", of: Span = None) -> None:
    """Add attributes to the span `of`, or else to the current one, and rename it to `name` if given."""
    if _Sending.api is not None:
        noted = of or _Sending.api.get_current_span()
        noted.set_attributes(attributes)
        if name:
            noted.update_name(name)


def note_messages(attribute: str, messages: Iterable[tuple[str, str]], of: Span = None) -> None:
    """If texts are included, record messages (role, text) in the format of the GenAI conventions."""
    if _Sending.texts:
        parts = [{"role": role, "parts": [{"type": "text", "content": text}]} for role, text in messages]
        note({attribute: json.dumps(parts, ensure_ascii=False)}, of=of)


def headers(of: Span = None) -> dict[str, str]:
    """Return the headers that make a call a child of the span `of`, or else of the current one; empty without any."""
    carrier: dict[str, str] = {}
    if _Sending.api is not None:
        _Sending.propagator.inject(carrier, _Sending.api.set_span_in_context(of) if of else None)
    return carrier


def trace_id() -> str:
    """Return the id of the current trace, or "" if there is none."""
    found = _Sending.api.get_current_span().get_span_context() if _Sending.api is not None else None
    return f"{found.trace_id:032x}" if found and found.is_valid else ""
