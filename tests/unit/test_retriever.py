"""Retrieval follows the live index, never mixes revisions, and degrades rather than fails."""

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from answering_fakes import MemoryStore, WordEmbedder, make_hit

from pipelines.answering.retriever import CollectionNotNamed, ModelNotReady, Retriever, Search
from pipelines.lexical import LexicalIndex, Matches
from pipelines.records import Index
from pipelines.store import NoLiveIndex, StoreUnavailable

CSV = make_hit("https://d.test/data#csv", "Call read_csv to load comma separated files.")
ACTORS = make_hit("https://d.test/data#actors", "Actors keep state between calls.")
TUNE = make_hit("https://d.test/tune#stop", "ASHA stops bad trials early.")


def asked(question: str, collection: str | None = None, **more: object) -> Search:
    return Search((question,), collection, **more)  # type: ignore[arg-type]


Make = Callable[..., Retriever]


class Models:
    """Loads embedders by name; counts loads. A gate holds a load back, a name in `broken` fails."""

    def __init__(self) -> None:
        self.embedder, self.loads, self.broken = WordEmbedder(), list[str](), set[str]()
        self.gates: dict[str, threading.Event] = {}

    def __call__(self, model: str) -> WordEmbedder:
        self.loads.append(model)
        if model in self.gates:
            assert self.gates[model].wait(10)
        if model in self.broken:
            raise OSError(f"no model {model}")
        return self.embedder


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore(CSV, ACTORS)


@pytest.fixture
def models() -> Models:
    return Models()


@pytest.fixture
def make(store: MemoryStore, models: Models, tmp_path: Path) -> Iterator[Make]:
    made: list[Retriever] = []

    def retriever(lexical: Callable[[Index], LexicalIndex] | None = None, **settings: object) -> Retriever:
        made.append(
            Retriever(store, models, lexical or (lambda index: LexicalIndex(tmp_path / str(index.id))), **settings)  # type: ignore[arg-type]
        )
        return made[-1]

    yield retriever
    for one in made:
        one.close()


class BrokenLexical(LexicalIndex):
    def sync(self, store: object, index: Index) -> int:
        raise OSError("the disk is full")


def test_both_legs_find_and_are_fused(make: Make) -> None:
    found = make().retrieve(asked("read_csv files"))
    assert found.hits[0].source == CSV.source and found.hits[0].ranks == {"vector": 1, "bm25": 1}
    assert found.hits[0].scores["vector"] <= 1 < 2 * found.hits[0].scores["bm25"] and found.degraded == ()
    assert {"index", "embed", "bm25", "search", "fuse"} <= found.timings.keys()


def test_a_question_looks_at_the_store_once(make: Make, store: MemoryStore) -> None:
    make().retrieve(asked("files"))
    assert store.searches == 1


def test_k_bounds_the_hits(make: Make) -> None:
    assert len(make().retrieve(asked("files", k=1)).hits) == 1


def test_a_publish_is_followed_by_both_legs(make: Make, store: MemoryStore) -> None:
    retriever = make()
    retriever.retrieve(asked("asha"))
    store.publish(1, CSV, TUNE)
    found = retriever.retrieve(asked("asha"))
    assert found.revision == 2 and found.degraded == ()
    assert found.hits[0].source == TUNE.source and found.hits[0].ranks["bm25"] == 1


def test_a_failing_model_leaves_bm25(make: Make, models: Models) -> None:
    models.embedder.fails = True
    found = make().retrieve(asked("read_csv"))
    assert found.degraded == ("vector",) and found.hits[0].source == CSV.source


def test_a_model_that_does_not_load_leaves_bm25_and_is_not_ready(make: Make, models: Models) -> None:
    models.broken = {"words"}
    retriever = make()
    assert retriever.retrieve(asked("read_csv")).degraded == ("vector",)
    assert retriever.retrieve(asked("read_csv")).hits and models.loads == ["words"]
    with pytest.raises(ModelNotReady):
        retriever.ready()


def test_a_vector_of_another_dimension_leaves_bm25(make: Make, models: Models) -> None:
    models.embedder.dimension = 8
    assert make().retrieve(asked("read_csv")).degraded == ("vector",)


def test_a_broken_bm25_leaves_vectors(make: Make, tmp_path: Path) -> None:
    found = make(lexical=lambda index: BrokenLexical(tmp_path / "x")).retrieve(asked("read_csv files"))
    assert found.degraded == ("bm25",) and found.hits[0].ranks == {"vector": 1}


def test_both_legs_down_is_still_an_answer(make: Make, models: Models, tmp_path: Path) -> None:
    models.embedder.fails = True
    found = make(lexical=lambda index: BrokenLexical(tmp_path / "x")).retrieve(asked("read_csv"))
    assert found.degraded == ("vector", "bm25") and found.hits == ()


