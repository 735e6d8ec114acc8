"""The chat protocol of OpenAI-compatible servers, and the differences between them.

Knows requests, replies and the `openai` client's errors; knows no model, price or prompt.
"""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pipelines import tracing
from pipelines.llm import limits, tool_calls
from pipelines.records import FINISHED, Message, Usage
from pipelines.text import sse
from pipelines.text.parsing import parse_json
from pipelines.text.phrases import read_phrases
from pipelines.text.retry_after import parse_retry_after
from pipelines.text.server_errors import message_of, words_of

if TYPE_CHECKING:
    import httpx2
    from openai import APIError
    from tenacity import RetryCallState

Request = dict[str, Any]

# Waits between tries without Retry-After: the openai client's defaults, from 0.5 s doubling up to 8 s.
FIRST_WAIT_S, LONGEST_WAIT_S = 0.5, 8.0
# Exceptions from parsing a reply that is not a chat completion.
UNREADABLE = (ValueError, TypeError, AttributeError, LookupError)
# The name under which a client remembers that a model accepts no system message.
SYSTEM_ROLE = "system role"
LONGEST_MESSAGE = 4_000  # maximum characters of a server's message that are searched
# How long to wait for the end of a stream after its last message, so that its connection can be reused.
DRAIN_S = 0.5


def joined(messages: Sequence[Message]) -> str:
    """Return the texts of the messages, one per line."""
    return "\n".join(message.said for message in messages)


@contextmanager
def traced(request: Request, base_url: str) -> Iterator[tracing.Span]:
    """Yield the span of a call, with attribute names from OpenTelemetry's GenAI conventions."""
    with tracing.span(f"chat {request['model']}", tracing.GEN_AI, kind="CLIENT", current=False) as span:
        if span:
            server = urlsplit(base_url)
            names = ("model", "max_tokens", "temperature", "stream")
            sent = {f"gen_ai.request.{name}": request[name] for name in names}
            port = server.port or (443 if server.scheme == "https" else 80)
            where = {"server.address": server.hostname or "", "server.port": port}
            tracing.note({"gen_ai.operation.name": "chat", **sent, **where}, of=span)
            said = ((each["role"], each["content"] or "") for each in request["messages"])
            tracing.note_messages("gen_ai.input.messages", said, span)
        yield span


def note_reply(span: tracing.Span, text: str, usage: Usage, why: str) -> None:
    """Record the reply on the span of a call, and the reason why it ended."""
    if span:
        used = {"gen_ai.usage.input_tokens": usage.prompt_tokens, "gen_ai.usage.output_tokens": usage.completion_tokens}
        tracing.note(used | {"gen_ai.response.finish_reasons": [why or FINISHED], "raydex.cost": usage.cost}, of=span)
        tracing.note_messages("gen_ai.output.messages", [("assistant", text)], span)


