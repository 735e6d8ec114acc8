"""Estimates the number of tokens of a text quickly: each word is counted once and cached.

The estimate is exact for models that split at spaces first (BERT) and close for others. The model's tokenizer gives the
exact count.
"""

import re
from collections.abc import Callable
from itertools import chain

# A text weighs at least its length divided by this: a model reads a word of 100,000 characters as one unknown token,
# and ignores indentation. English prose has 4 to 5 characters per token.
CHARACTERS_PER_TOKEN = 16

REMEMBERED = 4_000_000  # characters of cached words, about 50 MB; all of Ray's documentation has 1,000,000

_WORD = re.compile(r"\s?\S+")  # with the space before it, which byte-level models read as part of the word


class WordWeights:
    """Weighs texts in tokens, without special tokens. `count` is called for new words only."""

    def __init__(self, count: Callable[[list[str]], list[int]]) -> None:
        self._count = count
        self._known: dict[str, int] = {}
        self._characters = 0

    def __call__(self, texts: list[str]) -> list[int]:
        words = [_WORD.findall(text) for text in texts]
        self._learn(set(chain.from_iterable(words)))
        tokens = (sum(map(self._known.__getitem__, line)) for line in words)
        return [max(n, -(-len(text) // CHARACTERS_PER_TOKEN)) for n, text in zip(tokens, texts, strict=True)]

    def _learn(self, words: set[str]) -> None:
        if self._characters > REMEMBERED:
            self._known.clear()
            self._characters = 0
        new = list(words.difference(self._known))
        if new:
            self._known.update(zip(new, self._count(new), strict=True))
            self._characters += sum(map(len, new))


def count_characters(texts: list[str]) -> list[int]:
    """Weigh texts by their length."""
    return [len(text) for text in texts]
