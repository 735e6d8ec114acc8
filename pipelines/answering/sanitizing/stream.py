"""What passes between readers and a language model: what it may see, and what may leave the server.

Knows text alone: no hits, no prompts, no model and no HTTP.
"""

from collections.abc import Collection, Sequence

from pipelines.answering.sanitizing.markdown import MarkdownFilter, origin
from pipelines.answering.sanitizing.secrets import SecretFilter
from pipelines.characters import clean_for_reader


def sanitize(
    text: str, hits: int, origins: Collection[str], secrets: Sequence[str] = (), *, allowed: Sequence[str] = ()
) -> str:
    """What may leave of a whole `text`; see AnswerSanitizer."""
    filter_ = AnswerSanitizer(hits, origins, secrets, allowed=allowed)
    return filter_.feed(text) + filter_.close()


class AnswerSanitizer:
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
        self._markup = MarkdownFilter(hits, frozenset(filter(None, map(origin, origins))))
        self._withholding = SecretFilter(secrets, allowed)

    def feed(self, delta: str) -> str:
        """What may leave now that `delta` has come."""
        return self._withholding.feed(self._markup.feed(clean_for_reader(delta)))

    def close(self) -> str:
        """The rest, as nothing comes any more."""
        return self._withholding.feed(self._markup.close()) + self._withholding.close()
