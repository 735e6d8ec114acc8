"""Filters a language model's answer while it streams, before it leaves the server.

This module works only on text; it knows nothing about hits, prompts, models or HTTP.
"""

from collections.abc import Collection, Iterable

from pipelines.answering.sanitizing.markdown import MarkdownFilter
from pipelines.answering.sanitizing.urls import AllowedURLs, origin
from pipelines.text.cleaning import clean_for_reader


def sanitize(text: str, hits: int, origins: Collection[str], passages: Iterable[str] = ()) -> str:
    """Return the sanitized form of a complete `text`; see AnswerSanitizer."""
    sanitizer = AnswerSanitizer(hits, origins, passages)
    return sanitizer.feed(text) + sanitizer.close()


class AnswerSanitizer:
    """A streaming filter of a language model's text; the result does not depend on the chunks.

    - `[n]` beyond 1..`hits` is removed, with the space before it; `[1, 7]` and `[1-3]` become `[1]` and `[1][2][3]`,
      `【1】`, `[^1]` and `[Source 1]` become `[1]`.
      Code, fenced or in backticks, keeps its brackets.
    - Links may lead only to `origins` (`https://docs.ray.io`: scheme, host and port). A URL that leads elsewhere stays
      as text if it occurs in one of `passages`, apart from numbers and placeholders: unchanged in code, and as code in
      prose, where no renderer links it. Other URLs are removed, except loopback hosts in code: a Markdown link keeps
      its text, and a bare URL becomes `(link removed)`. An image that leads elsewhere leaves its alternative text; a
      raw HTML tag that leads elsewhere or runs code leaves nothing.
    - Invisible characters are removed; joiners and the emoji selector stay, since scripts and emoji need them.

    Plain words are emitted with their delta; only text that may begin a construct is held back.
    """

    def __init__(self, hits: int, origins: Collection[str], passages: Iterable[str] = ()) -> None:
        own = frozenset(filter(None, map(origin, origins)))
        self._markdown = MarkdownFilter(hits, AllowedURLs(own, tuple(map(clean_for_reader, passages))))

    def feed(self, delta: str) -> str:
        """Add `delta` and return the text that can be emitted now."""
        return self._markdown.feed(clean_for_reader(delta))

    def close(self) -> str:
        """Return the rest, after the end of the text."""
        return self._markdown.close()
