"""Looks up the page that a reader has open, and what a question means by it."""

import logging
from typing import Protocol

from pipelines.answering.agents import StepUnavailable
from pipelines.answering.trace import Trace
from pipelines.answering.understanding.place import OpenPage, open_page
from pipelines.store import Place, StoreUnavailable

log = logging.getLogger(__name__)

PAGE = "page"  # the step, and what stands in `degraded` where it failed


class PlaceFinder(Protocol):
    """Finds the page of an index at a URL."""

    async def aplace(self, url: str, collection: str | None = None) -> Place | None: ...


async def look_at_page(
    finder: PlaceFinder, asked: str, url: str, collection: str | None, alone: bool, trace: Trace
) -> OpenPage:
    """Return what the page at `url` ("": none) says about a question; nothing if the index does not hold it.

    `alone`: no turn before the question could be what its "this" refers to.
    """
    if not url:
        return OpenPage(asked)
    try:
        with trace.step(PAGE):
            return open_page(asked, await finder.aplace(url, collection), alone)
    except (StoreUnavailable, StepUnavailable) as error:
        log.warning("answering without the open page: %s", error)
        trace.lose(PAGE)
        return OpenPage(asked)
