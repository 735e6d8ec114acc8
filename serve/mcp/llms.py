"""Handlers of llms.txt and llms-full.txt: a collection as files for language models (llmstxt.org).

llms.txt links to every page, and is written once per revision. llms-full.txt contains the text of all pages, and is
written page by page while it is sent.
"""

import asyncio
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import quote

from fastapi import Request, Response
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from pipelines.answering.hits import snippet
from pipelines.indexing.site_name import SiteNames
from pipelines.page.stored import readable_text
from pipelines.records import Index
from pipelines.store import ListedPage, Store
from pipelines.text.cleaning import clean_for_model
from pipelines.text.counts import counted
from serve.api.requests import Name
from serve.api.sessions import AskedCollections
from serve.failure import RETRY_AFTER_S, Failure
from serve.guard.origin import Network, network_of
from serve.mcp.pages import PageShelf
from serve.threads import DatabaseThreads

BATCH = 500  # pages per database query
NOTE = 120  # maximum characters after a link, from its page's first sentence
# Limits for these files in progress, per address and in total: each occupies a slot of a replica, and takes a second
# per 40 pages.
FULL_OF_ADDRESS, MOST_FULL = 4, 16
LINKS_AT_ONCE = 50  # links written at a time, outside the event loop; other work runs in between
# Limits for these texts in progress, per address and in total, and the total sending rate of a replica. While ten
# readers loaded 500 kB without a break, a question took seven times as long.
LINKS_OF_ADDRESS, MOST_LINKS = 4, 16
PIECE, BYTES_A_SECOND = 64_000, 10_000_000
KEPT = 4  # cached texts, for the most recently requested collections
ALSO = {"Cache-Control": "no-cache"}  # revalidate each time: the ETag makes that cheap
PLAIN = "text/plain; charset=utf-8"
FRONT = "Pages"  # the section of pages outside any folder


class LlmsRoutes:
    """The handlers, one for each route in routes.py."""

    def __init__(
        self, store: Store, threads: DatabaseThreads, collections: AskedCollections, trusted: Sequence[Network] = ()
    ) -> None:
        self._store, self._threads, self._collections, self._trusted = store, threads, collections, trusted
        self._pages, self._names = PageShelf(store), SiteNames(store)
        self._writing = asyncio.Lock()  # a page at a time: two threads slowed questions 2.2 times, one 1.7 times
        self._full_places = _Places("all pages", FULL_OF_ADDRESS, MOST_FULL)
        self._link_places = _Places("all links", LINKS_OF_ADDRESS, MOST_LINKS)
        self._links: OrderedDict[tuple[int, int], asyncio.Task[bytes]] = OrderedDict()
        self._free_at = 0.0  # when all scheduled pieces of links will have been sent

    async def links(self, request: Request, collection: Name | None = None) -> Response:
        """Return llms.txt: the title, a description, and every page as a link, by folder."""
        index = await self._index(request, collection)
        headers = _headers(index, "links")
        if _is_known(request, headers):
            return Response(status_code=304, headers=headers)
        text = await self._links_of(index)
        headers["Content-Length"] = str(len(text))
        return _FewAtOnce(self._pieces(text), self._link_places, network_of(request.scope, self._trusted), headers)

    async def full(self, request: Request, collection: Name | None = None) -> Response:
        """Return llms-full.txt: every page as Markdown, one after the other."""
        index = await self._index(request, collection)
        headers = _headers(index, "full")
        if _is_known(request, headers):
            return Response(status_code=304, headers=headers)
        address = network_of(request.scope, self._trusted)
        return _FewAtOnce(self._write(index), self._full_places, address, headers)

    async def _index(self, request: Request, collection: str | None) -> Index:
        """Return the live index. Raises HTTPException, CollectionNotNamed, NoLiveIndex and StoreUnavailable."""
        return await self._threads.run(self._store.live_index, await self._collections.name(collection, request))

    async def _pieces(self, text: bytes) -> AsyncIterator[bytes]:
        """Yield a text in pieces, spaced so that all readers together stay within the sending rate."""
        for at in range(0, len(text), PIECE):
            now = asyncio.get_running_loop().time()
            begins = max(now, self._free_at)
            self._free_at = begins + PIECE / BYTES_A_SECOND
            await asyncio.sleep(begins - now)
            yield text[at : at + PIECE]

    async def _links_of(self, index: Index) -> bytes:
        """Return the text of llms.txt; all requests for a revision share one task."""
        key = index.id, index.revision
        if key not in self._links:
            self._links[key] = asyncio.create_task(self._write_links(index))
            while len(self._links) > KEPT:
                self._links.popitem(last=False)
        writing = self._links[key]
        self._links.move_to_end(key)
        try:
            return await asyncio.shield(writing)  # a disconnect does not cancel it for the others
        finally:
            if writing.done() and (writing.cancelled() or writing.exception()) and self._links.get(key) is writing:
                del self._links[key]

    async def _write_links(self, index: Index) -> bytes:
        pages = [page async for page in self._list(index)]
        base = await self._threads.run(self._store.common_url, index.id)
        links = list[str]()
        for at in range(0, len(pages), LINKS_AT_ONCE):
            links += await asyncio.to_thread(list, map(write_link, pages[at : at + LINKS_AT_ONCE]))
        return f"{await self._head(index, len(pages))}{arrange_links(pages, links, base)}".encode()

    async def _list(self, index: Index) -> AsyncIterator[ListedPage]:
        after, more = "", True
        while more:
            pages = await self._threads.run(self._store.list_pages, index.id, after, BATCH)
            for page in pages:
                yield page
            more = len(pages) == BATCH
            after = pages[-1].url if pages else ""

    async def _write(self, index: Index) -> AsyncIterator[str]:
        yield await self._head(index)
        async for page in self._list(index):
            async with self._writing:  # released while a page is sent: a client that does not read would occupy it
                text = await asyncio.to_thread(self._pages.whole, index, page.url)
            title = "" if text.startswith("# ") else f"# {_line(page.title)}\n\n"
            yield f"\n---\nSource: {page.url}\n\n{title}{text}\n"

    async def _head(self, index: Index, pages: int | None = None) -> str:
        base = await self._threads.run(self._store.common_url, index.id)
        row = {"name": index.collection, "index": index.id, "revision": index.revision}
        title = _line(await self._threads.run(self._names.get, row))
        count = "The pages" if pages is None else counted(pages, "page")
        return f"# {title}\n\n> {count} of {base or 'several sites'}, as Raydex has indexed them.\n"


