"""Looks up the verified answer to a question, as a step of the engine that may fail."""

import logging

from pipelines.answering.trace import Trace
from pipelines.answering.understanding.place import OpenPage
from pipelines.answering.verified.book import AnswerBook, VerifiedMatch
from pipelines.records import VERIFIED, Filters

log = logging.getLogger(__name__)


async def look_up(
    book: AnswerBook | None, asked: str, collection: str | None, filters: Filters, page: OpenPage, trace: Trace
) -> VerifiedMatch | None:
    """Return the verified answer; none where the question is about the open page, or unclear in what it refers to."""
    if book is None or trace.unclear or page.focus:
        return None
    try:
        with trace.step(VERIFIED):
            return await book.find(asked, collection, filters, page.place.version if page.place else None)
    except LookupError:  # no live index, or no collection was named: retrieval says so
        return None
    except Exception as error:
        log.warning("answering without verified answers: %s: %s", type(error).__name__, error)
        trace.lose(VERIFIED)
        return None
