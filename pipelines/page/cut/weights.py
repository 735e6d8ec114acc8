"""Estimates the number of tokens of a text quickly: each word is counted once and cached.

The estimate is exact for models that split at spaces first (BERT) and close for others. The model's tokenizer gives the
exact count.
"""

import re

from pipelines.embedding.tokens import Count, WordCounts

# A text weighs at least its length divided by this: a model reads a word of 100,000 characters as one unknown token,
# and ignores indentation. English prose has 4 to 5 characters per token.
CHARACTERS_PER_TOKEN = 16

_WORD = re.compile(r"\s?\S+")  # with the space before it, which byte-level models read as part of the word


class WordWeights:
    """Weighs texts in tokens, without special tokens. `count` is called for new words only."""

    def __init__(self, count: Count) -> None:
        self._words = WordCounts(count)

    def __call__(self, texts: list[str]) -> list[int]:
        totals = self._words.totals(list(map(_WORD.findall, texts)))
        return [max(n, -(-len(text) // CHARACTERS_PER_TOKEN)) for n, text in zip(totals, texts, strict=True)]


def count_characters(texts: list[str]) -> list[int]:
    """Weigh texts by their length."""
    return [len(text) for text in texts]
