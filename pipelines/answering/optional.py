"""Runs optional steps: if one fails, the answer only lacks that step's part."""

import logging
from collections.abc import Awaitable
from typing import TypeVar

from pipelines.answering.trace import Trace

log = logging.getLogger(__name__)

T = TypeVar("T")


async def run(trace: Trace, step: str, call: Awaitable[T], fallback: T, part: str = "") -> T:
    """Return the result of `call`, timed as `step`; if it fails, return `fallback`.

    A failure marks `part` as missing from the answer; its default is `step`.
    """
    try:
        with trace.step(step):
            return await call
    except Exception as error:
        log.warning("answering without %s: %s: %s", part or step, type(error).__name__, error)
        trace.mark_degraded(part or step)
        return fallback
