"""The functions of the tools: search, answer, read a page, list the collections. Knows no protocol.

Questions are handled as in /query: by the same engine, in the same sessions, recorded with the channel "mcp".
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import anyio
from starlette.requests import Request

from pipelines.answering.engine import QueryEngine
from pipelines.answering.events import Delta, Event
from pipelines.answering.hits import snippet
from pipelines.answering.question import Question
from pipelines.answering.retrieval.live import choose_collection
from pipelines.answering.retrieval.search import Retrieval
from pipelines.indexing.site_name import SiteNames
from pipelines.llm.session import LOADING, OPENING, READING, SEARCHING, Status
from pipelines.records import Answer, Filters, Index
from pipelines.store import ListedPage, NoLiveIndex, Outline, Store, is_copy
from pipelines.text.counts import counted
from serve.api.inquiry import Inquiries, Origin
from serve.api.sessions import meant_collection
from serve.mcp.arguments import AskArguments, NoArguments, PageArguments, SearchArguments
from serve.mcp.pages import NoSuchPage, PageShelf
from serve.mcp.quoting import clean
from serve.mcp.results import CitedAnswer, CollectionInfo, CollectionList, FoundSections, PagePart
from serve.threads import DatabaseThreads

CHANNEL = "mcp"
MOST_TITLE = 80  # maximum characters of a collection's title, which comes from a page


class NotThere(LookupError):
    """The named collection or version does not exist; the message lists the existing ones."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a tool: its HTTP request, and a function to report its progress."""

    request: Request
    report: Callable[[str], Awaitable[None]]


