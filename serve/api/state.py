"""Handlers and replies of /collections, /health and /health/ready."""

import asyncio
import logging
import math
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any, Literal, Self

from fastapi import Request
from pydantic import BaseModel, BeforeValidator, ConfigDict
from starlette.exceptions import HTTPException

from pipelines.answering.engine import QueryEngine
from pipelines.answering.grounding.answerable import is_likely
from pipelines.answering.retrieval.live import CollectionNotNamed, NotReady
from pipelines.answering.retrieval.search import Search
from pipelines.answering.verified.answer_finder import given_answers
from pipelines.evaluation.questions.examples import MOST, ExampleQuestion, choose_examples
from pipelines.indexing.site_name import SiteNames
from pipelines.store import NoLiveIndex, Outline, Store
from pipelines.text.counts import counted
from serve.api.replies import Text
from serve.api.requests import Name, examples_of
from serve.api.sessions import check_collection, meant_collection, own_default, seen
from serve.guard.keys import key_of
from serve.threads import DatabaseThreads

log = logging.getLogger(__name__)

# Candidates tried per example question. In the documentation of Ray, PostgreSQL, Python and Rust at least two in three
# find their page, so that six remain.
_TRIED = 2
# How long to show an outline whose examples could not be made or tried, before trying again. A failed scan of a large
# collection may have taken many seconds.
RETRY_S = 300.0


Time = Annotated[str | None, BeforeValidator(lambda time: time and time.isoformat())]


class CollectionOut(BaseModel):
    """A collection and its live index, if it has one; questions that name no collection go to the `default` one.

    `title` is its display name.
    """

    model_config = ConfigDict(json_schema_extra=examples_of("CollectionOut"))

    name: str
    title: Text
    default: bool
    index: int | None
    revision: int | None
    published_at: Time
    stats: dict[str, Any]

    @classmethod
    def of(cls, row: Mapping[str, Any], title: str, default: bool) -> Self:
        return cls.model_validate({**row, "title": title, "default": default, "stats": row["stats"] or {}})


class OutlineOut(BaseModel):
    """An overview of a published collection; `examples` are questions that it answers.

    They come from the collection's file, or else from its verified answers and headings. `logo` is an image as a
    `data:` URL, "" for none.
    """

    model_config = ConfigDict(json_schema_extra=examples_of("OutlineOut"))

    name: str
    title: Text
    versions: list[str]
    languages: list[str]
    examples: list[Text]
    logo: str
    pages: int
    chunks: int
    published_at: Time

    @classmethod
    def of(cls, row: Mapping[str, Any], outline: Outline) -> Self:
        counts = {"pages": 0, "chunks": 0, **(row["stats"] or {})}
        return cls.model_validate({**row, **counts, **asdict(outline)})


class ReadyOut(BaseModel):
    """The index that answers questions now; null if there are several collections and no default."""

    status: Literal["ready"] = "ready"
    collection: str | None = None
    index: int | None = None
    revision: int | None = None


class HealthOut(BaseModel):
    """The process is alive."""

    status: Literal["ok"] = "ok"


