"""Filters what leaves the server of a language model's answer, while it streams.

Knows text only: no hits, no prompts, no model and no HTTP.
"""

from collections.abc import Collection, Iterable

from pipelines.answering.sanitizing.markdown import MarkdownFilter
from pipelines.answering.sanitizing.urls import AllowedURLs, origin
from pipelines.text.cleaning import clean_for_reader


def sanitize(text: str, hits: int, origins: Collection[str], passages: Iterable[str] = ()) -> str:
    """Return what may leave of a whole `text`; see AnswerSanitizer."""
    sanitizer = AnswerSanitizer(hits, origins, passages)
    return sanitizer.feed(text) + sanitizer.close()


class AnswerSanitizer:
    """A streaming filter of a language model's text; the result does not depend on the chunks.

    - `[n]` beyond 1..`hits` is removed, with the space before it; `[1, 7]` and `[1-3]` become `[1]` and `[1][2][3]`,
      `【1】`, `[^1]` and `[Source 1]` become `[1]`.
      Code, fenced or in backticks, keeps its brackets.
    - Links lead to `origins` (`https://docs.ray.io`: scheme, host and port). A URL that leads elsewhere and stands
      letter for letter in one of `passages` stays as text: in code as it is, in prose as code, which no reader's
      software makes a link of. Any other is removed, but for loopback hosts in code: a Markdown link keeps its text, a
      bare URL becomes `(link removed)`. Of an image that leads elsewhere the alternative text stays, of a raw HTML tag
      that leads elsewhere or runs something nothing.
    - Invisible characters are removed; joiners and the emoji selector stay, as scripts and emoji need them.

    Plain words leave with the delta they came in; only what may begin something else is held.
    """

    def __init__(self, hits: int, origins: Collection[str], passages: Iterable[str] = ()) -> None:
        own = frozenset(filter(None, map(origin, origins)))
        self._markdown = MarkdownFilter(hits, AllowedURLs(own, tuple(map(clean_for_reader, passages))))

    def feed(self, delta: str) -> str:
        """Return the text that may leave now that `delta` has come."""
        return self._markdown.feed(clean_for_reader(delta))

    def close(self) -> str:
        """Return the rest, as no more text comes."""
        return self._markdown.close()
