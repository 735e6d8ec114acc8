"""The chat protocol of OpenAI-compatible servers and their differences.

Knows requests, replies and the `openai` client's errors; no model, no price and no prompt.
"""

import json
import re
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pipelines import tracing
from pipelines.records import FINISHED, Message, Usage
from pipelines.text.phrases import read_phrases
from pipelines.text.retry_after import parse_retry_after
from pipelines.text.server_errors import message_of

if TYPE_CHECKING:
    from openai import AsyncStream
    from tenacity import RetryCallState

Request = dict[str, Any]

# Waits between tries without Retry-After: the openai client's own, 0.5 s doubling up to 8 s.
FIRST_WAIT_S, LONGEST_WAIT_S = 0.5, 8.0
# What reading a reply raises that is no chat completion.
UNREADABLE = (ValueError, TypeError, AttributeError, LookupError)


def joined(messages: Sequence[Message]) -> str:
    """Return the messages' texts, one after the other."""
    return "\n".join(message.content for message in messages)


@contextmanager
def traced(request: Request, base_url: str) -> Iterator[tracing.Span]:
    """Yield the span of a call, with the names that the conventions of GenAI give to what is sent."""
    with tracing.span(f"chat {request['model']}", tracing.GEN_AI, kind="CLIENT", current=False) as span:
        if span:
            server = urlsplit(base_url)
            names = ("model", "max_tokens", "temperature", "stream")
            sent = {f"gen_ai.request.{name}": request[name] for name in names}
            port = server.port or (443 if server.scheme == "https" else 80)
            where = {"server.address": server.hostname or "", "server.port": port}
            tracing.note({"gen_ai.operation.name": "chat", **sent, **where}, of=span)
            said = ((each["role"], each["content"]) for each in request["messages"])
            tracing.note_messages("gen_ai.input.messages", said, span)
        yield span


def note_reply(span: tracing.Span, text: str, usage: Usage, why: str) -> None:
    """Note on the span of a call what came back, and why it ended."""
    if span:
        used = {"gen_ai.usage.input_tokens": usage.prompt_tokens, "gen_ai.usage.output_tokens": usage.completion_tokens}
        tracing.note(used | {"gen_ai.response.finish_reasons": [why or FINISHED], "raydex.cost": usage.cost}, of=span)
        tracing.note_messages("gen_ai.output.messages", [("assistant", text)], span)