def json_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return `response_format` for structured output; strict only for a closed schema, as OpenAI requires."""
    strict = schema.get("additionalProperties") is False
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": dict(schema), "strict": strict}}


def leave_out(request: Request, unknown: frozenset[str]) -> Request:
    """Return the request without the parts that its server refuses.

    `max_tokens` is sent under its newer name. The system message is moved to the start of the first user message.
    """
    adapted = {name: value for name, value in request.items() if name not in unknown}
    if "max_tokens" in unknown:
        adapted["max_completion_tokens"] = request["max_tokens"]
    if "stream" in unknown:
        adapted.pop("stream_options", None)
    if SYSTEM_ROLE in unknown:
        adapted["messages"] = _without_system(request["messages"])
    return adapted


def _without_system(messages: Sequence[Mapping[str, str]]) -> list[dict[str, str]]:
    """Return the messages with the system message prepended to the first user message."""
    system = "\n\n".join(message["content"] for message in messages if message["role"] == "system")
    others = [dict(message) for message in messages if message["role"] != "system"]
    first = next((message for message in others if message["role"] == "user"), None)
    if first and system:
        first["content"] = f"{system}\n\n{first['content']}"
    return others


def refused_part(error: "APIError", request: Request, unknown: frozenset[str]) -> str:
    """Return the part of a request that a server refuses and that may be left out: a field, or the system role."""
    message = message_of(error)
    if SYSTEM_ROLE not in unknown and has_system(request) and refuses_system(error):
        return SYSTEM_ROLE
    if status_of(error) not in (400, 422) or is_about_length(error):
        return ""
    return _refused_field(message, request, unknown)


def has_system(request: Request) -> bool:
    """Return whether the request has a system message."""
    return any(message["role"] == "system" for message in request["messages"])


def refuses_system(error: Exception) -> bool:
    """Return whether a server says that its model accepts no system message.

    Known cases: Gemma's template (vLLM with 400, llama.cpp with 500), o1-mini, Gemini for Gemma, Bedrock for Titan.
    """
    return bool(_PHRASES["system"].search(message_of(error)[:LONGEST_MESSAGE]))


def _refused_field(message: str, request: Request, unknown: frozenset[str]) -> str:
    """Return the field that a 400 is about: one that it names, else the schema.

    Many servers refuse schemas without naming them. OpenAI's reasoning models refuse `max_tokens` and `temperature`,
    older servers `stream_options`. Some refuse a stream with a schema; then keeping the schema matters more.
    """
    optional = [name for name in _OPTIONAL if name in request and name not in unknown]
    named = [name for name in optional if re.search(rf"\b{name}(?:ing|ed)?\b", message, re.IGNORECASE)]
    return next(iter(named or [name for name in optional if name == "response_format"]), "")


_PHRASES = read_phrases(__name__)
_OPTIONAL = ("stream_options", "stream", "response_format", "max_tokens", "temperature", "tool_choice")


def is_about_length(error: Exception) -> bool:
    """Return whether the server refuses the request as too long, by status or inside a stream."""
    return limits.is_about_length(message_of(error)[:LONGEST_MESSAGE], status_of(error))


def status_of(error: Exception) -> int:
    """Return the HTTP status of an error, or the one in its body; 0 for an error without a status.

    A server that has begun a stream reports its errors with status 200, and so do some others.
    """
    status = getattr(error, "status_code", None)
    if isinstance(status, int):
        return status
    body = getattr(error, "body", None)
    for name in ("code", "status", "status_code", "error_code"):
        value = body.get(name) if isinstance(body, Mapping) else None
        if str(value).isdecimal() and 400 <= int(str(value)) < 600:
            return int(str(value))
    message = f"{message_of(error)} {json.dumps(body, default=str)}"[:LONGEST_MESSAGE] if body else message_of(error)
    return 429 if _PHRASES["limited"].search(message) else 503 if _PHRASES["overloaded"].search(message) else 0


def delta_of(chunk: Any) -> tuple[str, str, str]:
    """Return the text of a chunk, its part of a refusal, and the reason why the answer ended, if it did."""
    said = _said(chunk)
    if said is None:
        return "", "", ""
    refusal = getattr(said, "refusal", None) or ""
    return _text(getattr(said, "content", None)), refusal, str(chunk.choices[0].finish_reason or "")


def calls_of(chunk: Any) -> Sequence[Any]:
    """Return the tool calls of a chunk, or pieces of some."""
    return getattr(_said(chunk), "tool_calls", None) or ()


def _text(content: Any) -> str:
    """Return the text of a message's content, which may be a list of parts.

    Mistral's parts are objects with a `text` unless they are thoughts; other servers send plain strings.
    """
    parts = content if isinstance(content, list) else [content]
    return "".join(part if isinstance(part, str) else (part or {}).get("text") or "" for part in parts)


def has_token(chunk: Any) -> bool:
    """Return whether a chunk shows that the model is writing: it has text, thoughts or any field except the role."""
    said = _said(chunk)
    return said is not None and any(value for name, value in said if name != "role")


def length_of(chunk: Any) -> int:
    """Return how many characters of text, thoughts, refusal and tool calls a chunk has."""
    said = [(name, value) for name, value in _said(chunk) or () if name != "role"]
    texts = sum(len(_text(value)) for name, value in said if name == "content" or isinstance(value, str))
    return texts + sum(tool_calls.length_of(value) for name, value in said if name == "tool_calls")


def _said(chunk: Any) -> Any:
    """Return the delta of a chunk, or the message of a complete answer; None if there is neither."""
    if not getattr(chunk, "choices", None):
        return None
    return getattr(chunk.choices[0], "delta", None) or getattr(chunk.choices[0], "message", None)


def finish_reason(ended: str | None) -> str:
    """Return FINISHED for a complete answer, "length" or "content_filter" for one that was cut off.

    A completion without a reason was cut off. The protocol requires one, and a proxy or server that gives up in the
    middle of a stream often closes it normally.
    """
    if ended == "content_filter":
        return ended
    return "length" if not ended or ended in _CUT_OFF else FINISHED


# OpenAI and most others: length; Mistral: model_length; Anthropic and Gemini: max_tokens; vLLM: abort.
_CUT_OFF = frozenset({"length", "model_length", "max_tokens", "abort", "error"})


async def chunks(response: "httpx2.Response") -> AsyncGenerator[Any, None]:
    """Yield the chunks of a reply; closing the generator closes the reply.

    A server that does not stream sends one chunk.

    The first bytes decide whether the reply is a stream, because media types are wrong too often. Raises APIError for
    an error that comes with status 200, and ValueError for a reply that is not a chat completion.
    """
    try:
        streams, body = await sse.sniff(response.aiter_bytes())
        if not streams:
            whole = parse_json(await sse.whole(body))
            if not (isinstance(whole, dict) and whole.get("choices")):
                raise _reported(response, whole)
            yield _as_object(whole)
            return
        came = False
        async for message in _messages(response, body):
            came = True
            yield _as_object(message)
        if not came:
            kind = response.headers.get("content-type", "nothing")
            raise ValueError(f"it answers with {kind}, without any chunk of a stream")
    finally:
        await response.aclose()


class _Object(SimpleNamespace):
    """A JSON object whose missing fields are None. It iterates over names and values."""

    def __getattr__(self, _: str) -> None:
        return None

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        return iter(vars(self).items())


def _as_object(message: Mapping[str, Any]) -> _Object:
    """Return a chunk, or a whole reply, with the choices and the usage as objects too.

    The openai client's own classes take 0.2 ms of CPU a chunk, and a stream has hundreds.
    """
    read = dict(message)
    choices, usage = read.get("choices"), read.get("usage")
    if isinstance(choices, list):
        read["choices"] = [_Object(**_with_objects(one)) if isinstance(one, dict) else one for one in choices]
    if isinstance(usage, dict):
        read["usage"] = _Object(**_with_objects(usage))
    return _Object(**read)


def _with_objects(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _Object(**value) if isinstance(value, dict) else value for name, value in fields.items()}


async def _messages(response: "httpx2.Response", body: AsyncIterator[bytes]) -> AsyncGenerator[dict[str, Any], None]:
    """Yield the JSON objects of a stream up to its end. Raises APIError for an error in the stream."""
    async for event in sse.events(body):
        data = event.data.strip()
        if data.startswith("[DONE]"):
            with suppress(TimeoutError):
                async with asyncio.timeout(DRAIN_S):
                    _ = [piece async for piece in body]
            return
        if event.name == "error" and not data.startswith("{"):
            raise _reported(response, data)
        if data.startswith("{"):  # servers send other data, such as "ping", to keep a connection open
            message = parse_json(data)
            if message.get("error") or event.name == "error" or message.get("type") == "error":
                raise _reported(response, message)
            yield message


def _reported(response: "httpx2.Response", said: Any) -> Exception:
    """Return the error that a server reports in the body of a reply, in the server's words if it has any."""
    from openai import APIError

    error = (
        next((said[name] for name in ("error", "errors") if said.get(name)), said) if isinstance(said, dict) else said
    )
    error = error[0] if isinstance(error, list) and error else error
    words = words_of(error)
    if not words:
        return ValueError(f"it sent {str(said)[:200]!r}")
    return APIError(words, response.request, body=error if isinstance(error, dict) else {"message": words})


