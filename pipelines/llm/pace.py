"""Measures how fast a model reads prompts and writes answers, per endpoint and model.

Knows the chunks of a stream and the figures that servers report in them; knows no requests and no prompt's subject.
"""

import time
from collections import deque
from functools import cache
from statistics import median_high
from typing import Any

from pipelines.llm import protocol
from pipelines.llm.window import greatest

# The median over this many calls ignores a call that waited in a queue or for the model to load.
CALLS = 5
# With fewer tokens, network latency outweighs the server's speed.
FEWEST_READ, FEWEST_WRITTEN = 100, 5
WAY_S = 0.5  # latency of a hosted model before it reads; negligible next to the 10 s of a slow one
LEAST_SHARED = 0.1  # share of a prompt that is needed to tell whether a server caches common prefixes
REMEMBERED = 4  # recent prompts whose prefix a server may have cached: llama.cpp and Ollama have a few slots


class Rate:
    """Tokens per second, as the median of the last calls."""

    def __init__(self) -> None:
        self._calls: deque[float] = deque(maxlen=CALLS)

    def add(self, tokens: float, seconds: float) -> None:
        """Add a call."""
        self._calls.append(tokens / max(seconds, 1e-3))

    @property
    def per_second(self) -> float | None:
        """The median rate; None before the first call."""
        return median_high(self._calls) if self._calls else None


class Pace:
    """Reading and writing speed of one model. Tokens are counted with the caller's counter."""

    def __init__(self) -> None:
        self.reading, self.writing = Rate(), Rate()
        self._recent: deque[str] = deque(maxlen=REMEMBERED)
        self._keeps = True  # whether the server caches prompt prefixes

    def read(self, prompt: str, tokens: int, seconds: float, known: float | None = None) -> None:
        """Record that `prompt` was read in `seconds`.

        `known` is the share of the prompt that the server reports as cached. Without it, the server is assumed to have
        cached the prefix that `prompt` shares with another recent prompt.
        """
        shared = self._shared(prompt)
        if known is not None and shared > LEAST_SHARED:
            self._keeps = known > shared / 2
        new = tokens * (1 - (shared if known is None else known))
        self._recent.append(prompt)
        if new >= FEWEST_READ:
            self.reading.add(new, seconds)

    def write(self, tokens: int, seconds: float) -> None:
        """Record that `tokens` arrived within `seconds`, not counting the wait for the first one."""
        if tokens >= FEWEST_WRITTEN:
            self.writing.add(tokens, seconds)

    def unread(self, prompt: str, tokens: int) -> float:
        """Return how many of the prompt's `tokens` the server has probably not cached."""
        return tokens * (1 - self._shared(prompt)) if self._keeps else tokens

    def seconds_to_read(self, prompt: str, tokens: int) -> float | None:
        """Return the seconds until the first token of the answer to `prompt`, None while the speed is unknown."""
        speed = self.reading.per_second
        return None if speed is None else self.unread(prompt, tokens) / speed

    def seconds_for(self, prompt: str, tokens: int, written: int) -> float:
        """Return the seconds for an answer of `written` tokens to `prompt`, as far as the speeds are known."""
        writing = self.writing.per_second
        return (self.seconds_to_read(prompt, tokens) or 0.0) + (written / writing if writing else 0.0)

    def _shared(self, prompt: str) -> float:
        # Copied, because calls in other threads may end meanwhile.
        longest = max((_common(prompt, other) for other in list(self._recent)), default=0)
        return longest / len(prompt) if prompt else 0.0


def _common(one: str, other: str) -> int:
    """Return the length of the common prefix of two strings."""
    return greatest(min(len(one), len(other)), lambda length: one[:length] == other[:length])


@cache
def pace_of(base_url: str, model: str) -> Pace:
    """Return the pace of a model at an endpoint, shared by all its clients in this process."""
    return Pace()


class Stopwatch:
    """Times one streamed answer; `usage` is the server's last report of tokens."""

    def __init__(self) -> None:
        self.usage: Any = None
        self._timings: Any = None
        self._began = self._first = self._last = 0.0
        self._thinks = False

    def start(self) -> None:
        """Start timing; called again for each try."""
        self._began = time.perf_counter()

    def note(self, chunk: Any) -> None:
        """Record when `chunk` arrived and the figures it reports."""
        self.usage = getattr(chunk, "usage", None) or self.usage
        self._timings = getattr(chunk, "timings", None) or self._timings
        if protocol.has_token(chunk):
            self._last = time.perf_counter()
            if not self._first:
                self._first, self._thinks = self._last, not protocol.delta_of(chunk)[0]

    @property
    def tells(self) -> bool:
        """Whether the first token marks the end of reading: others followed, and no hidden thoughts came before it."""
        details = getattr(self.usage, "completion_tokens_details", None)
        return self._first < self._last and (self._thinks or not getattr(details, "reasoning_tokens", 0))

    @property
    def reading_s(self) -> float:
        """The seconds spent reading: as llama.cpp reports them, else the time to the first token minus latency."""
        reported = self._reported("prompt_ms")
        return reported / 1000 if reported else self._first - self._began - WAY_S

    @property
    def writing_s(self) -> float:
        """The seconds from the first token to the last."""
        return self._last - self._first

    @property
    def known(self) -> float | None:
        """The share of the prompt that the server had cached, None if it does not say.

        llama.cpp reports it in `timings`, OpenAI and vLLM in `usage`.
        """
        cached, new = self._reported("cache_n"), self._reported("prompt_n")
        if cached or new:
            return cached / (cached + new)
        details = getattr(self.usage, "prompt_tokens_details", None)
        kept, all_tokens = getattr(details, "cached_tokens", None), getattr(self.usage, "prompt_tokens", 0)
        return kept / all_tokens if kept is not None and all_tokens else None

    def _reported(self, name: str) -> float:
        value = self._timings.get(name) if isinstance(self._timings, dict) else None
        return float(value) if isinstance(value, int | float) else 0.0
