"""One language model behind an OpenAI-compatible endpoint: completions, deltas, tokens and prices.

Knows the protocol and how servers differ in it; knows no prompts, no hits and no other model.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from pipelines.llm import protocol
from pipelines.llm.tokens import counter
from pipelines.records import Message, Usage

if TYPE_CHECKING:
    from openai import APIStatusError, AsyncOpenAI

CONNECT_S = 5.0  # a server that is there takes a connection at once; beyond this it is away
# Tokens that a chat template puts around a message. Llama 3 writes 5 (header, role, two marks, end), ChatML 5, Mistral
# 4, OpenAI's cookbook counts 3; the rest is for what opens the conversation and the answer.
FRAMING = 8

T = TypeVar("T")


class LLMFailed(RuntimeError):
    """A model gave no answer, or broke off; `usage` is what the attempt cost as far as it is known."""

    def __init__(self, message: str, usage: Usage = Usage(calls=1)) -> None:
        super().__init__(message)
        self.usage = usage


class LLMUnreachable(LLMFailed):
    """Nothing answers at the URL, or the connection broke."""


class LLMTimeout(LLMFailed):
    """No answer, or no further delta, in the time allowed."""


class LLMBusy(LLMFailed):
    """The server is overloaded or its quota is used up (429, 5xx), also after the retries."""


class LLMKeyRefused(LLMFailed):
    """The server does not accept the API key (401, 403)."""


class LLMEmpty(LLMFailed):
    """The model answered with no text: nothing at all, a refusal, or only thoughts."""


class KeyUnusable(ValueError):
    """The API key holds what no HTTP header may: it was copied with something else."""


class ContextTooLong(LLMFailed):
    """The server counts more tokens than the model's context window holds."""


@dataclass(frozen=True, slots=True)
class Completion:
    """A model's whole answer, never empty, and what it cost."""

    text: str
    usage: Usage