class StateRoutes:
    """The handlers, one for each route in routes.py."""

    def __init__(self, engine: QueryEngine, store: Store, threads: DatabaseThreads, collection: str) -> None:
        self._engine, self._store, self._threads, self._collection = engine, store, threads, collection
        self._outlines = KnownOutlines(engine, store, threads)
        self._names = SiteNames(store)

    async def collections(self, request: Request) -> list[CollectionOut]:
        key = key_of(request.scope)
        rows = seen(key, await self._threads.run(self._store.collections))
        default = meant_collection(rows, own_default(key, self._collection))
        titles = [await self._threads.run(self._names.get, row) for row in rows]
        return [CollectionOut.of(row, title, row["name"] == default) for row, title in zip(rows, titles, strict=True)]

    async def collection(self, name: Name, request: Request) -> OutlineOut:
        rows = {row["name"]: row for row in await self._threads.run(self._store.collections)}
        check_collection(key_of(request.scope), name)
        if name not in rows:
            raise NoLiveIndex(f"there is no collection {name!r}: GET /collections lists them")
        if rows[name]["index"] is None:
            raise NoLiveIndex(f"collection {name!r} has no published index: run `raydex index` first")
        outline = await self._outlines.get(rows[name])
        title = await self._threads.run(self._names.get, rows[name])
        return OutlineOut.of(rows[name], replace(outline, title=title))

    async def health(self) -> HealthOut:
        return HealthOut()

    async def ready(self, request: Request, collection: Name | None = None) -> ReadyOut:
        """Return the index that answers a question to `collection`, or to the default one.

        With several collections and no default, the service is ready if each of them is.
        """
        if collection:
            check_collection(key_of(request.scope), collection)
        try:
            index = await self._engine.aready(collection)
        except CollectionNotNamed as error:
            if not error.names:
                raise HTTPException(503, str(error)) from error
            return await self._all_ready(error.names)
        except NoLiveIndex as error:
            if collection:
                raise  # waiting does not help if it does not exist
            raise HTTPException(503, str(error)) from error
        return ReadyOut(collection=index.collection, index=index.id, revision=index.revision)

    async def _all_ready(self, names: Sequence[str]) -> ReadyOut:
        """Return an empty ReadyOut if all collections are ready. No name is told, because the route needs no key."""
        for name in names:
            try:
                await self._engine.aready(name)
            except (NotReady, NoLiveIndex) as error:
                why = "is being loaded, has no index, or can't load its embedding model"
                raise HTTPException(
                    503, f"one of {counted(len(names), 'collection')} {why}; the log says more"
                ) from error
        return ReadyOut()


@dataclass(frozen=True, slots=True)
class _KnownOutline:
    """An outline, the state of the collection that it describes, and the time of the clock when it expires."""

    state: tuple[Any, ...]
    outline: Outline
    expires: float


class KnownOutlines:
    """Cached overviews of collections, updated when a collection's index, examples or verified answers change.

    If making or trying the examples fails, the outline without them is cached for RETRY_S seconds of `clock`.
    """

    def __init__(
        self, engine: QueryEngine, store: Store, threads: DatabaseThreads, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._engine, self._store, self._threads, self._clock = engine, store, threads, clock
        self._known: dict[str, _KnownOutline] = {}
        self._reading: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def get(self, row: Mapping[str, Any]) -> Outline:
        """Return the outline of the collection in a store row, with its example questions."""
        name, settings = row["name"], await self._threads.run(self._store.collection_settings, row["name"])
        given = tuple(settings.get("examples", ()))
        mark = await self._threads.run(self._store.verified_mark, name)
        logo = str(settings.get("logo") or "")
        state = (row["index"], row["revision"], given or mark, logo)
        async with self._reading[name]:
            known = self._known.get(name)
            if known and known.state == state and self._clock() < known.expires:
                return known.outline
            outline = replace(await self._threads.run(self._store.outline, name, row["index"]), logo=logo)
            examples: Sequence[ExampleQuestion] = ()
            expires = math.inf
            try:
                if not given:
                    given = await self._threads.run(self._verified, name) if mark.answers else ()
                    sections = await self._threads.run(self._store.section_starts, name, row["index"])
                    examples = await asyncio.to_thread(choose_examples, sections, _TRIED * MOST)
                    given += tuple(await self._that_find(name, examples, MOST - len(given)))
            except Exception as error:
                log.info("the example questions of %r were not made or not tried: %s", name, error)
                given = given or tuple(example.question for example in examples[:MOST])
                expires = self._clock() + RETRY_S
            outline = replace(outline, examples=given)
            self._known[name] = _KnownOutline(state, outline, expires)
            return outline

    def _verified(self, collection: str) -> tuple[str, ...]:
        """Return the questions of the newest verified answers in use."""
        index, answers = self._store.live_index(collection), self._store.verified_answers(collection)
        newest = sorted(answers, key=lambda answer: answer.changed, reverse=True)
        return tuple(answer.questions[0] for answer, _ in given_answers(self._store, index, newest)[:MOST])

    async def _that_find(self, collection: str, examples: Sequence[ExampleQuestion], most: int) -> list[str]:
        """Return the first questions that the index probably answers, with their own page as the first hit."""
        found: list[str] = []
        for example in examples:
            if len(found) >= most:
                break
            retrieval = await self._engine.aretrieve(Search((example.question,), collection))
            first, evidence = retrieval.hits[:1], retrieval.evidence
            if any(hit.url == example.url for hit in first) and (evidence is None or is_likely(evidence)):
                found.append(example.question)
        return found
