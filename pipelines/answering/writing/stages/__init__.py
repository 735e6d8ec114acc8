"""Passes the text of an answer through a series of stages while it streams.

A stage takes time linear in the text and holds back a bounded amount of it, whatever a model writes.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

LONGEST_DELTA = 1_000  # characters that pass the stages at a time; other questions run in between


class TextStage(Protocol):
    """Transforms a text that comes in parts; the result does not depend on how it is split.

    The sanitizer maps text to text, the reader maps text to pieces, and later stages map pieces to pieces.
    """

    def feed(self, part: Any, /) -> Any:
        """Add `part` and return the output that is final now."""
        ...

    def close(self) -> Any:
        """Return the rest, after the end of the text."""
        ...


def cut(delta: str) -> Iterator[str]:
    """Yield a delta in parts that each pass the stages quickly."""
    for at in range(0, len(delta), LONGEST_DELTA):
        yield delta[at : at + LONGEST_DELTA]


class TextStages:
    """Several stages as one: each stage's output is the next one's input."""

    def __init__(self, stages: Sequence[TextStage]) -> None:
        self._stages = stages

    def feed(self, delta: str) -> Any:
        """Add `delta` and return the output of the last stage."""
        part: Any = delta
        for stage in self._stages:
            part = stage.feed(part)
        return part

    def close(self) -> Any:
        """Return the rest of all stages, after the end of the text."""
        rest: Any = ""
        for stage in self._stages:
            rest = stage.feed(rest) + stage.close()
        return rest
