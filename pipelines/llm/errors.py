"""Error classes of language models, and the translation of the openai client's errors into them."""

import re
from dataclasses import dataclass

from pipelines.llm import limits, protocol
from pipelines.records import Usage
from pipelines.text.counts import counted
from pipelines.text.server_errors import message_of

QUOTED = 500  # characters of a server's message in an error


class LLMFailed(RuntimeError):
    """A model gave no answer, or its answer broke off. `usage` is the known cost of the attempt."""

    def __init__(self, message: str, usage: Usage = Usage(calls=1)) -> None:
        super().__init__(message)
        self.usage = usage


class LLMUnreachable(LLMFailed):
    """No server answers at the URL, or the connection broke."""


class LLMTimeout(LLMFailed):
    """The first token, or the next one, did not arrive in time."""


class LLMBusy(LLMFailed):
    """The server is overloaded or its quota is used up (429, 5xx), even after the retries."""


class LLMKeyRefused(LLMFailed):
    """The server does not accept the API key (401, 403)."""


class LLMEmpty(LLMFailed):
    """The model answered without text: with nothing, a refusal, or only thoughts."""


class ContextTooLong(LLMFailed):
    """The request has more tokens than the server accepts; `limit` is the server's limit, if it states one."""

    limit: int | None = None


class KeyUnusable(ValueError):
    """The API key has characters that are not allowed in an HTTP header, probably from a bad copy and paste."""


@dataclass(frozen=True, slots=True)
class ErrorTranslator:
    """Turns errors of the openai client into LLMFailed. The messages name the model and the URL, never the key."""

    model: str
    base_url: str
    api_key: str
    context_window: int

    @property
    def name(self) -> str:
        """The model and its URL without a password."""
        return f"{self.model} at {re.sub(r'//[^/@]*@', '//', self.base_url)}"

    def translate(self, error: Exception, usage: Usage) -> LLMFailed:
        """Return the subclass of LLMFailed that matches `error`."""
        import openai

        message = self._quote(message_of(error))
        match error:
            case openai.APITimeoutError() | TimeoutError():
                what = message if isinstance(error, TimeoutError) else "did not accept a connection in time"
                return LLMTimeout(f"{self.name} {what}", usage)
            case openai.APIConnectionError():
                cause = self._quote(str(error.__cause__ or error))
                return LLMUnreachable(f"{self.name} cannot be reached: {cause}", usage)
            case openai.APIError() if protocol.is_about_length(error):
                window = f"taken to have {counted(self.context_window, 'token')} of context"
                too_long = ContextTooLong(f"{self.name}, {window}: {message}", usage)
                too_long.limit = limits.stated_limit(message)
                return too_long
            case openai.APIError() if status := protocol.status_of(error):
                return self._refusal(status, message, usage)
            case _ if isinstance(error, (openai.APIError, *protocol.UNREADABLE)):
                return LLMFailed(f"{self.name} answered with an error or with no chat completion: {message}", usage)
            case _:
                return LLMUnreachable(f"{self.name} broke off ({type(error).__name__}: {message})", usage)

    def empty(self, why: str, usage: Usage) -> LLMEmpty:
        """Return the error for a reply without text that ended because of `why`."""
        if why == "length":
            why = "its tokens were used up by thoughts or by the prompt: raise max_tokens or the server's context"
        return LLMEmpty(f"{self.name} answered without text ({why or 'no reason given'})", usage)

    def unopened(self, usage: Usage) -> LLMFailed:
        """Return the error for a stream that showed thoughts as the answer because they had no opening marker."""
        advice = "let its server take them out (vLLM: --reasoning-parser); from now on they are left out here"
        return LLMFailed(
            f"{self.name} thinks aloud before it answers, without a mark where that begins: {advice}", usage
        )

    def _refusal(self, status: int, message: str, usage: Usage) -> LLMFailed:
        """Return the error for an HTTP status of 400 or above."""
        if status in (401, 403):
            return LLMKeyRefused(f"{self.name} refuses the API key (HTTP {status}): check it", usage)
        if status == 429 or status >= 500:
            return LLMBusy(f"{self.name} is overloaded or out of quota (HTTP {status}): {message}", usage)
        return LLMFailed(f"{self.name} refuses the request (HTTP {status}): {message}", usage)

    def _quote(self, message: str) -> str:
        """Return a server's message, shortened and without the key."""
        return (message.replace(self.api_key, "…") if self.api_key else message)[:QUOTED]


def check_key(api_key: str, model: str) -> str:
    """Return the key unchanged. Raises KeyUnusable."""
    if not api_key.isascii() or not api_key.isprintable():
        raise KeyUnusable(f"the API key of {model} holds line breaks or characters beyond ASCII: copy it again")
    return api_key
