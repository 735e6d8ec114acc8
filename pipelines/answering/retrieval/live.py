"""Follows the live index of each collection and prepares its embedder and its BM25 folder.

The previous index serves questions until the new one is ready. This module knows nothing about questions.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np

from pipelines.answering.retrieval.evidence import Yardstick
from pipelines.lexical import LexicalIndex
from pipelines.records import EmbeddingModel, Index
from pipelines.store import NoSuchCollection, Store, is_copy
from pipelines.text.detection import load_identifier

log = logging.getLogger(__name__)

T = TypeVar("T")
Vector = np.ndarray[tuple[int, ...], np.dtype[np.float32]]


class CollectionNotNamed(LookupError):
    """No collection was named, there is no default, and there isn't exactly one."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        choices = (
            f"name one of: {', '.join(names)}; `raydex default NAME` sets the one that is meant from then on"
            if names
            else "nothing is indexed yet, run `raydex index` first"
        )
        super().__init__(f"no collection was named and there are {len(names)}; {choices}")

    def __reduce__(self) -> tuple[type, tuple[tuple[str, ...]]]:
        return type(self), (self.names,)


def choose_collection(collections: Sequence[Mapping[str, Any]], name: str | None = None) -> str:
    """Return `name` if it is in `collections` (rows of the store); without a name, the default or only collection.

    If there is no default, it is the only one with a live index; collections whose first run is unfinished or failed
    don't count. Raises NoSuchCollection and CollectionNotNamed.
    """
    if name and name not in [row["name"] for row in collections]:
        raise NoSuchCollection(name, (row["name"] for row in collections if not is_copy(row["name"])))
    if name:
        return name
    own = [row for row in collections if not is_copy(row["name"])]
    default = [row for row in own if row["is_default"]]
    meant = default or [row for row in own if row["index"] is not None] or own
    if len(meant) != 1:
        raise CollectionNotNamed([row["name"] for row in meant])
    return str(meant[0]["name"])


class IndexReplaced(LookupError):
    """The searched index is no longer live: there is a new index, a new revision, or new rules."""


class NotReady(RuntimeError):
    """A question to `collection` can't be answered fully now."""

    collection = ""


class ModelNotReady(NotReady):
    """The embedding model of the live index of `collection` can't be loaded."""

    def __init__(self, model: str, collection: str = "") -> None:
        self.model, self.collection = model, collection
        super().__init__(f"embedding model {model!r} is not loaded; the log has the reason")

    def __reduce__(self) -> tuple[type, tuple[str, str]]:
        return type(self), (self.model, self.collection)


class IndexLoading(NotReady):
    """The live index of `collection` is being loaded: its embedding model and this node's BM25 folder."""

    def __init__(self, collection: str) -> None:
        self.collection = collection
        super().__init__(f"the index of collection {collection!r} is being loaded: try again")

    def __reduce__(self) -> tuple[type, tuple[str]]:
        return type(self), (self.collection,)


class QueryEmbedder(Protocol):
    """Embeds questions and texts as vectors of shape (dimension,) and (texts, dimension)."""

    def embed_query(self, text: str) -> Vector: ...

    def embed_chunks(self, texts: Sequence[str]) -> Vector: ...


@dataclass(frozen=True, slots=True)
class LiveIndex:
    """An index with its embedder and BM25; `embedder` is None if its model can't be loaded.

    `yardstick` scales the embedder's cosines.
    """

    index: Index
    embedder: QueryEmbedder | None
    lexical: LexicalIndex
    yardstick: Yardstick | None = None

    @property
    def model(self) -> QueryEmbedder:
        """The embedder. Raises ModelNotReady."""
        if self.embedder is None:
            raise ModelNotReady(self.index.settings.model)
        return self.embedder