class Toolbox:
    """The tools over one engine and one store; `sessions` ask and record, `collection` is the engine's own default."""

    def __init__(
        self, engine: QueryEngine, store: Store, threads: DatabaseThreads, sessions: Inquiries, collection: str = ""
    ) -> None:
        self._engine, self._store, self._threads = engine, store, threads
        self._sessions, self._collection = sessions, collection
        self._pages, self._names = PageShelf(store), SiteNames(store)

    async def search_docs(self, arguments: SearchArguments, call: Call) -> FoundSections:
        """Return the best matching sections. Raises NotThere and the errors of the engine."""
        filters = await self._filters(arguments.collection, arguments.version)
        question = Question(
            arguments.query, collection=arguments.collection or None, k=2 * arguments.k, filters=filters
        )
        found = await self._engine.asearch(question)  # several hits may be from one section
        return FoundSections.of(found, arguments.k, arguments.seen)

    async def ask_docs(self, arguments: AskArguments, call: Call) -> CitedAnswer:
        """Return the answer and record it; cancelling cancels the work.

        Raises NotThere and the errors of the engine.
        """
        filters = await self._filters(arguments.collection, arguments.version)
        question = Question(arguments.question, collection=arguments.collection or None, filters=filters)
        origin = Origin(arguments.conversation or None, CHANNEL)
        session = await self._sessions.open(call.request, question, origin)
        events, said = session.stream(), ""
        try:
            async for event in events:
                if isinstance(event, Answer):
                    return CitedAnswer.of(session.finish(event), session.conversation)
                if (message := describe_event(event)) != said:
                    await call.report(message)
                said = message
        finally:
            with anyio.CancelScope(shield=True):
                await events.aclose()
        raise AssertionError("a stream ends with its answer")

    async def read_page(self, arguments: PageArguments, call: Call) -> PagePart:
        """Return a page, a section or a part of it. Raises NotThere and NoSuchPage."""
        indexes = await self.indexes(arguments.collection)
        named, url = arguments.collection, arguments.url
        try:
            return await asyncio.to_thread(self._pages.read, indexes, url, arguments.section, arguments.part)
        except NoSuchPage:
            holders = await asyncio.to_thread(self._pages.holders, await self.indexes(), url) if named else []
            if not holders or named in holders:
                raise
        raise NoSuchPage(f"collection is {named!r}: the page is one of {holders[0]!r}; name that one, or none")

    async def list_collections(self, arguments: NoArguments, call: Call) -> CollectionList:
        """Return the collections."""
        rows = await self._rows()
        default = meant_collection(rows, self._collection)
        infos = [await self._threads.run(self._info, row, row["name"] == default) for row in rows]
        return CollectionList(collections=infos)

    async def places(self) -> list[tuple[str, str]]:
        """Return the name of each indexed collection, the default one first, and the common prefix of its URLs."""
        indexes = await self.indexes()
        return [(index.collection, await self._threads.run(self._store.common_url, index.id)) for index in indexes]

    async def indexes(self, collection: str = "") -> list[Index]:
        """Return the live index of `collection`, or of every collection, the default one first. Raises NotThere."""
        rows = await self._rows()
        default = meant_collection(rows, self._collection)
        if collection and collection not in [row["name"] for row in rows]:
            raise NotThere(f"there is no collection {collection!r}; {_names(rows)}")
        named = [row for row in rows if row["index"] is not None and collection in ("", row["name"])]
        if collection and not named:
            raise NoLiveIndex(f"nothing is indexed yet in the collection {collection!r}")
        first = sorted(named, key=lambda row: row["name"] != default)
        return [await self._threads.run(self._store.live_index, row["name"]) for row in first]

    async def list_pages(
        self, indexes: Sequence[Index], collection: str, after: str, most: int
    ) -> list[tuple[Index, ListedPage]]:
        """Return the first `most` pages of `indexes` that come after the page `after` of `collection`."""
        names = [index.collection for index in indexes]
        first = names.index(collection) if collection in names else 0
        found: list[tuple[Index, ListedPage]] = []
        for index in indexes[first:]:
            begin = after if index.collection == collection else ""
            pages = await self._threads.run(self._store.list_pages, index.id, begin, most - len(found))
            found += [(index, page) for page in pages]
            if len(found) == most:
                break
        return found

    async def _filters(self, collection: str, version: str) -> Filters:
        """Return the filters of a search, after checking that the collection and version exist.

        A version without a collection is checked in the collection that the engine will search. Raises NotThere,
        NoLiveIndex and CollectionNotNamed.
        """
        if not (collection or version):
            return Filters()
        meant = collection or self._collection or choose_collection(await self._rows())
        (index,) = await self.indexes(meant)
        if version:
            await self._check_version(index, version)
        return Filters(version=version or None)

    async def _check_version(self, index: Index, version: str) -> None:
        versions = await self._threads.run(self._store.versions, index.id)
        if version not in versions:
            there = f"it has {', '.join(versions)}" if versions else "its pages name none: leave `version` out"
            raise NotThere(f"the collection {index.collection!r} has no version {version!r}; {there}")

    async def _rows(self) -> list[Mapping[str, Any]]:
        rows = await self._threads.run(self._store.collections)
        return [row for row in rows if not is_copy(row["name"])]

    def _info(self, row: Mapping[str, Any], default: bool) -> CollectionInfo:
        index, stats = row["index"], row["stats"] or {}
        indexed = index is not None
        outline = self._store.outline(row["name"], index) if indexed else Outline()
        return CollectionInfo(
            name=row["name"],
            title=snippet(clean(self._names.get(row)), MOST_TITLE),
            default=default,
            indexed=indexed,
            url=self._store.common_url(index) if indexed else "",
            pages=int(stats.get("pages", 0)),
            sections=int(stats.get("sections", 0)),
            versions=list(outline.versions),
            languages=list(outline.languages),
            published=row["published_at"].isoformat() if row["published_at"] else None,
        )


def describe_event(event: Event) -> str:
    """Describe an event of the engine for the caller."""
    match event:
        case Retrieval():
            return f"found {counted(len(event.hits), 'section')}"
        case Status():
            if event.stage == LOADING:
                return "loading the index"
            if event.stage in (SEARCHING, OPENING):
                return f"{event.stage} {clean(event.about)!r}"
            wait = f", about {event.seconds:.0f} s" if event.seconds is not None else ""
            return f"reading {counted(event.passages, 'section')}{wait}" if event.stage == READING else event.stage
        case Delta():
            return "writing the answer"
    return ""


def _names(rows: Sequence[Mapping[str, Any]]) -> str:
    names = [row["name"] for row in rows if row["index"] is not None]
    return f"there are {', '.join(names)}" if names else "nothing is indexed yet: `raydex index URL` does it"