# ---------------------------------------------------------------------------------------------- retries


def is_passing(error: BaseException) -> bool:
    """Return whether the same request may soon succeed. A used-up quota or time limit does not recover that fast.

    After a gateway timeout (504, Cloudflare's 524) the model is still working on the prompt, so a retry does not help.
    """
    import openai

    if isinstance(error, openai.APIConnectionError):
        return not isinstance(error, openai.APITimeoutError)
    if isinstance(error, openai.APIError):
        status = status_of(error)
        passing = status in (408, 409, 429) or (status >= 500 and status not in (504, 524))
        return passing and error.code != "insufficient_quota" and not refuses_system(error)
    if isinstance(error, openai.OpenAIError):
        return False
    return isinstance(error, Exception) and not isinstance(error, (TimeoutError, *UNREADABLE))


def wait(state: "RetryCallState") -> float:
    """Return the seconds until the next try: the server's figure, else exponential backoff with jitter.

    Servers give it in Retry-After, or in the body of the refusal.
    """
    from tenacity import wait_exponential, wait_random

    error = state.outcome.exception() if state.outcome else None
    after = _retry_after(getattr(getattr(error, "response", None), "headers", {}))
    if after is None and isinstance(error, Exception):
        after = limits.seconds_to_wait(_whole_reply(error)[:LONGEST_MESSAGE])
    if after is not None:
        return after + wait_random(0, 0.1 * after)(state)  # so that refused clients do not all retry at the same moment
    doubling = wait_exponential(multiplier=FIRST_WAIT_S, max=LONGEST_WAIT_S)(state)
    return wait_random(doubling / 2, doubling)(state)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds in `retry-after-ms` (OpenAI) or Retry-After."""
    try:
        return max(0.0, float(headers["retry-after-ms"]) / 1000)
    except (KeyError, ValueError):
        return parse_retry_after(headers.get("retry-after", ""))


def _whole_reply(error: Exception) -> str:
    """Return all that a server said in an error, including every field of its JSON."""
    response, body = getattr(error, "response", None), getattr(error, "body", None)
    return f"{message_of(error)} {response.text if response is not None else json.dumps(body, default=str)}"