class LiveIndexes:
    """Keeps one LiveIndex per collection and follows the live indexes in the store.

    `load_embedder`, `make_lexical` and `collection` are as in Retriever; `patience_s` is as in RetrievalSettings.
    Without `words`, BM25 is only built for an index when it is first needed.
    """

    # A model that failed to load is tried again after this many seconds.
    RETRY = 30.0

    def __init__(
        self,
        store: Store,
        load_embedder: Callable[[EmbeddingModel], QueryEmbedder],
        make_lexical: Callable[[Index], LexicalIndex],
        collection: str,
        patience_s: float,
        words: bool = True,
    ) -> None:
        self._store, self._load_embedder, self._make_lexical = store, load_embedder, make_lexical
        self._collection, self._patience_s, self._words = collection, patience_s, words
        self._ready: dict[str, LiveIndex] = {}
        self._seen: dict[str, Index] = {}  # by the requested name
        self._models: dict[EmbeddingModel, tuple[QueryEmbedder, Yardstick | None]] = {}
        self._failed: dict[EmbeddingModel, float] = {}
        self._background, self._loads = _Background(), _Background()

    def close(self) -> None:
        """Cancel all preparations."""
        self._background.close()
        self._loads.close()

    def name(self, collection: str | None) -> str:
        """Return the name of the collection, resolving the default. Raises CollectionNotNamed if it is ambiguous."""
        return self.named(collection) or choose_collection(self._store.collections())

    def index(self, collection: str | None) -> Index:
        """Return the live index from the store. Raises CollectionNotNamed, NoLiveIndex and StoreUnavailable."""
        index = self._seen[self.named(collection) or ""] = self._store.live_index(self.name(collection))
        return index

    def named(self, collection: str | None) -> str | None:
        """Return the collection's name if it is given, or None for the default or only collection."""
        return collection or self._collection or None

    def remembered(self, collection: str | None) -> Index | None:
        """Return the index that was live at the last query of the store; `check_live` checks if it still is."""
        return self._seen.get(self.named(collection) or "")

    def check_live(self, index: Index, collection: str | None, live: Sequence[Mapping[str, Any]]) -> None:
        """Raise IndexReplaced unless `index`, at its revision, is live according to the store's rows of collections.

        A candidate is exempt: only its evaluation searches it, and it is never live.
        """
        if index.state == "candidate":
            return
        name = self.named(collection) or choose_collection(live)
        known = [(row["name"], row["index"], row["revision"], row.get("rules", {})) for row in live]
        if (name, index.id, index.revision, index.rules) not in known:
            raise IndexReplaced(f"index {index.id} of {index.collection!r} is no longer live at {index.revision}")

    def ready(self, index: Index) -> LiveIndex | None:
        """Return the prepared LiveIndex of the collection of `index`, which may belong to another index."""
        return self._ready.get(index.collection)

    def current(self, index: Index) -> LiveIndex:
        """Return the LiveIndex of `index`, or of the previous index until `index` is ready."""
        ready = self._ready.get(index.collection)
        if ready and ready.index.id == index.id and (ready.embedder or not self._may_load(index)):
            return ready
        preparation = self.prepare(index)
        if ready is None:
            return preparation.result()
        try:
            return preparation.result(self._patience_s)
        except TimeoutError:
            return ready

    def prepare(self, index: Index) -> "Future[LiveIndex]":
        """Return the preparation of `index`; start it if it isn't running."""
        return self._background.once(("prepare", index.id), lambda: self._prepare(index))

    def follow(self, lexical: LexicalIndex, index: Index, timeout: float | None) -> None:
        """Wait up to `timeout` seconds until BM25 reaches the revision of `index`; a running build continues."""
        for _ in range(2):  # the first may join a sync that began before this revision
            if lexical.revision != index.revision:
                sync = self._background.once(lexical, lambda: self._sync(lexical, index))
                sync.result(timeout)

    def forget(self, live: LiveIndex) -> None:
        """Drop a BM25 folder that does not match the store, in the background."""
        self._background.once((live.lexical, "forget"), lambda: live.lexical.forget(self._store, live.index))

    def _prepare(self, index: Index) -> LiveIndex:
        before = self._ready.get(index.collection)
        if before and before.index.id == index.id and before.embedder:
            return before
        lexical = before.lexical if before and before.index.id == index.id else self._make_lexical(index)
        model = index.settings.embedding
        embedder, yardstick = self._loads.once(model, lambda: self._load(model)).result()
        self._background.once("languages", load_identifier)
        live = LiveIndex(index, embedder, lexical, yardstick)
        if self._words and (before is None or before.index.id != index.id):
            self._try_sync(live)
        self._ready[index.collection] = live
        return live

    def _sync(self, lexical: LexicalIndex, index: Index) -> None:
        """Bring BM25 to the newest revision, and then store it for other machines in the background."""
        lexical.sync(self._store, index)
        with suppress(RuntimeError):  # closed meanwhile
            self._background.once((lexical, "archive"), lambda: lexical.keep_archive(self._store, index))

    def _try_sync(self, live: LiveIndex) -> None:
        try:
            self._sync(live.lexical, live.index)
        except Exception as error:
            log.warning("BM25 of index %d is not ready: %s", live.index.id, error)

    def _load(self, model: EmbeddingModel) -> tuple[QueryEmbedder | None, Yardstick | None]:
        if model not in self._models:
            try:
                embedder = self._load_embedder(model)
                self._models[model] = embedder, Yardstick.of(embedder)
            except Exception as error:
                self._failed[model] = time.monotonic()
                log.error("can't load model %s: %s: %s", model.name, type(error).__name__, error)
        return self._models.get(model, (None, None))

    def _may_load(self, index: Index) -> bool:
        failed = self._failed.get(index.settings.embedding)
        return failed is None or time.monotonic() - failed > self.RETRY


class _Background:
    """Runs each slow preparation only once; several callers can wait for it."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(4, "raydex-prepare")
        self._lock = threading.RLock()  # reentrant: a call that is already done drops itself inside `once`
        self._running: dict[object, Future[Any]] = {}

    def once(self, key: object, call: Callable[[], T]) -> "Future[T]":
        """Return the running call for `key`, or start one."""
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
