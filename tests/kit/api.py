"""Provides a fake engine and store for tests of the HTTP API, and a real server on loopback around them."""

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from typing import Any

import httpx
import numpy as np
import uvicorn
from starlette.types import ASGIApp

from pipelines.answering.events import Delta, Event
from pipelines.answering.question import Question
from pipelines.answering.retrieval.live import CollectionNotNamed, IndexLoading
from pipelines.answering.retrieval.search import Retrieval, Search
from pipelines.answering.synthesis.base import UnknownMode
from pipelines.llm.session import Status
from pipelines.records import Answer, Citation, Exchange, Hit, Index, IndexSettings, Message, Route, Usage
from pipelines.store import (
    AskedQuestion,
    NoLiveIndex,
    OpenedSource,
    Outline,
    RecordedQuestion,
    SectionStart,
    Store,
    StoreUnavailable,
)
from pipelines.store.collections.verified import VerifiedAnswer, VerifiedMark

WORDS = "Call ray.data.read_csv to load comma separated files."
CSV = Hit("c1", "https://d.test/data", ("csv",), "Data", ("Data", "CSV"), WORDS, "hash", 0.03, "rrf")
MODES = ("compact", "refine")
DELTAS = ("Call `read_csv", "(x[1])` ", "to load it [", "1]", ". Größe 😀\u2028\n\ndone")
TEXT = "".join(DELTAS)


class FakeEngine:
    """Answers every question with TEXT in DELTAS. `asks` records the questions.

    `changes` replaces fields of an answer. `fails` is raised at the start, `fails_midway` after the first delta. The
    collections `loading` are not ready. `hangs` waits there until it is cancelled, which sets `cancelled`. With
    `resets`, a later delta voids the first one.
    """

    def __init__(self, store: "FakeStore") -> None:
        self._store = store
        self.asks: list[Question] = []
        self.modes = ("compact", "no_text")
        self.uses = Usage(10, 5, 1, 0.001)
        self.changes: dict[str, Any] = {}
        self.fails: Exception | None = None
        self.fails_midway: Exception | None = None
        self.hangs = self.resets = False
        self.loading: set[str] = set()
        self.hanging, self.cancelled = threading.Event(), threading.Event()
        self.hit = replace(CSV, sources=(CSV.source,))
        self.citations = (Citation(1, CSV.source, "Data › CSV", CSV.text, CSV.headings, {"bm25": 2.0}, True, 0.9),)

    async def aquery(self, ask: Question) -> Answer:
        *_, answer = [event async for event in self.stream(ask)]
        assert isinstance(answer, Answer)
        return answer

    async def asearch(self, ask: Question) -> Retrieval:
        self.asks.append(ask)
        if self.fails:
            raise self.fails
        return Retrieval(
            ask.question, (self.hit,), self._index(ask.collection), 1, (), {"total": 0.01}, queries=(ask.question,)
        )

    async def stream(self, ask: Question) -> AsyncIterator[Event]:
        if ask.mode not in (None, *MODES):
            raise UnknownMode(ask.mode, self.modes)
        found = await self.asearch(ask)
        yield found
        yield Status("reading", "an agent", passages=1, tokens=200, seconds=3.5)
        async with asyncio.timeout(60):  # like a real engine: one task must enter and leave it
            if self.resets:
                yield Delta("never mind")
            for n, text in enumerate(DELTAS):
                yield Delta(text, reset=self.resets and n == 0)
                await self._midway()
        yield self._answer(ask, found)

    async def aretrieve(self, search: Search) -> Retrieval:
        return await self.asearch(Question(search.queries[0], collection=search.collection))

    async def aready(self, collection: str | None = None) -> Index:
        if self.fails:
            raise self.fails
        index = self._index(collection)
        if index.collection in self.loading:
            raise IndexLoading(index.collection)
        return index

    async def aembed(self, texts: Sequence[str], collection: str | None = None) -> np.ndarray:
        self._index(collection)
        vectors = np.array([[len(text), 1, 2, 3] for text in texts], np.float32)
        return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))

    async def _midway(self) -> None:
        if self.fails_midway:
            raise self.fails_midway
        if self.hangs:
            self.hanging.set()
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                self.cancelled.set()
                raise

    def _index(self, collection: str | None) -> Index:
        names = [self._store.default] if self._store.default else list(self._store.live)
        if collection is None and len(names) != 1:
            raise CollectionNotNamed(names)
        return self._store.live_index(collection or names[0])

    def _answer(self, ask: Question, found: Retrieval) -> Answer:
        exchange = Exchange("a-model", (Message("user", ask.question),), TEXT)
        self._store.hold_answer(ask.id)
        answer = Answer(
            ask.question, TEXT, "an agent", self.citations, found.hits, ("bm25",), {"total": 0.02}, found.index.id,
            found.revision, id=ask.id, route=Route("an agent", "the default"), queries=found.queries, usage=self.uses,
            exchanges=(exchange,), collection=found.index.collection,
        )  # fmt: skip
        return replace(answer, **self.changes)


