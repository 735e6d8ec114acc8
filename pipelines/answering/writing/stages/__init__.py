"""Passes the text of an answer through one stage after another while it comes."""

from collections.abc import Sequence
from typing import Any, Protocol


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
