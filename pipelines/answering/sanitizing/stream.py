"""What passes between readers and a language model: what it may see, and what may leave the server.

Knows text alone: no hits, no prompts, no model and no HTTP.
"""

import re
import unicodedata
from collections.abc import Collection, Sequence

from pipelines.answering.sanitizing.markdown import Markup, origin
from pipelines.answering.sanitizing.secrets import Withholding

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


def outgoing(
    text: str, hits: int, origins: Collection[str], secrets: Sequence[str] = (), *, allowed: Sequence[str] = ()
) -> str:
    """What may leave of a whole `text`; see Outgoing."""
    filter_ = Outgoing(hits, origins, secrets, allowed=allowed)
    return filter_.feed(text) + filter_.close()


class Outgoing:
    """A streaming filter of what a language model wrote: whatever the chunks, the same text leaves.

    - `[n]` beyond 1..`hits` goes, with the space before it; `[1, 7]` and `[1-3]` become `[1]` and `[1][2][3]`.
      Code, fenced or in backticks, keeps its brackets.
    - A URL whose scheme, host and port are not among `origins` (`https://docs.ray.io`) goes, in code too, where only
      loopback hosts may stand: a Markdown link keeps its text, an image its alternative text, a raw HTML tag that
      leads elsewhere or runs something goes whole, a bare URL becomes `(link removed)`.
    - Long runs of `secrets` become `(withheld)`, unless of a text in `allowed` (withhold.py).
    - Invisible characters go; joiners and the emoji selector stay, as what is written needs them.

    Plain words leave with the delta they came in; only what may be the beginning of something else is held.
    """

    def __init__(
        self, hits: int, origins: Collection[str], secrets: Sequence[str] = (), *, allowed: Sequence[str] = ()
    ) -> None:
        self._markup = Markup(hits, frozenset(filter(None, map(origin, origins))))
        self._withholding = Withholding(secrets, allowed)

    def feed(self, delta: str) -> str:
        """What may leave now that `delta` has come."""
        return self._withholding.feed(self._markup.feed(_SMUGGLED.sub("", delta)))

    def close(self) -> str:
        """The rest, as nothing comes any more."""
        return self._withholding.feed(self._markup.close()) + self._withholding.close()