@dataclass
class PastTurn:
    question: str
    answer: str
    cited: tuple[str, ...]
    id: str = ""


RECORDED: dict[str, Any] = {
    "id": "q1", "asked_at": datetime(2026, 1, 31, tzinfo=UTC), "collection": "docs", "question": "How?",
    "answer": "So [1].", "known": True, "agent": "extractive", "sources": ["https://d.test/a#b"],
    "degraded": [], "seconds": 0.5, "cost": 0.0, "key_name": "ci", "error": None, "rating": 1,
    "reasons": [], "comments": ["Right."], "confidence": "high", "channel": "page", "page": "", "language": "en",
}  # fmt: skip


class FakeStore:
    """Stores collections with one live index each, conversations, feedback and answers by id.

    `turns` are the conversations, `given` the feedback, `answers` the answers. `away` makes it raise. It finds an
    answer only at the `late`-th look-up.
    """

    def __init__(self) -> None:
        self.live: dict[str, Index] = {}
        self.turns: dict[str, list[PastTurn]] = {}
        self.given: list[tuple[str, int, str, str]] = []
        self.reasons: dict[str, tuple[str, ...]] = {}
        self.recorded = [RECORDED]
        self.answers: dict[str, RecordedQuestion] = {}
        self.late = self.outlined = 0
        self.sections: list[SectionStart] = []
        self.default = ""
        self.titles: dict[str, str] = {}
        self.examples: list[str] = []
        self.verified: list[VerifiedAnswer] = []
        self.clicks: set[tuple[str, str]] = set()
        self.away = self.conversations_away = False
        self.publish("docs")

    def publish(self, collection: str) -> None:
        self.live[collection] = Index(len(self.live) + 1, collection, IndexSettings("words"), "live", 1)

    def count_asked(self, collection: str | None, since: datetime | None, until: datetime | None) -> int:
        return 0

    @contextlib.contextmanager
    def asked(self, *period: Any) -> Iterator[Iterator[AskedQuestion]]:
        yield iter(())

    def opened_sources(self, *period: Any) -> list[OpenedSource]:
        return []

    def record_click(self, id: str, source: str, key_name: str | None) -> bool:
        self._reach()
        return self._click(id, source) if self.readable_answer(id, key_name) else False

    def record_search_click(self, shown: str, source: str, collection: str, query: str) -> bool:
        self._reach()
        return self._click(query, source)

    def _click(self, shown: str, source: str) -> bool:
        new = (shown, source) not in self.clicks
        self.clicks.add((shown, source))
        return new

    def indexed_pages(self, index: int) -> dict[str, str]:
        return {}

    find_collection = Store.find_collection

    def collections(self) -> list[dict[str, Any]]:
        self._reach()
        published = {"revision": 1, "published_at": datetime(2026, 1, 31, tzinfo=UTC), "stats": {}}
        rows = [
            {"name": name, "is_default": name == self.default, "index": index.id, **published}
            for name, index in self.live.items()
        ]
        nothing = dict.fromkeys(("index", "revision", "published_at", "stats"))
        return [*rows, {"name": "unpublished", "is_default": False, **nothing}]

    def collection_settings(self, collection: str) -> dict[str, Any]:
        return {"title": self.titles.get(collection, ""), "examples": self.examples}

    def announcement(self, collection: str, id: int) -> None: ...

    def verified_mark(self, collection: str) -> VerifiedMark:
        return VerifiedMark(len(self.verified))

    def verified_answers(self, collection: str) -> list[VerifiedAnswer]:
        return self.verified

    def chunks_of_pages(self, index: int, urls: set[str]) -> list[Hit]:
        return [hit for hit in (CSV,) if hit.url in urls]

    def layout_sample(self, collection: str, least: int, most: int) -> dict[str, str]:
        return {}

    def page_bodies(self, collection: str, urls: list[str]) -> list[Any]:
        return []

    def layouts(self, collection: str) -> tuple[str, dict[str, Any]]:
        return "", {}

    def common_url(self, index: int) -> str:
        return "https://d.test/"

    def list_pages(self, index: int, after: str = "", most: int = 1_000) -> list[Any]:
        return []

    def outline(self, collection: str, index: int) -> Outline:
        self.outlined += 1
        return Outline("The docs", ("2", "1"), ("en",), root=f"{self.common_url(index)}index.html")

    def section_starts(self, collection: str, index: int) -> list[SectionStart]:
        return self.sections

    def live_index(self, collection: str) -> Index:
        self._reach()
        if collection not in self.live:
            raise NoLiveIndex(f"collection {collection!r} has no published index: run `raydex index` first")
        return self.live[collection]

    def _reach(self) -> None:
        if self.away:
            raise StoreUnavailable("the database can't be reached")

    def conversation(
        self, id: str, most: int = 5, key_name: str = "", among: Sequence[str] | None = None
    ) -> list[PastTurn]:
        if self.conversations_away:
            raise StoreUnavailable("the database can't be reached")
        turns = [turn for turn in self.turns.get(id, []) if among is None or turn.id in among]
        return turns[-most:]

    def recent_questions(
        self, collection: str | None = None, before: datetime | None = None, unknown: bool = False, most: int = 100
    ) -> list[dict[str, Any]]:
        self._reach()
        return [row for row in self.recorded if collection in (None, row["collection"])][:most]

    def readable_answer(self, id: str, key_name: str | None, all: bool = False) -> RecordedQuestion | None:
        self._reach()
        kept = self._recorded(id)
        may = kept is not None and (all or kept.key_name == key_name or kept.shared_at is not None)
        return kept if may else None

    def hold_answer(self, id: str, key_name: str = "", collection: str = "docs") -> None:
        """Store an answer that the key `key_name` requested."""
        self.answers[id] = RecordedQuestion(id, "", collection=collection, key_name=key_name)

    def hold_shared_answer(self, id: str) -> None:
        """Store an answer that somebody requested and shared."""
        self.hold_answer(id, "somebody")
        self.share_answer(id, "somebody")

    def share_answer(self, id: str, key_name: str | None, shared: bool = True, all: bool = False) -> bool:
        self._reach()
        kept = self._recorded(id)
        if kept is None or not (all or kept.key_name == key_name):
            return False
        self.answers[id] = replace(kept, shared_at=datetime(2026, 1, 31, tzinfo=UTC) if shared else None)
        return True

    def _recorded(self, id: str) -> RecordedQuestion | None:
        self.late -= 1
        return None if self.late > 0 else self.answers.get(id)

    def status(self, collection: str, most: int = 5) -> dict[str, Any]:
        return {"indexes": [], "pages": {"ok": 1}, "runs": [], "failures": []}

    def service_secret(self) -> bytes:
        self._reach()
        return b"s" * 32

    def bound_origins(self) -> frozenset[str]:
        return frozenset()

    def record_feedback(
        self, question_id: str, rating: int, comment: str = "", key_name: str = "", reasons: Sequence[str] = ()
    ) -> int:
        self._reach()
        self.reasons[question_id] = tuple(reasons)
        self.given.append((question_id, rating, comment, key_name))
        return len(self.given)