def test_a_long_bm25_build_is_not_waited_for(make: Make, tmp_path: Path) -> None:
    gate = threading.Event()

    class Slow(LexicalIndex):
        def sync(self, store: object, index: Index) -> int:
            assert gate.wait(10)
            return super().sync(store, index)  # type: ignore[arg-type]

    retriever = make(lexical=lambda index: Slow(tmp_path / "x"), patience=0.05)
    assert retriever.retrieve(asked("read_csv")).degraded == ("bm25",)
    gate.set()
    retriever.prepare()
    assert retriever.retrieve(asked("read_csv")).degraded == ()


def test_a_folder_of_another_database_is_noticed_and_built_again(make: Make, tmp_path: Path) -> None:
    other = MemoryStore(make_hit("https://other.test/", "read_csv of another database"))
    LexicalIndex(tmp_path / "1").sync(other, other.live_index("docs"))
    retriever = make()
    assert retriever.retrieve(asked("read_csv")).degraded == ("bm25",)
    deadline = time.monotonic() + 20
    while (found := retriever.retrieve(asked("read_csv"))).degraded and time.monotonic() < deadline:
        time.sleep(0.05)
    assert found.degraded == () and found.hits[0].ranks["bm25"] == 1


def test_a_folder_forgotten_while_it_is_searched_is_a_leg_lost(make: Make, tmp_path: Path) -> None:
    class Forgotten(LexicalIndex):
        def search(self, question: str, k: int) -> Matches:
            found = super().search(question, k)
            self.forget()  # as another question does that has noticed the foreign folder
            return found

    other = MemoryStore(make_hit("https://other.test/", "read_csv of another database"))
    LexicalIndex(tmp_path / "1").sync(other, other.live_index("docs"))
    found = make(lexical=lambda index: Forgotten(tmp_path / "1")).retrieve(asked("read_csv"))
    assert found.degraded == ("bm25",)


def test_the_old_index_serves_until_the_new_ones_model_is_loaded(
    make: Make, store: MemoryStore, models: Models
) -> None:
    retriever = make(patience=0.05)
    retriever.retrieve(asked("asha"))
    models.gates["next"] = threading.Event()
    store.publish_index(2, TUNE, model="next")
    assert retriever.retrieve(asked("asha")).index.id == 1
    models.gates["next"].set()
    retriever.prepare()
    found = retriever.retrieve(asked("asha"))
    assert found.index.id == 2 and found.hits[0].source == TUNE.source and found.degraded == ()
    assert models.loads == ["words", "next"]


def test_an_old_index_that_is_pruned_is_not_missed(make: Make, store: MemoryStore, models: Models) -> None:
    retriever = make(patience=0.05)
    retriever.retrieve(asked("asha"))
    models.gates["next"] = threading.Event()
    store.publish_index(2, TUNE, model="next")
    del store.indexes[1]
    threading.Timer(0.3, models.gates["next"].set).start()
    assert retriever.retrieve(asked("asha")).index.id == 2


def test_a_model_is_loaded_once_for_many_indexes(make: Make, store: MemoryStore, models: Models) -> None:
    retriever = make()
    retriever.retrieve(asked("x"))
    store.publish_index(2, TUNE)
    assert retriever.retrieve(asked("asha")).index.id == 2 and models.loads == ["words"]


def test_a_rollback_is_followed(make: Make, store: MemoryStore) -> None:
    retriever = make()
    retriever.retrieve(asked("x"))
    store.publish_index(2, TUNE)
    retriever.retrieve(asked("x"))
    store.live["docs"] = 1
    assert retriever.retrieve(asked("read_csv")).hits[0].source == CSV.source


def test_nothing_live_is_said_with_what_to_do(make: Make, store: MemoryStore) -> None:
    store.live.clear()
    with pytest.raises(CollectionNotNamed, match="reindex"):
        make().retrieve(asked("x"))
    with pytest.raises(NoLiveIndex, match="reindex"):
        make().retrieve(asked("x", "docs"))


def test_the_only_collection_is_meant_and_two_are_named(make: Make, store: MemoryStore) -> None:
    retriever = make()
    assert retriever.name() == "docs"
    store.publish_index(2, TUNE, collection="tune")
    with pytest.raises(CollectionNotNamed, match="docs, tune"):
        retriever.retrieve(asked("x"))
    assert retriever.retrieve(asked("x", "tune")).index.id == 2
    assert make(collection="tune").retrieve(asked("x")).index.id == 2


def test_a_database_that_is_away_is_no_degradation(make: Make, store: MemoryStore) -> None:
    retriever = make()
    retriever.retrieve(asked("x"))
    store.away = True
    with pytest.raises(StoreUnavailable):
        retriever.retrieve(asked("x"))
