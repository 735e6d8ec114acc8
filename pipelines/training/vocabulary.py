"""Adds words of a corpus to an embedding model's vocabulary, each starting as the mean of its pieces.

Knows tokenizers, models and strings; torch is imported in functions.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

WORD = re.compile(r"[^\W\d_]\w{3,}")
# A word is added if the tokenizer splits it into at least this many pieces, and if it occurs often enough in the corpus
# to train its own row. Not tuned.
PIECES, AT_LEAST = 3, 20


def frequent_words(texts: Iterable[str], tokenizer: Any, most: int) -> list[str]:
    """Return up to `most` words of `texts` that the tokenizer splits, ranked by the tokens that adding them saves.

    `tokenizer` is a `tokenizers.Tokenizer`.
    """
    counts = Counter(word.lower() for text in texts for word in WORD.findall(text))
    frequent = [word for word, count in counts.items() if count >= AT_LEAST]
    pieces = {word: len(tokenizer.encode(word, add_special_tokens=False)) for word in frequent}
    cut = [word for word in frequent if pieces[word] >= PIECES]
    return sorted(cut, key=lambda word: (-counts[word] * (pieces[word] - 1), word))[:most]


def extend_vocabulary(model: Any, words: Sequence[str]) -> int:
    """Make each of `words` one token whose vector starts as the mean of its pieces; return how many were new."""
    import torch
    from tokenizers import AddedToken

    tokenizer = model.tokenizer
    pieces = [tokenizer(word, add_special_tokens=False)["input_ids"] for word in words]
    before = len(tokenizer)
    tokenizer.add_tokens([AddedToken(word, single_word=True, normalized=True) for word in words])
    rows = max(len(tokenizer), len(token_embeddings(model).weight))  # some models have more rows than tokens
    model[0].auto_model.resize_token_embeddings(rows, mean_resizing=False)
    weights = token_embeddings(model).weight
    with torch.no_grad():
        for word, parts in zip(words, pieces, strict=True):
            place = tokenizer.convert_tokens_to_ids(word)
            if place >= before:
                weights[place] = weights[parts].mean(dim=0)
    return len(tokenizer) - before


def token_embeddings(model: Any) -> Any:
    """Return the token embedding layer."""
    return model[0].auto_model.get_input_embeddings()