def json_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return `response_format` for structured outputs; strict only where the schema is closed, as OpenAI demands."""
    strict = schema.get("additionalProperties") is False
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": dict(schema), "strict": strict}}


def leave_out(request: Request, unknown: frozenset[str]) -> Request:
    """Return the request without fields that its server refuses; `max_tokens` is sent under its newer name."""
    adapted = {name: value for name, value in request.items() if name not in unknown}
    if "max_tokens" in unknown:
        adapted["max_completion_tokens"] = request["max_tokens"]
    if "stream" in unknown:
        adapted.pop("stream_options", None)
    return adapted


def refused_field(message: str, request: Request, unknown: frozenset[str]) -> str:
    """Return the field that a 400 is about: one it names, else the schema, which many servers refuse in other words.

    OpenAI's reasoning models refuse `max_tokens` and `temperature`, older servers `stream_options`, some a stream with
    a schema: then it is better to keep the schema.
    """
    if _PHRASES["length"].search(message):
        return ""
    optional = [name for name in _OPTIONAL if name in request and name not in unknown]
    named = [name for name in optional if re.search(rf"\b{name}(?:ing|ed)?\b", message, re.IGNORECASE)]
    return next(iter(named or [name for name in optional if name == "response_format"]), "")


_PHRASES = read_phrases(__name__)
_OPTIONAL = ("stream_options", "stream", "response_format", "max_tokens", "temperature")


def is_about_length(error: Exception) -> bool:
    """Return whether the server refuses the request because it is too long, by its status or in a stream."""
    status = getattr(error, "status_code", 400)
    return status in (400, 413, 422) and bool(_PHRASES["length"].search(message_of(error)))


def delta_of(chunk: Any) -> tuple[str, str, str]:
    """Return the text of a chunk, what of a refusal it has, and why the answer ended if it did."""
    said = _said(chunk)
    if said is None:
        return "", "", ""
    refusal = getattr(said, "refusal", None) or ""
    return _text(getattr(said, "content", None)), refusal, chunk.choices[0].finish_reason or ""


def _text(content: Any) -> str:
    """Return the text of a content; Mistral sends one with thoughts in parts, of which those of text have a `text`."""
    parts = content if isinstance(content, list) else [{"text": content}]
    return "".join(part.get("text") or "" for part in parts)


def has_token(chunk: Any) -> bool:
    """Return whether a chunk shows that the model writes: text, thoughts or anything else but its role."""
    said = _said(chunk)
    return said is not None and any(value for name, value in said if name != "role")


def _said(chunk: Any) -> Any:
    """Return the delta of a chunk, or the message of a whole answer; None where there is neither."""
    if not getattr(chunk, "choices", None):
        return None
    return getattr(chunk.choices[0], "delta", None) or getattr(chunk.choices[0], "message", None)


def finish_reason(ended: str | None) -> str:
    """Return FINISHED for a whole completion, "length" or "content_filter" for one that was cut off.

    A completion that does not say why it ended was cut off: the protocol demands a reason, and a proxy or server that
    gives up in the middle of a stream often closes it as if it were whole.
    """
    if ended == "content_filter":
        return ended
    return "length" if not ended or ended in _CUT_OFF else FINISHED


# OpenAI and most others: length; Mistral: model_length; Anthropic and Gemini: max_tokens; vLLM: abort.
_CUT_OFF = frozenset({"length", "model_length", "max_tokens", "abort", "error"})


async def chunks(reply: "AsyncStream[Any]") -> AsyncGenerator[Any, None]:
    """Yield the chunks of a stream; closing the generator closes it. A server that does not stream sends one, whole.

    Raises ValueError for a whole reply that is no chat completion, and for one without any chunk.
    """
    from openai.types.chat import ChatCompletion

    kind, came = reply.response.headers.get("content-type", ""), False
    async with reply:
        if "json" in kind:
            body = json.loads(await reply.response.aread())
            if not (isinstance(body, dict) and body.get("choices")):
                raise ValueError(f"it sent {str(body)[:200]!r}")
            yield ChatCompletion.construct(**body)
            return
        async for chunk in reply:
            came = True
            yield chunk
    if not came:
        raise ValueError(f"it answers with {kind or 'nothing'}, without any chunk of a stream")


# ---------------------------------------------------------------------------------------------- retries


def is_passing(error: BaseException) -> bool:
    """Return whether the same request may succeed in a moment. A quota or time limit that is used up will not.

    Behind a gateway that gave up waiting (504, Cloudflare's 524) the model still works on the prompt.
    """
    import openai

    if isinstance(error, openai.APIStatusError):
        status = error.status_code
        passing = status in (408, 409, 429) or (status >= 500 and status not in (504, 524))
        return passing and error.code != "insufficient_quota"
    if isinstance(error, openai.OpenAIError):
        return isinstance(error, openai.APIConnectionError) and not isinstance(error, openai.APITimeoutError)
    return isinstance(error, Exception) and not isinstance(error, (TimeoutError, *UNREADABLE))


def wait(state: "RetryCallState") -> float:
    """Return the seconds until the next try: those of Retry-After, else doubling with jitter over the upper half."""
    from tenacity import wait_exponential, wait_random

    error = state.outcome.exception() if state.outcome else None
    after = _retry_after(getattr(getattr(error, "response", None), "headers", {}))
    if after is not None:
        return after + wait_random(0, 0.1 * after)(state)  # so that refused clients do not all return at once
    doubling = wait_exponential(multiplier=FIRST_WAIT_S, max=LONGEST_WAIT_S)(state)
    return wait_random(doubling / 2, doubling)(state)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of `retry-after-ms` (OpenAI), else of Retry-After."""
    try:
        return max(0.0, float(headers["retry-after-ms"]) / 1000)
    except (KeyError, ValueError):
        return parse_retry_after(headers.get("retry-after", ""))