@dataclass
class MemoryRecorder:
    """Collects recorded questions in memory, and answers and measurements too."""

    rows: list[dict[str, object]] = field(default_factory=list)
    failures: list[dict[str, object]] = field(default_factory=list)
    counted: list[Answer] = field(default_factory=list)
    worked: list[Answer] = field(default_factory=list)
    first_deltas: list[float] = field(default_factory=list)
    settled: int = 0
    enabled: bool = True

    def settle(self, seconds: float) -> None:
        self.settled += 1

    def record(self, question: RecordedQuestion) -> None:
        row = {one.name: getattr(question, one.name) for one in fields(question)}
        (self.failures if question.answer is None else self.rows).append(row)

    def count_answer(self, answer: Answer) -> None:
        self.counted.append(answer)

    def count_work(self, answer: Answer) -> None:
        self.worked.append(answer)

    def observe_first_delta(self, seconds: float) -> None:
        self.first_deltas.append(seconds)


class PromptServer(uvicorn.Server):
    """Ends within milliseconds; uvicorn's own server takes 0.2 s, as it looks every 0.1 s and waits as long again."""

    async def main_loop(self) -> None:
        while not await self.on_tick(0):
            await asyncio.sleep(0.01)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for listening in [*self.servers, *(sockets or [])]:
            listening.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        await asyncio.sleep(0.01)  # connections take notice


@contextlib.contextmanager
def run_server(app: ASGIApp, **config: Any) -> Iterator[str]:
    """Serve `app` on loopback with a real server, configured by `config`, and yield its base URL."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        server = PromptServer(uvicorn.Config(app, log_level="critical", lifespan="off", **config))
        thread = threading.Thread(target=lambda: asyncio.run(server.serve([listening])), daemon=True)
        thread.start()
        wait_for(lambda: server.started)
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.force_exit = server.should_exit = True
            thread.join(10)


@contextlib.asynccontextmanager
async def serving(app: ASGIApp, **config: Any) -> AsyncIterator[int]:
    """Serve `app` on loopback with a real server in the test's event loop, and yield its port."""
    server = PromptServer(uvicorn.Config(app, port=0, log_level="critical", lifespan="off", **config))
    running = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.005)
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.force_exit = server.should_exit = True
        await running


def leave_when(happened: Callable[[], object], url: str, body: dict[str, Any]) -> None:
    """Post a body, and close the connection once `happened` is set."""

    async def leave() -> None:
        async with httpx.AsyncClient(timeout=60) as client:
            call = asyncio.create_task(client.post(url, json=body))
            await asyncio.to_thread(wait_for, happened)
            call.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await call

    asyncio.run(leave())


def wait_for(condition: object, seconds: float = 60.0) -> None:
    until = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.01)
