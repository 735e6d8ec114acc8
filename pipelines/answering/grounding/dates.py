"""Dates the sources of an answer: when their pages were last checked and changed."""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

from pipelines.records import Answer, Citation
from pipelines.store import Store, StoreUnavailable

log = logging.getLogger(__name__)


class SourceDates:
    """Dates sources with the page dates in `store`; if that fails, the answer is just undated."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def add(self, answer: Answer) -> Answer:
        """Return the answer with dates in its citations."""
        pages = {_page_of(citation) for citation in answer.citations}
        if not (pages and answer.collection):
            return answer
        try:
            found = await asyncio.to_thread(self._store.page_dates, answer.collection, sorted(pages))
        except StoreUnavailable as error:
            log.warning("the sources of an answer are not dated: %s", error)
            return answer
        return replace(answer, citations=tuple(_dated(one, found.get(_page_of(one), {})) for one in answer.citations))


def _page_of(citation: Citation) -> str:
    return citation.source.partition("#")[0]


def _dated(citation: Citation, dates: Mapping[str, datetime | None]) -> Citation:
    return replace(citation, checked=_text_of(dates.get("checked")), changed=_text_of(dates.get("changed")))


def _text_of(time: datetime | None) -> str:
    return time.astimezone(UTC).isoformat(timespec="seconds") if time else ""
