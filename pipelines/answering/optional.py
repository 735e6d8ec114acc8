"""Runs a step that an answer can go without: its failure costs its part of the answer alone."""

import logging
from collections.abc import Awaitable
from typing import TypeVar

from pipelines.answering.trace import Trace

log = logging.getLogger(__name__)

T = TypeVar("T")


async def run(trace: Trace, step: str, call: Awaitable[T], fallback: T, part: str = "") -> T:
    """Return what `call` gives, timed as `step`; where it fails, `fallback`, and the answer lacks `part` (the step)."""
    try:
        with trace.step(step):
            return await call
    except Exception as error:
        log.warning("answering without %s: %s: %s", part or step, type(error).__name__, error)
        trace.mark_degraded(part or step)
        return fallback
