"""Filters what leaves the server of a language model's answer, while it streams.

Knows text only: no hits, no prompts, no model and no HTTP.
"""

from collections.abc import Collection, Sequence

from pipelines.answering.sanitizing.markdown import MarkdownFilter
from pipelines.answering.sanitizing.secrets import SecretFilter
from pipelines.answering.sanitizing.urls import AllowedOrigins, origin
from pipelines.characters import clean_for_reader


def sanitize(
    text: str, hits: int, origins: Collection[str], secrets: Sequence[str] = (), *, allowed: Sequence[str] = ()
) -> str:
    """Return what may leave of a whole `text`; see AnswerSanitizer."""
    sanitizer = AnswerSanitizer(hits, origins, secrets, allowed=allowed)
    return sanitizer.feed(text) + sanitizer.close()


class AnswerSanitizer:
    """A streaming filter of a language model's text; the result does not depend on the chunks.

    - `[n]` beyond 1..`hits` is removed, with the space before it; `[1, 7]` and `[1-3]` become `[1]` and `[1][2][3]`.
      Code, fenced or in backticks, keeps its brackets.
    - A URL whose scheme, host and port are not among `origins` (`https://docs.ray.io`) is removed, in code too, which
      may only have loopback hosts besides: a Markdown link keeps its text, an image its alternative text, a raw HTML
      tag that leads elsewhere or runs something is removed whole, a bare URL becomes `(link removed)`.
    - Long runs of `secrets` become `(withheld)`, unless they are of a text in `allowed` (secrets.py).
    - Invisible characters are removed; joiners and the emoji selector stay, as scripts and emoji need them.

    Plain words leave with the delta they came in; only what may begin something else is held.
    """

    def __init__(
        self, hits: int, origins: Collection[str], secrets: Sequence[str] = (), *, allowed: Sequence[str] = ()
    ) -> None:
        self._markdown = MarkdownFilter(hits, AllowedOrigins(frozenset(filter(None, map(origin, origins)))))
        self._secrets = SecretFilter(secrets, allowed)

    def feed(self, delta: str) -> str:
        """Return the text that may leave now that `delta` has come."""
        return self._secrets.feed(self._markdown.feed(clean_for_reader(delta)))

    def close(self) -> str:
        """Return the rest, as no more text comes."""
        return self._secrets.feed(self._markdown.close()) + self._secrets.close()
