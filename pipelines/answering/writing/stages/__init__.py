"""Passes the text of an answer through one stage after another while it comes.

The time that a stage takes grows like the text, and what it holds is bounded: a model may write anything.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

LONGEST_DELTA = 1_000  # characters that pass the stages at a time; between two others have their turn


class TextStage(Protocol):
    """Changes a text that comes in parts; the result does not depend on the parts.

    The sanitizer takes and gives text, the reader makes pieces of text, what follows takes and gives pieces.
    """

    def feed(self, part: Any, /) -> Any:
        """Return what may leave now that `part` has come."""
        ...

    def close(self) -> Any:
        """Return the rest, as no more comes."""
        ...


def cut(delta: str) -> Iterator[str]:
    """Yield a delta in parts that pass the stages in a moment each."""
    for at in range(0, len(delta), LONGEST_DELTA):
        yield delta[at : at + LONGEST_DELTA]


class TextStages:
    """Several stages as one: what leaves a stage is fed to the next one."""

    def __init__(self, stages: Sequence[TextStage]) -> None:
        self._stages = stages

    def feed(self, delta: str) -> Any:
        """Return what leaves the last stage now that `delta` has come."""
        part: Any = delta
        for stage in self._stages:
            part = stage.feed(part)
        return part

    def close(self) -> Any:
        """Return the rest of all stages, as no more text comes."""
        rest: Any = ""
        for stage in self._stages:
            rest = stage.feed(rest) + stage.close()
        return rest