class LLM:
    """One model behind an OpenAI-compatible endpoint. Works from any event loop, also from several.

    `context_window` is in tokens, `context_share` the share of it that retrieved text may fill. Prices are US dollars
    per 1,000,000 tokens. `timeout_s` bounds a completion with all its retries, and each wait for a delta of a stream.
    `retries` follow connection errors, 408, 409, 429 and 5xx, never a delta. `tokenizer` is a `tokenizer.json` or its
    folder; without it tokens are estimated. Raises LLMFailed and its kinds; here KeyUnusable, TokenizerNotFound.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str,
        api_key: str = "",
        context_window: int = 8192,
        context_share: float = 0.5,
        max_tokens: int = 1024,
        temperature: float = 0.0,
        prompt_price: float = 0.0,
        completion_price: float = 0.0,
        timeout_s: float = 60.0,
        retries: int = 2,
        tokenizer: str = "",
    ) -> None:
        import openai  # noqa: F401 - half a second that the first question should not wait for

        self.model, self.base_url = model, base_url
        self.context_window, self.context_share, self.max_tokens = context_window, context_share, max_tokens
        self.prompt_price, self.completion_price = prompt_price, completion_price
        self._api_key, self._temperature = _checked(api_key.strip(), model), temperature
        self._timeout_s, self._retries = timeout_s, retries
        self._count = lru_cache(maxsize=64)(counter(tokenizer))  # a prompt is counted again until all fits
        self._unknown: frozenset[str] = frozenset()  # request fields that this server has refused
        self._clients: dict[asyncio.AbstractEventLoop, AsyncOpenAI] = {}

    def count(self, text: str) -> int:
        """Tokens of `text`: exact with a tokenizer, else an estimate that is rather too high."""
        return self._count(text)

    async def complete(
        self, messages: Sequence[Message], *, max_tokens: int | None = None, schema: Mapping[str, Any] | None = None
    ) -> Completion:
        """The model's whole answer; as JSON of `schema` where the server can hold it to one."""
        request = self._request(messages, max_tokens)
        if schema is not None:
            request["response_format"] = protocol.json_schema(schema)
        with _Translated(self, messages):
            async with asyncio.timeout(self._timeout_s):
                reply = await self._send(request, self._create)
        text, why = protocol.text_of(reply)
        usage = self._usage(getattr(reply, "usage", None), messages, text)
        if not text.strip():
            raise self._empty(why, usage)
        return Completion(text, usage)

    async def stream(
        self, messages: Sequence[Message], *, max_tokens: int | None = None
    ) -> AsyncGenerator[str | Usage, None]:
        """Deltas of the answer as they come, its Usage last. Closing the generator closes the HTTP request."""
        request = self._request(messages, max_tokens) | {"stream": True, "stream_options": {"include_usage": True}}
        said, reported, why = "", None, ""
        with _Translated(self, messages) as translated:
            async with asyncio.timeout(self._timeout_s):
                chunks = await self._send(request, self._open)
            async with aclosing(chunks):
                while (chunk := await self._next(chunks)) is not None:
                    reported = getattr(chunk, "usage", None) or reported
                    delta, ended = protocol.delta_of(chunk)
                    why = ended or why
                    if delta:
                        translated.said = said = said + delta
                        yield delta
        usage = self._usage(reported, messages, said)
        if not said.strip():
            raise self._empty(why, usage)
        yield usage

    async def close(self) -> None:
        """Close this loop's connections; the others went with their loops."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client:
            await client.close()

    # ------------------------------------------------------------------------------------------ requests

    def _request(self, messages: Sequence[Message], max_tokens: int | None) -> protocol.Request:
        return {
            "model": self.model,
            "messages": [{"role": message.role, "content": message.content} for message in messages],
            "temperature": self._temperature,
            "max_tokens": max_tokens or self.max_tokens,
        }

    def _client(self) -> "AsyncOpenAI":
        """The running loop's client: connections belong to the loop that opened them."""
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
            api_key=self._api_key or "none",  # a server of one's own needs none, but the client insists on one
            timeout=Timeout(self._timeout_s, connect=min(CONNECT_S, self._timeout_s)),
            max_retries=0,
            # Its own default closes itself from whichever loop runs when it is collected.
            http_client=DefaultAsyncHttpxClient(),
        )

    async def _create(self, request: protocol.Request) -> Any:
        return await self._client().chat.completions.create(**request)

    async def _open(self, request: protocol.Request) -> AsyncGenerator[Any, None]:
        """The chunks of a stream whose first text has come: until then a failure may be retried."""
        chunks = protocol.chunks(await self._create(request))
        head = []
        async for chunk in chunks:
            head.append(chunk)
            if protocol.delta_of(chunk)[0]:
                break
        return protocol.chained(head, chunks)

    async def _next(self, chunks: AsyncGenerator[Any, None]) -> Any:
        async with asyncio.timeout(self._timeout_s):
            return await anext(chunks, None)

    async def _send(self, request: protocol.Request, send: Callable[[protocol.Request], Awaitable[T]]) -> T:
        """`send`, retried; fields that the server refuses are left out, from then on too."""
        from openai import BadRequestError, UnprocessableEntityError

        unknown = self._unknown
        while True:
            adapted = protocol.without(request, unknown)
            try:
                reply = await self._retrying(send, adapted)
            except (BadRequestError, UnprocessableEntityError) as error:
                refused = protocol.refused_field(str(error), request, unknown)
                if not refused:
                    raise
                unknown = unknown | {refused}
            else:
                self._unknown = self._unknown | unknown
                return reply

    async def _retrying(self, send: Callable[[protocol.Request], Awaitable[T]], request: protocol.Request) -> T:
        """`send`, up to `retries` times more, but never waiting beyond `timeout_s`."""
        from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt, stop_before_delay

        tries = AsyncRetrying(
            retry=retry_if_exception(protocol.is_passing),
            stop=stop_after_attempt(self._retries + 1) | stop_before_delay(self._timeout_s),
            wait=protocol.wait,
            reraise=True,
        )
        return await tries(send, request)

    # ------------------------------------------------------------------------------------------ results

    def estimate(self, messages: Sequence[Message], text: str) -> Usage:
        """What a call costs whose server does not say: every prompt token and those of `text`."""
        prompt = sum(self.count(message.content) + FRAMING for message in messages)
        return self._priced(prompt, self.count(text) if text else 0)

    def _usage(self, reported: Any, messages: Sequence[Message], text: str) -> Usage:
        if reported is None or not getattr(reported, "prompt_tokens", 0):
            return self.estimate(messages, text)
        return self._priced(reported.prompt_tokens, reported.completion_tokens or 0)

    def _priced(self, prompt: int, completion: int) -> Usage:
        cost = (prompt * self.prompt_price + completion * self.completion_price) / 1_000_000
        return Usage(prompt, completion, 1, cost)

    def _empty(self, why: str, usage: Usage) -> LLMEmpty:
        if why == "length":
            why = "its tokens were used up by thoughts or by the prompt: raise max_tokens or the server's context"
        return LLMEmpty(f"{self.model} at {self.where} answered without text ({why or 'no reason given'})", usage)

    @property
    def where(self) -> str:
        """The base URL without a password."""
        return re.sub(r"//[^/@]*@", "//", self.base_url)

    def failure(self, error: Exception, usage: Usage) -> LLMFailed:
        """A driver's error in our words, with the URL and the model and never the key."""
        import openai

        name, said = f"{self.model} at {self.where}", self._told(str(getattr(error, "message", "") or error))
        failed: LLMFailed
        match error:
            case TimeoutError() | openai.APITimeoutError():
                failed = LLMTimeout(f"{name} did not answer within {self._timeout_s:g} s", usage)
            case openai.APIStatusError():
                failed = self._refusal(error, name, said, usage)
            case openai.APIConnectionError():
                failed = LLMUnreachable(f"{name} cannot be reached: {self._told(str(error.__cause__ or error))}", usage)
            case openai.APIError() | ValueError():
                failed = LLMFailed(f"{name} answered with an error or with what is no chat completion: {said}", usage)
            case _:
                failed = LLMUnreachable(f"{name} broke off ({type(error).__name__}: {said})", usage)
        return failed

    def _refusal(self, error: "APIStatusError", name: str, said: str, usage: Usage) -> LLMFailed:
        """What an HTTP status of 400 and above means."""
        status = error.status_code
        if status in (401, 403):
            return LLMKeyRefused(f"{name} refuses the API key (HTTP {status}): check it", usage)
        if protocol.is_about_length(error):
            return ContextTooLong(f"{name}, taken to have {self.context_window} tokens of context: {said}", usage)
        if status == 429 or status >= 500:
            return LLMBusy(f"{name} is overloaded or out of quota (HTTP {status}): {said}", usage)
        return LLMFailed(f"{name} refuses the request (HTTP {status}): {said}", usage)

    def _told(self, text: str) -> str:
        """What a server said, in bounds, without the key."""
        return (text.replace(self._api_key, "…") if self._api_key else text)[:500]


def _checked(api_key: str, model: str) -> str:
    if not api_key.isascii() or not api_key.isprintable():
        raise KeyUnusable(f"the API key of {model} holds line breaks or characters beyond ASCII: copy it again")
    return api_key


class _Translated:
    """Errors inside become LLMFailed. `said` is what came of a stream before."""

    def __init__(self, llm: LLM, messages: Sequence[Message]) -> None:
        self._llm, self._messages, self.said = llm, messages, ""

    def __enter__(self) -> "_Translated":
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if not isinstance(error, Exception) or isinstance(error, LLMFailed):
            return
        charged = self.said or isinstance(error, TimeoutError)
        usage = self._llm.estimate(self._messages, self.said) if charged else Usage(calls=1)
        failure = self._llm.failure(error, usage)
        # A server may repeat the key when it refuses it: then not even the traceback shows what it said.
        raise failure from (None if isinstance(failure, LLMKeyRefused) else error)
