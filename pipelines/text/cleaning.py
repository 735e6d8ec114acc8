"""Removes characters that the consumer of a string must not get.

There is one function per consumer, because their needs differ: a database accepts almost everything, a tokenizer needs
every character in its position, a page may be tidied, a language model must see the same as a person, and readers must
be able to read their own script. Independent of the consumers.
"""

import re
import unicodedata
from collections.abc import Mapping
from typing import Any

_SURROGATE = re.compile("[\ud800-\udfff]")
_LINE_END = re.compile("\r\n?|[\u0085\u2028\u2029]")
_SPACE = re.compile("[\v\f\x1c-\x1f]")
_CONTROL = re.compile("[\x00-\x08\x0e-\x1b\x7f-\x9f]")

# Default_Ignorable_Code_Point of the Unicode Character Database, plus the rest of categories Cf and Cs:
# fillers, joiners, bidirectional controls, variation selectors, tags. A few of Cf (Arabic number signs) are visible.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff\U000110bd\U000110cd"
    "\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
# _INVISIBLE plus control characters, minus the joiners and the emoji selector, which a reader may need.
_SMUGGLED = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0e\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff\U000e0000-\U000e0fff\x00-\x08\x0e-\x1b\x7f-\x9f]"
)
# Controls except tab and line feed; lone surrogates; zero-width characters that hide text or split words
# (soft hyphen, zero width, bidi overrides, variation selectors, BOM, tags); noncharacters.
_GARBAGE = re.compile(
    "[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f\ud800-\udfff\u00ad\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064"
    "\u2066-\u206f\ufe00-\ufe0f\ufeff\ufffe\uffff\U000e0000-\U000e007f\U000e0100-\U000e01ef]"
    # Joiners, except after letters of Arabic, Indic and Southeast Asian scripts: there they are part of the spelling.
    "|(?<![\u0600-\u08ff\u0900-\u0dff\u1000-\u109f\u1780-\u18aa])[\u200c\u200d]"
)


def clean_for_storage(text: str) -> str:
    """Remove NUL and lone surrogates. Postgres and UTF-8 JSON reject them, and a single one aborts a whole COPY."""
    return text.replace("\0", "").encode("utf-8", "ignore").decode("utf-8")


def clean_parameters(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a statement with all strings cleaned for storage, also those in lists and tuples."""
    return {name: clean_value(value) for name, value in values.items()}


def clean_value(value: Any) -> Any:
    """Return a value cleaned for storage. A tuple becomes a list, which Postgres accepts."""
    if isinstance(value, str):
        return clean_for_storage(value)
    return [clean_value(part) for part in value] if isinstance(value, (list, tuple)) else value


def clean_for_tokenizer(text: str) -> str:
    """Replace lone surrogates, which tokenizers reject, by U+FFFD. The length stays the same."""
    return _SURROGATE.sub("\ufffd", text)


def clean_page(text: str) -> str:
    """Remove control characters, lone surrogates and invisible characters from a page's text, and normalize to NFC.

    Every line ends with a line feed.
    """
    if text.isascii() and text.replace("\n", "").isprintable():
        return text
    return unicodedata.normalize("NFC", _GARBAGE.sub("", text.replace("\r\n", "\n").replace("\r", "\n")))


def is_clean_page(text: str) -> bool:
    """Return whether `clean_page` changes nothing. It looks at each distinct character once, which is fast."""
    signs = "".join(set(text))
    if signs.isascii():
        return not _GARBAGE.search(signs) and "\r" not in signs
    return (
        not (_GARBAGE.search(signs) or "\r" in signs or "\u200c" in signs or "\u200d" in signs)
        and unicodedata.is_normalized("NFC", text)
    ) or clean_page(text) == text


def clean_for_model(text: str) -> str:
    """Return `text` as a person sees it: without invisible and format characters, normalized to NFC.

    Instructions hidden in tag characters, zero-width characters or variation selectors do not reach the model. The
    price: joined emoji fall apart, scripts that need joiners (Persian, several Indic ones) lose ligatures and a few
    word breaks, and right-to-left overrides are removed. Therefore use it only for the copy that goes to a language
    model. Text that is stored, searched, excerpted or returned keeps its characters.
    """
    text = _SPACE.sub(" ", _LINE_END.sub("\n", text))
    return unicodedata.normalize("NFC", _CONTROL.sub("", _INVISIBLE.sub("", text)))


def clean_for_reader(text: str) -> str:
    """Remove control and invisible characters, except the joiners and emoji selectors that a reader may need."""
    return _SMUGGLED.sub("", text)
