"""Splits and packs passages so that they fit into one call of a language model.

Knows strings and a token counter; knows no prompt wording and no model. Counts are assumed to be monotone (a longer
string never has fewer tokens) but not additive, so every combination is counted again.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pipelines.text.counts import counted

T = TypeVar("T")
Count = Callable[[str], int]

ELLIPSIS = "\n…\n"
# Parts of one passage overlap by this share of a part, so that a sentence at a cut is complete in one of them
# (LlamaIndex's PromptHelper has the same default).
OVERLAP = 0.1


class WindowTooSmall(ValueError):
    """A model's window is too small for the minimum that a call needs."""


@dataclass(frozen=True, slots=True)
class Window:
    """Token budget of one call: `prompt` for the user prompt, `context` of it for passages, `answer` for the answer."""

    size: int
    prompt: int
    context: int
    answer: int
    count: Count

    @classmethod
    def of(cls, size: int, share: float, answer: int, overhead: int, count: Count) -> "Window":
        """Return the budget of a window of `size` tokens with `overhead` for other messages and `answer` for the reply.

        `share` is the part of the window that passages may fill. Raises WindowTooSmall.
        """
        prompt = size - answer - overhead
        if prompt <= 0:
            raise WindowTooSmall(
                f"a context window of {counted(size, 'token')} has no room for a prompt: the answer takes {answer} "
                f"(max_tokens), system prompt and history {overhead}; lower max_tokens or shorten them"
            )
        return cls(size, prompt, int(size * share), answer, count)

    def too_small(self, needed: int) -> WindowTooSmall:
        """Return the error for a prompt that needs `needed` tokens even without a passage."""
        return WindowTooSmall(
            f"a context window of {counted(self.size, 'token')} has no room for one token of context: the prompt may "
            f"take {self.prompt} (context {self.context} of them, and the answer {self.answer} more), and needs "
            f"{needed} without any; raise context_window or context_share, lower max_tokens, or shorten the prompts"
        )


def greatest(most: int, fits: Callable[[int], bool]) -> int:
    """Return the greatest number from 0 to `most` that fits; 0 is assumed to fit.

    Doubles, then bisects, so that the numbers tried stay small: counting long strings is slow.
    """
    low, high = 0, 1
    while high <= most and fits(high):
        low, high = high, 2 * high
    high = min(high - 1, most)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


def split(text: str, fits: Callable[[str], bool], count: Count, overlap: float = OVERLAP) -> list[str]:
    """Split `text` into parts that fit; each repeats the last `overlap` of the previous part's tokens.

    Cuts are at line ends or between words; a word is cut only if it does not fit by itself. Blank text has no parts. If
    not even one character fits, the list is empty.
    """
    text = text.strip("\n")
    if not text.strip() or fits(text):
        return [text] if text.strip() else []
    parts: list[str] = []
    start = end = 0
    while end < len(text):
        reached = _end(text, start, fits)
        if reached <= end:
            start, reached = end, _end(text, end, fits)
        if reached <= end:
            return []
        parts.append(text[start:reached])
        start, end = _next_start(text, start, reached, count, overlap), reached
    return [part.strip("\n") for part in parts if part.strip()]


def _end(text: str, start: int, fits: Callable[[str], bool]) -> int:
    """Return the end of the longest part from `start` that fits, moved back to a boundary."""
    end = start + greatest(len(text) - start, lambda length: fits(text[start : start + length]))
    if end in (start, len(text)) or text[end] == "\n":
        return end
    line = text.rfind("\n", start + (end - start) // 2, end) + 1
    word = next((i for i in range(end, start, -1) if text[i].isspace() or text[i - 1].isspace()), end)
    at = line or word
    blank = not text[start:at].strip()
    return at if fits(text[start:at]) and not blank else end


def _next_start(text: str, start: int, end: int, count: Count, overlap: float) -> int:
    """Return where the next part begins: as many whole words before `end` as the overlap allows."""
    most = int(count(text[start:end]) * overlap)
    length = greatest((end - start) // 2, lambda length: count(text[end - length : end]) <= most)
    return next((i for i in range(end - length, end) if text[i - 1].isspace()), end) if length else end


def pack(items: Sequence[T], fits: Callable[[Sequence[T]], bool], least: int = 1) -> list[list[T]]:
    """Pack `items` in order, filling one pack after the other; a pack has `least` items or more.

    The last pack may have fewer. A pack of `least` items is made even if it does not fit.
    """
    packs: list[list[T]] = []
    while left := items[sum(map(len, packs)) :]:
        packs.append(list(left[: max(least, _first(left, fits))]))
    return packs


def _first(items: Sequence[T], fits: Callable[[Sequence[T]], bool]) -> int:
    """Return how many of the first `items` fit together; usually all of them."""
    return len(items) if fits(items) else greatest(len(items) - 1, lambda number: fits(items[:number]))


def batches(items: Sequence[T], size: int) -> list[list[T]]:
    """Return `items` in order, in lists of `size`."""
    return [list(items[at : at + size]) for at in range(0, len(items), size)]


def squeeze(texts: Sequence[str], fits: Callable[[Sequence[str]], bool]) -> list[str]:
    """Cut `texts` to the greatest common length, in characters, at which they fit together; short ones stay whole.

    All are empty if not even one character of each fits.
    """
    if fits(texts):
        return list(texts)
    longest = max(map(len, texts), default=0)
    length = greatest(longest, lambda length: fits([text[:length] for text in texts]))
    return [text[:length] for text in texts]


def shorten(text: str, fits: Callable[[str], bool]) -> str:
    """Cut out the middle of `text`, keeping as much of its beginning and end as fits; "" if nothing fits."""
    if fits(text):
        return text

    def cut(length: int) -> str:
        head = (length + 1) // 2
        return f"{text[:head]}{ELLIPSIS}{text[len(text) - (length - head) :]}" if length else ""

    return cut(greatest(len(text), lambda length: fits(cut(length))))
