"""Takes invisible and format characters out of a text."""

import re
import unicodedata

# Default_Ignorable_Code_Point of the Unicode Character Database, and what else is of category Cf or Cs:
# fillers, joiners, bidirectional controls, variation selectors, tags. A few of Cf (Arabic number signs) do show.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff\U000110bd\U000110cd"
    "\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_LINE_END = re.compile("\r\n?|[\u0085\u2028\u2029]")
_SPACE = re.compile("[\v\f\x1c-\x1f]")
# As _INVISIBLE without the joiners and the emoji selector: an answer's reader may need them.
_SMUGGLED = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0e\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff\U000e0000-\U000e0fff\x00-\x08\x0e-\x1b\x7f-\x9f]"
)
_CONTROL = re.compile("[\x00-\x08\x0e-\x1b\x7f-\x9f]")


def visible(text: str) -> str:
    """`text` as its reader sees it: without invisible and format characters, in Unicode's normal form C.

    Instructions hidden in tag characters, zero-width characters or variation selectors do not reach a model so.
    The price: joined emoji fall apart into their parts, scripts that need joiners (Persian, several Indic ones)
    lose ligatures and a few word breaks, right-to-left overrides are gone. So it is for the copy that a language
    model is shown alone: what is stored, searched, snipped and returned keeps its characters.
    """
    text = _SPACE.sub(" ", _LINE_END.sub("\n", text))
    return unicodedata.normalize("NFC", _CONTROL.sub("", _INVISIBLE.sub("", text)))


def without_smuggled(text: str) -> str:
    """Remove invisible characters from what a reader gets, but keep the joiners and emoji selectors it may need."""
    return _SMUGGLED.sub("", text)
