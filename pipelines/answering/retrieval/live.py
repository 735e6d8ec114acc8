"""What answers questions to a collection now: its live index with embedder and BM25, prepared as indexes change.

The index before it serves until the new one is ready. Knows no question.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np

from pipelines.lexical import ChunkSource, LexicalIndex
from pipelines.records import Index
from pipelines.store import is_copy

log = logging.getLogger(__name__)

T = TypeVar("T")
Vector = np.ndarray[tuple[int, ...], np.dtype[np.float32]]


class CollectionNotNamed(LookupError):
    """No collection was named and there is not exactly one to take."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        choices = f"name one of: {', '.join(names)}" if names else "nothing is indexed yet, run `raydex index` first"
        super().__init__(f"no collection was named and there are {len(names)}; {choices}")

    def __reduce__(self) -> tuple[type, tuple[tuple[str, ...]]]:
        return type(self), (self.names,)


class ModelNotReady(RuntimeError):
    """The embedding model of the live index is still loading, or does not load."""

    def __init__(self, model: str) -> None:
        self.model = model
        super().__init__(f"embedding model {model!r} is not loaded (yet); the log says why if it stays so")

    def __reduce__(self) -> tuple[type, tuple[str]]:
        return type(self), (self.model,)


class LiveIndexStore(ChunkSource, Protocol):
    """What following the live index reads of the store."""

    def live_index(self, collection: str, /) -> Index: ...

    def collections(self) -> Sequence[Mapping[str, Any]]: ...


class QueryEmbedder(Protocol):
    """What answering needs of an embedder: vectors of shape (dimension,) and (texts, dimension)."""

    def embed_query(self, text: str) -> Vector: ...

    def embed_chunks(self, texts: Sequence[str]) -> Vector: ...


@dataclass(frozen=True, slots=True)
class LiveIndex:
    """What answers questions about one index. `embedder` None: its model does not load."""

    index: Index
    embedder: QueryEmbedder | None
    lexical: LexicalIndex

    @property
    def model(self) -> QueryEmbedder:
        """The embedder. Raises ModelNotReady."""
        if self.embedder is None:
            raise ModelNotReady(self.index.settings.model)
        return self.embedder


class LiveIndexes:
    """One LiveIndex a collection, following its live index.

    `load_embedder`, `make_lexical`, `collection` and `patience` as in Retriever.
    """

    # A model that does not load is tried again after this many seconds.
    RETRY = 30.0

    def __init__(
        self,
        store: LiveIndexStore,
        load_embedder: Callable[[str], QueryEmbedder],
        make_lexical: Callable[[Index], LexicalIndex],
        collection: str,
        patience: float,
    ) -> None:
        self._store = store
        self._load_embedder = load_embedder
        self._make_lexical = make_lexical
        self._collection = collection
        self._patience = patience
        self._serving: dict[str, LiveIndex] = {}
        self._embedders: dict[str, QueryEmbedder] = {}
        self._failed: dict[str, float] = {}
        self._background = _Background()

    def close(self) -> None:
        """Give up what is being prepared."""
        self._background.close()

    def name(self, collection: str | None) -> str:
        """The collection meant. Raises CollectionNotNamed where that is not clear."""
        if collection or self._collection:
            return collection or self._collection
        names = [row["name"] for row in self._store.collections() if not is_copy(row["name"])]
        if len(names) != 1:
            raise CollectionNotNamed(names)
        return str(names[0])

    def live(self, collection: str | None) -> Index:
        """The live index. Raises CollectionNotNamed, NoLiveIndex and StoreUnavailable."""
        return self._store.live_index(self.name(collection))

    def serving(self, live: Index) -> LiveIndex | None:
        """What answers now, whatever it is of."""
        return self._serving.get(live.collection)

    def current(self, live: Index) -> LiveIndex:
        """What answers now: prepared for `live`, or for the index before it while `live` is not ready."""
        serving = self._serving.get(live.collection)
        if serving and serving.index.id == live.id and (serving.embedder or not self._may_load(live)):
            return serving
        prepared = self.prepared(live)
        if serving is None:
            return prepared.result()
        try:
            return prepared.result(self._patience)
        except TimeoutError:
            return serving

    def prepared(self, live: Index) -> "Future[LiveIndex]":
        """What will answer from `live`, being prepared if it is not yet."""
        return self._background.once(("prepare", live.id), lambda: self._prepare(live))

    def follow(self, lexical: LexicalIndex, index: Index, timeout: float | None) -> None:
        """Wait up to `timeout` seconds until BM25 is at `index`'s revision; a build under way goes on after that."""
        for _ in range(2):  # the first may join a sync that began before this revision
            if lexical.revision != index.revision:
                sync = self._background.once(lexical, lambda: lexical.sync(self._store, index))
                sync.result(timeout)

    def forget(self, lexical: LexicalIndex) -> None:
        """Have a BM25 folder dropped that does not match the store."""
        self._background.once((lexical, "forget"), lexical.forget)

    def _prepare(self, live: Index) -> LiveIndex:
        before = self._serving.get(live.collection)
        if before and before.index.id == live.id and before.embedder:
            return before
        lexical = before.lexical if before and before.index.id == live.id else self._make_lexical(live)
        serving = LiveIndex(live, self._embedder(live.settings.model), lexical)
        if before is not None and before.index.id != live.id:
            self._try_sync(serving)
        self._serving[live.collection] = serving
        return serving

    def _try_sync(self, serving: LiveIndex) -> None:
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
