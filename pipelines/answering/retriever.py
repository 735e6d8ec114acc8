"""A question becomes hits: embedding and BM25 side by side, one look at the store, fused.

Follows the live index and its revisions question by question. A leg that fails or lags degrades the result,
it never fails it. Knows no HTTP and no prompt.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

import numpy as np

from pipelines.answering.fuse import Leg, fuse
from pipelines.lexical import ChunkSource, LexicalIndex, Matches
from pipelines.records import Filters, Hit, Index
from pipelines.store import NoSuchIndex

log = logging.getLogger(__name__)

VECTOR, BM25 = "vector", "bm25"

T = TypeVar("T")
Vector = np.ndarray[tuple[int, ...], np.dtype[np.float32]]


class CollectionNotNamed(LookupError):
    """No collection was named and there is not exactly one to take."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        choices = f"name one of: {', '.join(names)}" if names else "nothing is indexed yet; run a reindex first"
        super().__init__(f"no collection was named and there are {len(names)}; {choices}")


class ModelNotReady(RuntimeError):
    """The embedding model of the live index is still loading, or does not load."""

    def __init__(self, model: str) -> None:
        super().__init__(f"embedding model {model!r} is not loaded (yet); the log says why if it stays so")


class IndexStore(ChunkSource, Protocol):
    """What the retriever reads of the store."""

    def live_index(self, collection: str, /) -> Index: ...

    def collections(self) -> Sequence[Mapping[str, Any]]: ...

    def search(
        self, index: Index, vector: Vector | None, ids: Sequence[str], k: int, /
    ) -> tuple[int, list[Hit], dict[str, Hit]]: ...


class QueryEmbedder(Protocol):
    """What the retriever needs of an embedder."""

    def embed_query(self, text: str) -> Vector: ...


@dataclass(frozen=True, slots=True)
class Search:
    """What is looked for: `queries`, the question as it stands on its own first, then other wordings of it.

    `collection` None is the retriever's own or the only one there is. `previous` are the ids of chunks that the
    turn before cited: they stay candidates.
    """

    queries: tuple[str, ...]
    collection: str | None = None
    k: int = 5
    filters: Filters = field(default_factory=Filters)
    previous: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.queries:
            raise ValueError("a search needs at least one query: the question itself")


@dataclass(frozen=True, slots=True)
class Retrieval:
    """Hits of one snapshot of one index. `degraded` names the legs that are missing, `timings` are seconds."""

    question: str
    hits: tuple[Hit, ...]
    index: Index
    revision: int
    degraded: tuple[str, ...]
    timings: dict[str, float]
    queries: tuple[str, ...] = ()


@dataclass(slots=True)
class _Steps:
    """What a question has cost and lacks so far."""

    timings: dict[str, float] = field(default_factory=dict)
    degraded: set[str] = field(default_factory=set)

    def run(self, name: str, call: Callable[[], T]) -> T:
        """`call()`, its seconds noted under `name`."""
        started = time.perf_counter()
        try:
            return call()
        finally:
            self.timings[name] = time.perf_counter() - started

    def leg(self, leg: str, step: str, call: Callable[[], T], otherwise: T) -> T:
        """As `run`, but a failure is `otherwise` and degrades `leg`."""
        try:
            return self.run(step, call)
        except Exception as error:
            self.lose(leg, f"{type(error).__name__}: {error}")
            return otherwise

    def lose(self, leg: str, why: str) -> None:
        self.degraded.add(leg)
        log.warning("answering without %s: %s", leg, why)


@dataclass(frozen=True, slots=True)
class _Serving:
    """What answers questions about one index. `embedder` None: its model does not load."""

    index: Index
    embedder: QueryEmbedder | None
    lexical: LexicalIndex


