"""Counts the tokens of a string for a language model, with its tokenizer file or by an estimate.

Knows no model and no endpoint. The counters of embedding models are in `pipelines.embedding.tokens`.
"""

import re
from collections.abc import Callable
from pathlib import Path

from pipelines.text.cleaning import clean_for_tokenizer

# Where every current tokenizer splits: words, here in tokens of three ASCII letters; digits (Llama 2 and Gemma split
# every digit); line breaks and tabs; any other character.
_PIECES = re.compile(r"[A-Za-z]{1,3}|[0-9]|[\t-\r\x1c-\x1f]+|[^ \t-\r\x1c-\x1fA-Za-z0-9]")
# Beyond ASCII, one token per two bytes of UTF-8: Chinese has 3 bytes and 1 to 2 tokens per character. Characters in
# this range count as two tokens.
_LONG = re.compile("[\u0800-\U0010ffff]")


class TokenizerNotFound(ValueError):
    """The path is not a readable `tokenizer.json`."""


def make_counter(tokenizer: str) -> Callable[[str], int]:
    """Return an exact counter for a `tokenizer.json` or its folder, or `estimate` for "".

    Raises TokenizerNotFound.
    """
    if not tokenizer:
        return estimate
    from tokenizers import Tokenizer

    path = Path(tokenizer)
    path = path / "tokenizer.json" if path.is_dir() else path
    try:
        model = Tokenizer.from_str(path.read_text("utf-8"))
    except Exception as error:  # the library raises plain Exception for a file that is not a tokenizer
        raise TokenizerNotFound(f"tokenizer {tokenizer!r}: give a readable tokenizer.json or its folder") from error
    model.no_truncation()
    model.no_padding()
    return lambda text: len(model.encode(clean_for_tokenizer(text), add_special_tokens=False).ids)


def estimate(text: str) -> int:
    """Estimate the token count of `text`, on the high side."""
    return len(_PIECES.findall(text)) + (0 if text.isascii() else len(_LONG.findall(text)))
