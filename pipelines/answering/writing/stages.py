"""Passes the text of an answer through one stage after another while it comes."""

from collections.abc import Sequence
from typing import Protocol


class TextStage(Protocol):
    """Changes a text that comes in pieces; the result does not depend on the pieces."""

    def feed(self, delta: str, /) -> str:
        """Return the text that may leave now that `delta` has come."""
        ...

    def close(self) -> str:
        """Return the rest, as no more text comes."""
        ...


class TextStages:
    """Several stages as one: what leaves a stage is fed to the next one."""

    def __init__(self, stages: Sequence[TextStage]) -> None:
        self._stages = stages

    def feed(self, delta: str) -> str:
        """Return the text that leaves the last stage now that `delta` has come."""
        for stage in self._stages:
            delta = stage.feed(delta)
        return delta

    def close(self) -> str:
        """Return the rest of all stages, as no more text comes."""
        rest = ""
        for stage in self._stages:
            rest = f"{stage.feed(rest)}{stage.close()}"
        return rest