class Retriever:
    """Hybrid retrieval from the live index of a collection.

    `load_embedder` gives the embedder of a model's name, once a model; `lexical` the BM25 folder of an index.
    `collection` is the one meant where a question names none ("": the only one there is). Each leg brings up to
    `candidates` hits. `patience` is how many seconds a question waits for BM25 to follow or for a new index
    to be prepared before it is answered with what is ready.
    """

    # A model that does not load is tried again after this many seconds.
    RETRY = 30.0

    def __init__(
        self,
        store: IndexStore,
        load_embedder: Callable[[str], QueryEmbedder],
        lexical: Callable[[Index], LexicalIndex],
        *,
        collection: str = "",
        candidates: int = 50,
        weights: Mapping[str, float] | None = None,
        patience: float = 2.0,
    ) -> None:
        self._store = store
        self._load_embedder = load_embedder
        self._make_lexical = lexical
        self._collection = collection
        self._candidates = candidates
        self._weights = {VECTOR: 1.0, BM25: 1.0, **(weights or {})}
        self._patience = patience
        self._serving: dict[str, _Serving] = {}
        self._embedders: dict[str, QueryEmbedder] = {}
        self._failed: dict[str, float] = {}
        self._background = _Background()
        self._calls = ThreadPoolExecutor(32, "raydex-retrieve")
        self._legs = ThreadPoolExecutor(16, "raydex-bm25")

    def close(self) -> None:
        """Give up what is being prepared. The store and the embedders are the caller's."""
        self._background.close()
        self._calls.shutdown(wait=False, cancel_futures=True)
        self._legs.shutdown(wait=False, cancel_futures=True)

    def name(self, collection: str | None = None) -> str:
        """The collection meant. Raises CollectionNotNamed where that is not clear."""
        if collection or self._collection:
            return collection or self._collection
        names = [row["name"] for row in self._store.collections()]
        if len(names) != 1:
            raise CollectionNotNamed(names)
        return str(names[0])

    def prepare(self, collection: str | None = None) -> Index:
        """Load all that questions to the collection need, BM25 too, and return its live index.

        Raises CollectionNotNamed, NoLiveIndex, StoreUnavailable, and ModelNotReady if its model does not load.
        """
        live = self._store.live_index(self.name(collection))
        serving = self._prepared(live).result()
        self._follow(serving, live, timeout=None)
        if serving.embedder is None:
            raise ModelNotReady(live.settings.model)
        return live

    def warm(self, collection: str | None = None) -> None:
        """`prepare` without raising, ahead of the first question."""
        try:
            self.prepare(collection)
        except Exception as error:
            log.info("nothing is prepared yet: %s", error)

    def ready(self, collection: str | None = None) -> Index:
        """The live index, if a question would be answered from it now, by vectors too.

        Starts what is missing and raises ModelNotReady meanwhile; else raises as `prepare`.
        """
        live = self._store.live_index(self.name(collection))
        serving = self._serving.get(live.collection)
        if serving is None or serving.embedder is None:
            self._prepared(live)
            raise ModelNotReady(live.settings.model)
        return live

    def retrieve(self, search: Search) -> Retrieval:
        """The `search.k` best hits, all of one snapshot of the live index.

        Raises CollectionNotNamed, NoLiveIndex and StoreUnavailable; a leg that fails is named in `degraded`.
        """
        steps = _Steps()
        question, collection, k = search.queries[0], search.collection, search.k
        try:
            live = self._live(collection, steps)
            return self._retrieve(question, k, self._current(live), live, steps)
        except NoSuchIndex:  # pruned since it was looked up: the one that is live now is waited for
            live = self._live(collection, steps)
            return self._retrieve(question, k, self._prepared(live).result(), live, steps)

    async def aretrieve(self, search: Search) -> Retrieval:
        """As `retrieve`, in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._calls, self.retrieve, search)

    async def aready(self, collection: str | None = None) -> Index:
        """As `ready`, in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._calls, self.ready, collection)

    def _live(self, collection: str | None, steps: _Steps) -> Index:
        return steps.run("index", lambda: self._store.live_index(self.name(collection)))

    def _retrieve(self, question: str, k: int, serving: _Serving, live: Index, steps: _Steps) -> Retrieval:
        index = live if serving.index.id == live.id else serving.index
        depth = max(self._candidates, k)
        nothing = Matches(0, ())
        words = self._legs.submit(
            steps.leg, BM25, "bm25", lambda: self._search_words(question, depth, serving, index, steps), nothing
        )
        vector = steps.leg(VECTOR, "embed", lambda: self._embed(question, serving), None)
        found = words.result()
        scores = dict(found.scores)
        revision, nearest, named = steps.run("search", lambda: self._store.search(index, vector, list(scores), depth))
        self._check_words(serving, found, revision, named, steps)
        matches = [
            replace(hit, score=scores[chunk_id], score_kind=BM25)
            for chunk_id, hit in named.items()
            if chunk_id in scores
        ]
        legs = [
            Leg(VECTOR, nearest, self._weights[VECTOR]),
            Leg(BM25, matches, self._weights[BM25]),
        ]
        hits = steps.run("fuse", lambda: fuse(legs))[:k]
        degraded = tuple(leg for leg in (VECTOR, BM25) if leg in steps.degraded)
        return Retrieval(question, tuple(hits), index, revision, degraded, steps.timings, (question,))

    # -- legs

    def _embed(self, question: str, serving: _Serving) -> Vector | None:
        if serving.embedder is None:
            raise ModelNotReady(serving.index.settings.model)
        vector = serving.embedder.embed_query(question)
        expected = serving.index.settings.dimension or len(vector)
        if vector.shape != (expected,) or not np.isfinite(vector).all():
            raise ValueError(f"the question's vector has shape {vector.shape} or is not finite, not ({expected},)")
        return vector

    def _search_words(self, question: str, depth: int, serving: _Serving, index: Index, steps: _Steps) -> Matches:
        try:
            self._follow(serving, index, self._patience)
        except Exception as error:
            steps.lose(BM25, f"it has not followed to revision {index.revision}: {type(error).__name__} {error}")
            if serving.lexical.revision is None:
                return Matches(0, ())
        return serving.lexical.search(question, depth)

    def _follow(self, serving: _Serving, index: Index, timeout: float | None) -> None:
        """Wait up to `timeout` seconds until BM25 is at `index`'s revision; a build under way goes on after that."""
        lexical = serving.lexical
        for _ in range(2):  # the first may join a sync that began before this revision
            if lexical.revision != index.revision:
                sync = self._background.once(lexical, lambda: lexical.sync(self._store, index))
                sync.result(timeout)

    def _check_words(
        self, serving: _Serving, found: Matches, revision: int, named: Mapping[str, Hit], steps: _Steps
    ) -> None:
        """At one revision BM25 and the store hold the same chunks; a folder that does not is of another database."""
        if found.revision == revision and len(named) < len(found.scores):
            steps.lose(BM25, f"{len(found.scores) - len(named)} of {len(found.scores)} chunks are not in the store")
            self._background.once((serving.lexical, "forget"), serving.lexical.forget)

    # -- following the live index

    def _current(self, live: Index) -> _Serving:
        """What answers now: prepared for `live`, or for the index before it while `live` is not ready."""
        serving = self._serving.get(live.collection)
        if serving and serving.index.id == live.id and (serving.embedder or not self._may_load(live)):
            return serving
        prepared = self._prepared(live)
        if serving is None:
            return prepared.result()
        try:
            return prepared.result(self._patience)
        except TimeoutError:
            return serving

    def _prepared(self, live: Index) -> "Future[_Serving]":
        return self._background.once(("prepare", live.id), lambda: self._prepare(live))

    def _prepare(self, live: Index) -> _Serving:
        before = self._serving.get(live.collection)
        if before and before.index.id == live.id and before.embedder:
            return before
        lexical = before.lexical if before and before.index.id == live.id else self._make_lexical(live)
        serving = _Serving(live, self._embedder(live.settings.model), lexical)
        if before is not None and before.index.id != live.id:
            self._try_sync(serving)
        self._serving[live.collection] = serving
        return serving

    def _try_sync(self, serving: _Serving) -> None:
        try:
            serving.lexical.sync(self._store, serving.index)
        except Exception as error:
            log.warning("BM25 of index %d is not ready: %s", serving.index.id, error)

    def _embedder(self, model: str) -> QueryEmbedder | None:
        if model not in self._embedders:
            try:
                self._embedders[model] = self._load_embedder(model)
            except Exception as error:
                self._failed[model] = time.monotonic()
                log.error("model %s does not load: %s: %s", model, type(error).__name__, error)
        return self._embedders.get(model)

    def _may_load(self, live: Index) -> bool:
        failed = self._failed.get(live.settings.model)
        return failed is None or time.monotonic() - failed > self.RETRY


class _Background:
    """Runs slow preparations once each; who needs one waits for it as long as they like."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(4, "raydex-prepare")
        self._lock = threading.RLock()  # a call that is done at once drops itself while it is being noted
        self._running: dict[object, Future[Any]] = {}

    def once(self, key: object, call: Callable[[], T]) -> "Future[T]":
        """The call under way for `key`, or a new one."""
        with self._lock:
            future = self._running.get(key)
            if future is None:
                future = self._running[key] = self._threads.submit(call)
                future.add_done_callback(lambda _: self._drop(key))
            return future

    def _drop(self, key: object) -> None:
        with self._lock:
            self._running.pop(key, None)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
