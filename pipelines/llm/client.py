"""Calls a language model behind an OpenAI-compatible endpoint.

Knows the protocol and the differences between servers. Knows no prompts, no hits and no other model.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from pipelines import tracing
from pipelines.llm import protocol
from pipelines.llm.errors import ContextTooLong, ErrorTranslator, LLMKeyRefused, check_key
from pipelines.llm.marks import ReplyFilter
from pipelines.llm.pace import Stopwatch, pace_of
from pipelines.llm.tokens import make_counter
from pipelines.llm.tool_calls import CallReader, Tool, as_sent, offered
from pipelines.proxies import direct_mounts
from pipelines.records import FINISHED, Message, ToolCall, Usage

if TYPE_CHECKING:
    from openai import AsyncOpenAI

CONNECT_S = 5.0  # a running server accepts a connection at once; after this long it counts as down
# Tokens that a chat template adds around a message. Llama 3 adds 5 (header, role, two markers, end), ChatML 5, Mistral
# 4, and OpenAI's cookbook counts 3. The rest covers the markers that open the conversation and the answer.
FRAMING = 8

# If a server tells us to wait longer than this, another agent answers sooner.
LONGEST_RETRYING_S = 60.0

LONGEST_REFUSAL = 2_000  # maximum characters of a server's refusal quoted in an error
NOTHING_MORE: Mapping[str, Any] = {}  # fields added to a request

log = logging.getLogger(__name__)

T = TypeVar("T")


class LLMSettings(BaseModel):
    """Settings for calling a language model, with its prices.

    `context_window` is in tokens. `context_share` is the share of it that retrieved passages may fill; by default, the
    form of the answer decides.
    `context_seconds` limits how long the model may take to read a prompt with those passages (0: no limit). Prices are
    in US dollars per 1,000,000 tokens. `first_token_s` limits the wait for the first token, including all retries.
    `between_tokens_s` limits each later wait, so no timeout cuts off a model that is still writing. A reply longer than
    `longest_reply` characters, thoughts included, is cut off: some models never stop, and some servers ignore
    `max_tokens`. `retries` applies to connection errors, 408, 409, 429 and 5xx, and never after a token has arrived.
    `tokenizer` is the path of a `tokenizer.json` or its folder; without it token counts are estimates.
    """

    model_config = ConfigDict(frozen=True)

    context_window: Annotated[int, Field(ge=256)] = 8192
    context_share: Annotated[float | None, Field(gt=0, le=1)] = None
    # At 60 tokens per second, 300 tokens: about five passages of 40 words (some 60 tokens each). Above 1,000 tokens per
    # second the window is the limit.
    context_seconds: Annotated[float, Field(ge=0)] = 5.0
    max_tokens: Annotated[int, Field(ge=1)] = 1024
    longest_reply: Annotated[int, Field(ge=1)] = 64_000  # 16,000 tokens of English: the maximum for many models
    temperature: Annotated[float, Field(ge=0)] = 0.0
    prompt_price: Annotated[float, Field(ge=0)] = 0.0
    completion_price: Annotated[float, Field(ge=0)] = 0.0
    # Loading a model takes a minute, reading 4,000 tokens at 60 per second another, and other requests may come first.
    first_token_s: Annotated[float, Field(gt=0)] = 300.0
    # llama.cpp writes nothing while it reads up to 2,048 tokens of another prompt: 34 s at 60 tokens per second.
    between_tokens_s: Annotated[float, Field(gt=0)] = 60.0
    retries: Annotated[int, Field(ge=0)] = 2
    tokenizer: str = ""


USUAL = LLMSettings()


@dataclass(frozen=True, slots=True)
class Completion:
    """A model's complete answer with its cost and the reason why it ended (see FINISHED).

    The text is empty only if the model calls tools.
    """

    text: str
    usage: Usage = Usage()
    finish_reason: str = FINISHED
    calls: tuple[ToolCall, ...] = ()


class LLM:
    """A model behind an OpenAI-compatible endpoint. Works from any event loop, and from several at once.

    Its calls raise LLMFailed or a subclass. The constructor raises KeyUnusable and TokenizerNotFound.
    """

    def __init__(self, model: str, *, base_url: str, api_key: str = "", settings: LLMSettings = USUAL) -> None:
        import openai  # noqa: F401 - the import takes half a second; the first question should not wait for it

        self.model, self.base_url, self.settings = model, base_url, settings
        self.context_window, self.context_share = settings.context_window, settings.context_share
        self.context_seconds, self.max_tokens = settings.context_seconds, settings.max_tokens
        self.pace = pace_of(base_url, model)
        self._api_key = check_key(api_key.strip(), model)
        self._errors = ErrorTranslator(model, base_url, self._api_key, settings.context_window)
        self._count = lru_cache(maxsize=64)(
            make_counter(settings.tokenizer)
        )  # packing counts the same prompt many times
        self._unknown: frozenset[str] = frozenset()  # parts of a request that this server refuses
        self._thinks = False  # whether its replies begin with thoughts that have no opening marker
        self._clients: dict[asyncio.AbstractEventLoop, AsyncOpenAI] = {}

    def count(self, text: str) -> int:
        """Return the token count of `text`: exact with a tokenizer, otherwise an estimate on the high side."""
        return self._count(text)

    async def complete(
        self, messages: Sequence[Message], *, max_tokens: int | None = None, schema: Mapping[str, Any] | None = None
    ) -> Completion:
        """Return the model's complete answer, as JSON that matches `schema` if the server supports schemas.

        The answer is streamed internally, because only a stream shows whether a slow model is still writing.
        """
        form = {"response_format": protocol.json_schema(schema)} if schema is not None else {}
        return await self._whole(messages, max_tokens, form)

    async def call(self, messages: Sequence[Message], tools: Sequence[Tool], *, may_call: bool = True) -> Completion:
        """Return the model's whole reply, which may call `tools`; without `may_call` it is to reply in words."""
        return await self._whole(messages, None, offered(tools, may_call))

    async def _whole(self, messages: Sequence[Message], max_tokens: int | None, more: Mapping[str, Any]) -> Completion:
        completion = [item async for item in self._answer(messages, max_tokens, more)][-1]
        assert isinstance(completion, Completion)
        return completion

    def stream(
        self, messages: Sequence[Message], *, max_tokens: int | None = None
    ) -> AsyncGenerator[str | Completion, None]:
        """Yield text deltas as they arrive, "" for thoughts, and last the Completion.

        Closing it closes the HTTP request.
        """
        return self._answer(messages, max_tokens, shown=True)

    async def _answer(
        self,
        messages: Sequence[Message],
        max_tokens: int | None,
        more: Mapping[str, Any] = NOTHING_MORE,
        shown: bool = False,
    ) -> AsyncGenerator[str | Completion, None]:
        request, stopwatch, thinks = self._request(messages, max_tokens, more), Stopwatch(), self._thinks
        reply, calls, refused, why = ReplyFilter(protocol.joined(messages), thinks), CallReader(), "", ""
        left = self.settings.longest_reply
        with protocol.traced(request, self.base_url) as span:
            try:
                async with _deadline(self.settings.first_token_s, "did not begin to answer", "first_token_s"):
                    head, chunks = await self._send(request, partial(self._open, stopwatch, span))
                async with aclosing(chunks):
                    while not reply.stopped and (chunk := next(head, None) or await self._next(chunks)) is not None:
                        stopwatch.note(chunk)
                        delta, refusal, ended = protocol.delta_of(chunk)
                        refused, why = (refused + refusal)[:LONGEST_REFUSAL], ended or why
                        calls.feed(protocol.calls_of(chunk))
                        if delta or protocol.has_token(chunk):
                            yield reply.feed(delta[:left])
                        if (left := left - protocol.length_of(chunk)) < 0:
                            log.warning("%s: a reply was cut off at `longest_reply`", self._errors.name)
                            why = "length"
                            break
            except Exception as error:
                charged = reply.text or isinstance(error, TimeoutError)
                usage = self.estimate(messages, reply.text) if charged else Usage(calls=1)
                failure = self._errors.translate(error, usage)
                if isinstance(failure, ContextTooLong):
                    self._learn(failure.limit)
                # A server may repeat the key when it refuses it, so keep its reply out of the traceback too.
                raise failure from (None if isinstance(failure, LLMKeyRefused) else error)
            why = reply.stopped or why
            if rest := reply.close(why):
                yield rest
            written = "\n".join(filter(None, (reply.text, calls.text)))
            usage = self._usage(stopwatch.usage, messages, written)
            protocol.note_reply(span, written, usage, why)
        self._measure(stopwatch, messages, written)
        if "response_format" not in more or reply.unopened:  # a model that must write JSON does not think
            self._thinks = reply.unopened or (thinks and why == "length")
        if shown and reply.unopened and not thinks:
            raise self._errors.unopened(usage)
        if not written.strip():
            raise self._errors.empty(f"it refuses: {refused}" if refused else why, usage)
        yield Completion(reply.text, usage, protocol.finish_reason(why), calls.close())

    async def close(self) -> None:
        """Close the connections of the running loop. The connections of other loops ended with their loops."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client:
            await client.close()

    def estimate(self, messages: Sequence[Message], text: str) -> Usage:
        """Estimate the cost of a call whose server does not report it, from the tokens of the prompt and of `text`."""
        prompt = sum(self.count(message.said) + FRAMING for message in messages)
        return self._price(prompt, self.count(text) if text else 0)

    def _learn(self, limit: int | None) -> None:
        """Adopt the context window that the server states, if it is smaller, so that the next request fits at once."""
        if limit is None or limit >= self.context_window:
            return
        log.warning(
            "%s takes %s tokens, not %s: set context_window",
            self._errors.name,
            f"{limit:,}",
            f"{self.context_window:,}",
        )
        self.context_window = limit
        self.max_tokens = min(self.max_tokens, limit // 2)
        self._errors = replace(self._errors, context_window=limit)

    # ------------------------------------------------------------------------------------------ requests

    def _request(
        self, messages: Sequence[Message], max_tokens: int | None, more: Mapping[str, Any]
    ) -> protocol.Request:
        return {
            "model": self.model,
            "messages": list(map(as_sent, messages)),
            "temperature": self.settings.temperature,
            "max_tokens": max_tokens or self.max_tokens,
            "stream": True,
            "stream_options": {"include_usage": True},
            **more,
        }

    def _client(self) -> "AsyncOpenAI":
        """Return the client of the running loop; connections belong to the loop that opened them."""
        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            for ended in [known for known in list(self._clients) if known.is_closed()]:
                self._clients.pop(ended, None)
            self._clients[loop] = self._connect()
        return self._clients[loop]

    def _connect(self) -> "AsyncOpenAI":
        from openai import AsyncOpenAI, DefaultAsyncHttpxClient, Timeout

        return AsyncOpenAI(
            base_url=self.base_url,
            api_key=self._api_key or "none",  # a local server needs no key, but the client requires one
            timeout=Timeout(None, connect=min(CONNECT_S, self.settings.first_token_s)),
            max_retries=0,
            # The default client closes itself in the loop that happens to run when it is garbage-collected.
            http_client=DefaultAsyncHttpxClient(mounts=direct_mounts(self.base_url)),
        )

    async def _open(
        self, stopwatch: Stopwatch, span: tracing.Span, request: protocol.Request
    ) -> tuple[Iterator[Any], AsyncGenerator[Any, None]]:
        """Return the chunks up to the first token, and an iterator over the rest.

        Failures up to that token are retried.
        """
        stopwatch.start()
        chunks = protocol.chunks((await self._post(request, tracing.headers(span))).response)
        head = []
        async for chunk in chunks:
            head.append(chunk)
            if protocol.has_token(chunk):
                break
        return iter(head), chunks

    async def _post(self, request: protocol.Request, headers: Mapping[str, str]) -> Any:
        """Post the request unchanged.

        `chat.completions.create` copies it field by field, which takes 0.6 of its 3.3 ms of CPU time.
        """
        from openai import AsyncStream
        from openai.types.chat import ChatCompletion, ChatCompletionChunk

        return await self._client().post(
            "/chat/completions",
            body=request,
            cast_to=ChatCompletion,
            options={"headers": headers},
            stream=True,
            stream_cls=AsyncStream[ChatCompletionChunk],
        )

    async def _next(self, chunks: AsyncGenerator[Any, None]) -> Any:
        async with _deadline(self.settings.between_tokens_s, "stopped writing: no token came", "between_tokens_s"):
            return await anext(chunks, None)

    async def _send(self, request: protocol.Request, send: Callable[[protocol.Request], Awaitable[T]]) -> T:
        """Send with retries. Parts that the server refuses are left out, in this request and in later ones."""
        from openai import APIError

        unknown = self._unknown
        while True:
            adapted = protocol.leave_out(request, unknown)
            try:
                reply = await self._retry(send, adapted)
            except APIError as error:
                refused = protocol.refused_part(error, request, unknown)
                if not refused:
                    raise
                unknown = unknown | {refused}
            else:
                self._unknown = self._unknown | unknown
                return reply

    async def _retry(self, send: Callable[[protocol.Request], Awaitable[T]], request: protocol.Request) -> T:
        """Send, with up to `retries` more tries, but never wait longer than is worthwhile for a busy server."""
        from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt, stop_before_delay

        patience_s = min(LONGEST_RETRYING_S, self.settings.first_token_s)
        tries = AsyncRetrying(
            retry=retry_if_exception(protocol.is_passing),
            stop=stop_after_attempt(self.settings.retries + 1) | stop_before_delay(patience_s),
            wait=protocol.wait,
            reraise=True,
        )
        return await tries(send, request)

    # ------------------------------------------------------------------------------------------ costs and speed

    def _measure(self, stopwatch: Stopwatch, messages: Sequence[Message], text: str) -> None:
        """Record the speed of this answer in the pace, if its stream shows it."""
        if stopwatch.tells:
            tokens = self.estimate(messages, text)
            self.pace.read(protocol.joined(messages), tokens.prompt_tokens, stopwatch.reading_s, stopwatch.known)
            self.pace.write(tokens.completion_tokens, stopwatch.writing_s)

    def _usage(self, reported: Any, messages: Sequence[Message], text: str) -> Usage:
        prompt, completion = (getattr(reported, f"{part}_tokens", 0) or 0 for part in ("prompt", "completion"))
        if not prompt or not isinstance(prompt, int) or not isinstance(completion, int):
            return self.estimate(messages, text)
        return self._price(prompt, completion)

    def _price(self, prompt: int, completion: int) -> Usage:
        cost = (prompt * self.settings.prompt_price + completion * self.settings.completion_price) / 1_000_000
        return Usage(prompt, completion, 1, cost)


@asynccontextmanager
async def _deadline(seconds: float, what: str, setting: str) -> AsyncGenerator[None, None]:
    """Raise TimeoutError after `seconds` in this context.

    Its message says which `what` did not happen, and which setting to raise.
    """
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError as error:
        raise TimeoutError(f"{what} within {seconds:g} s (`{setting}`)") from error
