"""Counts the tokens of a text for a language model, by its tokenizer's file or estimated.

Knows no model and no endpoint; the embedding models' counters are in `pipelines.embedding.tokens`.
"""

import re
from collections.abc import Callable
from pathlib import Path

from pipelines.text.cleaning import clean_for_tokenizer

# What every current tokenizer splits at: a word, here in tokens of three ASCII letters, a digit (Llama 2 and Gemma keep
# each apart), line breaks and tabs, any other sign.
_PIECES = re.compile(r"[A-Za-z]{1,3}|[0-9]|[\t-\r\x1c-\x1f]+|[^ \t-\r\x1c-\x1fA-Za-z0-9]")
# Two bytes of UTF-8 to a token beyond ASCII: Chinese has 3 bytes a character and 1 to 2 tokens. These have more.
_LONG = re.compile("[\u0800-\U0010ffff]")


class TokenizerNotFound(ValueError):
    """The path names no `tokenizer.json` that can be read."""


def make_counter(tokenizer: str) -> Callable[[str], int]:
    """Return an exact counter for the path of a `tokenizer.json` or its folder, `estimate` for "".

    Raises TokenizerNotFound.
    """
    if not tokenizer:
        return estimate
    from tokenizers import Tokenizer

    path = Path(tokenizer)
    path = path / "tokenizer.json" if path.is_dir() else path
    try:
        model = Tokenizer.from_str(path.read_text("utf-8"))
    except Exception as error:  # the library raises plain Exception for a file that is no tokenizer
        raise TokenizerNotFound(f"tokenizer {tokenizer!r}: give a readable tokenizer.json or its folder") from error
    model.no_truncation()
    model.no_padding()
    return lambda text: len(model.encode(clean_for_tokenizer(text), add_special_tokens=False).ids)


def estimate(text: str) -> int:
    """Estimate the tokens of `text`, rather too many than too few."""
    return len(_PIECES.findall(text)) + (0 if text.isascii() else len(_LONG.findall(text)))
