"""About how many tokens a text has, fast: each word is counted once and remembered.

Exact for models that split at spaces before all else (BERT), close for others: whoever needs the exact count asks
the model's tokenizer.
"""

import re
from collections.abc import Callable

# A text never weighs less than its length divided by this: a model reads a word of 100,000 characters as one
# unknown token, and indentation as nothing. English prose has 4 to 5 characters a token.
CHARACTERS_PER_TOKEN = 16

REMEMBERED = 4_000_000  # characters of words kept, about 50 MB; all of Ray's documentation has 1,000,000

_WORD = re.compile(r"\s?\S+")  # with the space before it, which byte-level models read as part of the word


class WordWeights:
    """Weighs texts in tokens, special tokens not included; `count` is asked for words never seen before."""

    def __init__(self, count: Callable[[list[str]], list[int]]) -> None:
        self._count = count
        self._known: dict[str, int] = {}
        self._characters = 0

    def __call__(self, texts: list[str]) -> list[int]:
        words = [_WORD.findall(text) for text in texts]
        self._learn({word for line in words for word in line})
        tokens = (sum(map(self._known.__getitem__, line)) for line in words)
        return [max(n, _by_length(text)) for n, text in zip(tokens, texts, strict=True)]

    def _learn(self, words: set[str]) -> None:
        if self._characters > REMEMBERED:
            self._known.clear()
            self._characters = 0
        new = [word for word in words if word not in self._known]
        if new:
            self._known.update(zip(new, self._count(new), strict=True))
            self._characters += sum(map(len, new))


def _by_length(text: str) -> int:
    """The least that a text of this length weighs."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)


def characters(texts: list[str]) -> list[int]:
    """Weighs texts by their length."""
    return [len(text) for text in texts]