@dataclass(frozen=True)
class _Places:
    """The limits on concurrent readers of a kind of text, per address and in total, and the current readers."""

    kind: str
    of_address: int
    most: int
    readers: Counter[str] = field(default_factory=Counter)

    def refusal(self, address: str) -> Failure | None:
        """Return why another reader of an address is refused now; None if it is allowed."""
        if self.readers[address] >= self.of_address:
            return Failure(
                429, f"your address reads {self.kind} {counted(self.of_address, 'time')} now, which is its limit: wait"
            )
        if self.readers.total() >= self.most:
            return Failure(
                503,
                f"{counted(self.most, 'reader gets', 'readers get')} {self.kind} now, which is the limit: try again",
            )
        return None


class _FewAtOnce(StreamingResponse):
    """A text in parts, limited in concurrency: answers 429 at the limit of its address, 503 at the total limit."""

    def __init__(
        self, parts: AsyncIterator[str] | AsyncIterator[bytes], places: _Places, address: str, headers: dict[str, str]
    ) -> None:
        super().__init__(parts, media_type=PLAIN, headers=headers)
        self._places, self._address = places, address

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if failure := self._places.refusal(self._address):
            await replace(failure, retry_after=RETRY_AFTER_S).response(scope)(scope, receive, send)
            return
        readers = self._places.readers
        readers[self._address] += 1
        try:
            await super().__call__(scope, receive, send)
        finally:
            readers[self._address] -= 1
            if not readers[self._address]:
                del readers[self._address]


def arrange_links(pages: Sequence[ListedPage], links: Sequence[str], base: str) -> str:
    """Return the links in sections: pages outside folders first, then by folder below `base`, or by host."""
    folders: dict[str, list[str]] = {FRONT: []}
    for page, link in zip(pages, links, strict=True):
        path = (page.url.removeprefix(base) if base else page.url.partition("://")[2]).split("/")
        folders.setdefault(path[0] if len(path) > 1 and path[0] else FRONT, []).append(link)
    return "".join(f"\n## {_line(name)}\n\n{''.join(found)}" for name, found in folders.items() if found)


def write_link(page: ListedPage) -> str:
    """Return the line for a page: its title as a link, and its first sentence."""
    title = _line(page.title).replace("[", "\\[").replace("]", "\\]") or page.url
    note = snippet(clean_for_model(readable_text(page.begins)), NOTE)
    return f"- [{title}]({quote(page.url, safe=':/?#@!$&*+,;=%~')}){f': {note}' if note else ''}\n"


def _line(text: str) -> str:
    return " ".join(clean_for_model(text).split())


def _headers(index: Index, kind: str) -> dict[str, str]:
    return {"ETag": f'W/"{index.id}-{index.revision}-{kind}"', **ALSO}


def _is_known(request: Request, headers: dict[str, str]) -> bool:
    known = [tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")]
    return "*" in known or headers["ETag"].removeprefix("W/") in known
