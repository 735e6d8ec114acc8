"""Removes from a text the characters that its receiver must not get.

One function per receiver, since they do not want the same: a database loads almost everything, a tokenizer needs every
character in its place, a page may be tidied, a language model must see what a person sees, a person must be able to
read their own script. Knows nothing of the receivers.
"""

import re
import unicodedata
from collections.abc import Mapping
from typing import Any

_SURROGATE = re.compile("[\ud800-\udfff]")
_LINE_END = re.compile("\r\n?|[\u0085\u2028\u2029]")
_SPACE = re.compile("[\v\f\x1c-\x1f]")
_CONTROL = re.compile("[\x00-\x08\x0e-\x1b\x7f-\x9f]")

# Default_Ignorable_Code_Point of the Unicode Character Database, and what else is of category Cf or Cs:
# fillers, joiners, bidirectional controls, variation selectors, tags. A few of Cf (Arabic number signs) do show.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff\U000110bd\U000110cd"
    "\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
# As _INVISIBLE without the joiners and the emoji selector, which the reader of an answer may need; and controls.
_SMUGGLED = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0e\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff\U000e0000-\U000e0fff\x00-\x08\x0e-\x1b\x7f-\x9f]"
)
# Controls but tab and line feed; lone surrogates; characters without width that hide text or break words
# (soft hyphen, zero width, bidi overrides, variation selectors, BOM, tags) and noncharacters.
_GARBAGE = re.compile(
    "[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f\ud800-\udfff\u00ad\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064"
    "\u2066-\u206f\ufe00-\ufe0f\ufeff\ufffe\uffff\U000e0000-\U000e007f\U000e0100-\U000e01ef]"
    # Joiners, but where they are spelling: after a letter of the Arabic, Indic and South East Asian scripts.
    "|(?<![\u0600-\u08ff\u0900-\u0dff\u1000-\u109f\u1780-\u18aa])[\u200c\u200d]"
)


def clean_for_storage(text: str) -> str:
    """Remove NUL and lone surrogates: Postgres and JSON in UTF-8 refuse them, and one aborts a whole COPY."""
    return text.replace("\0", "").encode("utf-8", "ignore").decode("utf-8")


def clean_parameters(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a statement with their texts, also in lists and tuples, cleaned for storage."""
    return {name: clean_value(value) for name, value in values.items()}


def clean_value(value: Any) -> Any:
    """Return a value cleaned for storage, a tuple as the list that Postgres takes."""
    if isinstance(value, str):
        return clean_for_storage(value)
    return [clean_value(part) for part in value] if isinstance(value, (list, tuple)) else value


def clean_for_tokenizer(text: str) -> str:
    """Replace each lone surrogate by U+FFFD: no tokenizer takes one. The length stays."""
    return _SURROGATE.sub("\ufffd", text)


def clean_page(text: str) -> str:
    """Remove controls, lone surrogates and invisible characters from the text of a page; return it in Unicode's NFC.

    Every line ends with a line feed.
    """
    if text.isascii() and text.replace("\n", "").isprintable():
        return text
    return unicodedata.normalize("NFC", _GARBAGE.sub("", text.replace("\r\n", "\n").replace("\r", "\n")))


def clean_for_model(text: str) -> str:
    """Return `text` as a person sees it: without invisible and format characters, in Unicode's NFC.

    Instructions hidden in tag characters, zero-width characters or variation selectors do not reach a model this way.
    The price: joined emoji fall apart into their parts, scripts that need joiners (Persian, several Indic ones)
    lose ligatures and a few word breaks, right-to-left overrides are gone. So use it only for the copy that a language
    model is shown: what is stored, searched, snipped and returned keeps its characters.
    """
    text = _SPACE.sub(" ", _LINE_END.sub("\n", text))
    return unicodedata.normalize("NFC", _CONTROL.sub("", _INVISIBLE.sub("", text)))


def clean_for_reader(text: str) -> str:
    """Remove controls and invisible characters but the joiners and emoji selectors that a reader may need."""
    return _SMUGGLED.sub("", text)
