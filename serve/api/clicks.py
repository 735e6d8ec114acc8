"""Handler of POST /clicks: which source of an answer or a search a reader opened.

Searches are not recorded. The id of a search contains the query and digests of the results, signed, so that only a
source that was shown can be reported. Records no address, no session and no key.
"""

import base64
import hashlib
import hmac
import json
import logging
import time
from collections.abc import Callable
from typing import NamedTuple

from fastapi import Request

from pipelines.answering.retrieval.search import Retrieval
from pipelines.store import Store, StoreUnavailable
from serve.api.answers import asker_of
from serve.api.replies import ClickOut
from serve.api.requests import ClickIn, without_completion_prefix
from serve.guard.keys import key_of
from serve.guard.sessions import ServiceSecret
from serve.threads import DatabaseThreads

log = logging.getLogger(__name__)

SEARCH_PREFIX = "search_"
PURPOSE = "search"
# Readers open a result at once, or come back to it the same day.
VALID_S = 86_400
# Digest size of a source: a collision among the 100 of a search has a probability of 2e-11.
DIGEST_BYTES = 6
SIGNATURE_BYTES = 32
MOST_QUERY_CHARACTERS = 500


class ShownSearch(NamedTuple):
    """The contents of a search's id: the query, the collection, and digests of the sources shown."""

    id: str
    query: str
    collection: str
    sources: frozenset[str]

    def shows(self, source: str) -> bool:
        """Return whether the search found `source`."""
        return _digest(source) in self.sources


class SearchIds:
    """Makes and reads the ids of searches; `clock` is Unix time."""

    def __init__(self, secret: ServiceSecret, clock: Callable[[], float] = time.time) -> None:
        self._secret, self._clock = secret, clock

    async def make(self, query: str, found: Retrieval) -> str:
        """Return the id of a search; "" while the database with the secret is unavailable."""
        shown = [_digest(source) for source in dict.fromkeys(hit.source for hit in found.hits)]
        told = [int(self._clock()), query[:MOST_QUERY_CHARACTERS], found.index.collection, "".join(shown)]
        body = json.dumps(told, ensure_ascii=False, separators=(",", ":")).encode()
        try:
            signature = await self._secret.sign(PURPOSE, body)
        except StoreUnavailable as error:
            log.info("a search has no id: %s", error)
            return ""
        return SEARCH_PREFIX + base64.urlsafe_b64encode(signature + body).decode().rstrip("=")

    async def read(self, id: str) -> ShownSearch | None:
        """Return the contents of a search's id, None if it is invalid or expired. Raises StoreUnavailable."""
        text = id.removeprefix(SEARCH_PREFIX)
        try:
            whole = base64.b64decode(text + "=" * (-len(text) % 4), b"-_", validate=True)
        except ValueError:
            return None
        signature, body = whole[:SIGNATURE_BYTES], whole[SIGNATURE_BYTES:]
        if not hmac.compare_digest(signature, await self._secret.sign(PURPOSE, body)):
            return None
        made, query, collection, digests = json.loads(body)
        if self._clock() > made + VALID_S:
            return None
        size = 2 * DIGEST_BYTES
        shown = frozenset(digests[start : start + size] for start in range(0, len(digests), size))
        return ShownSearch(hashlib.sha256(body).hexdigest()[:32], query, collection, shown)


class ClickRoutes:
    """The handler; without `ids` nothing is recorded."""

    def __init__(self, store: Store, threads: DatabaseThreads, ids: SearchIds | None) -> None:
        self._store, self._threads, self._ids = store, threads, ids

    async def open(self, click: ClickIn, request: Request) -> ClickOut:
        """Record an opened source, once, if it was shown."""
        if self._ids is None:
            return ClickOut(recorded=False)
        if not click.id.startswith(SEARCH_PREFIX):
            id = without_completion_prefix(click.id)
            return ClickOut(
                recorded=await self._threads.run(self._store.record_click, id, click.source, asker_of(request))
            )
        search, key = await self._ids.read(click.id), key_of(request.scope)
        if search is None or not search.shows(click.source) or not (key is None or key.sees(search.collection)):
            return ClickOut(recorded=False)
        told = (search.id, click.source, search.collection, search.query)
        return ClickOut(recorded=await self._threads.run(self._store.record_search_click, *told))


def _digest(source: str) -> str:
    return hashlib.sha256(source.encode(errors="replace")).digest()[:DIGEST_BYTES].hex()
