"""Retrieval follows the live index, never mixes revisions, and degrades rather than fails."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kit.answering import MemoryStore, WordEmbedder, make_hit
from kit.queued_model import Says

from pipelines.answering.engine import QueryEngine
from pipelines.answering.question import Question
from pipelines.answering.retrieval.live import CollectionNotNamed, IndexLoading, ModelNotReady, choose_collection
from pipelines.answering.retrieval.neighbours import join_chunks, with_neighbours
from pipelines.answering.retrieval.ranking.fusion import Fusion, spread_pages
from pipelines.answering.retrieval.ranking.texts import FUSED, LEARNED
from pipelines.answering.retrieval.retriever import Retriever
from pipelines.answering.retrieval.search import Retrieval, RetrievalSettings, Search
from pipelines.lexical import LexicalIndex, Matches
from pipelines.llm.session import LOADING, Status
from pipelines.records import Answer, EmbeddingModel, Filters, Index
from pipelines.store import NoLiveIndex, StoreUnavailable

CSV = make_hit("https://d.test/data#csv", "Call read_csv to load comma separated files.")
ACTORS = make_hit("https://d.test/data#actors", "Actors keep state between calls.")
TUNE = make_hit("https://d.test/tune#stop", "ASHA stops bad trials early.")
HITS = (CSV, ACTORS)


def search_for(question: str, collection: str | None = None, **more: object) -> Search:
    return Search((question,), collection, **more)  # type: ignore[arg-type]


Make = Callable[..., Retriever]


class Models:
    """Loads embedders by name and counts the loads. A gate delays a load; a name in `broken` fails."""

    def __init__(self) -> None:
        self.embedder, self.loads, self.broken = WordEmbedder(), list[str](), set[str]()
        self.gates: dict[str, threading.Event] = {}

    def __call__(self, model: EmbeddingModel) -> WordEmbedder:
        self.loads.append(model.name)
        if model.name in self.gates:
            assert self.gates[model.name].wait(60)
        if model.name in self.broken:
            raise OSError(f"no model {model.name}")
        return self.embedder


@pytest.fixture
def models() -> Models:
    return Models()


@pytest.fixture
def make(store: MemoryStore, models: Models, tmp_path: Path) -> Iterator[Make]:
    made: list[Retriever] = []

    def retriever(
        lexical: Callable[[Index], LexicalIndex] | None = None,
        collection: str = "",
        **settings: Any,
    ) -> Retriever:
        folder = lexical or (lambda index: LexicalIndex(tmp_path / str(index.id)))
        waiting = {"patience_s": 20.0, "timeout_s": 30.0}  # a busy machine is not a failure
        patient = RetrievalSettings(**{"ranking": FUSED, **waiting, **settings})
        made.append(Retriever(store, models, folder, collection=collection, settings=patient))
        return made[-1]

    yield retriever
    for one in made:
        one.close()


class BrokenLexical(LexicalIndex):
    def sync(self, store: object, index: Index) -> int:
        raise OSError("the disk is full")


def test_hits_of_both_legs_are_fused(make: Make) -> None:
    found = make().retrieve(search_for("read_csv files"))
    assert found.hits[0].source == CSV.source and found.hits[0].ranks == {"vector": 1, "bm25": 1}
    assert found.hits[0].scores["vector"] <= 1 < 2 * found.hits[0].scores["bm25"] and found.degraded == ()
    assert {"index", "embed", "bm25", "search", "fuse"} <= found.timings.keys()


def test_live_index_is_looked_up_separately_only_after_a_publish(make: Make, store: MemoryStore) -> None:
    retriever = make()
    retriever.prepare()
    store.looks = 0
    assert retriever.retrieve(search_for("files")).revision == 1 and (store.looks, store.searches) == (0, 1)
    store.publish(1, CSV, TUNE)
    assert retriever.retrieve(search_for("files")).revision == 2 and (store.looks, store.searches) == (1, 3)
    assert retriever.retrieve(search_for("files")).revision == 2 and (store.looks, store.searches) == (1, 4)


def test_publish_during_a_search_mixes_no_revisions(make: Make, store: MemoryStore, models: Models) -> None:
    retriever, embed = make(), models.embedder.embed_query
    retriever.prepare()

    def publish_and_embed(text: str) -> np.ndarray:
        models.embedder.embed_query = embed  # type: ignore[method-assign]
        store.publish(1, CSV, TUNE)
        return embed(text)

    models.embedder.embed_query = publish_and_embed  # type: ignore[method-assign]
    found = retriever.retrieve(search_for("asha"))
    assert found.revision == 2 and found.degraded == ()
    assert found.hits[0].source == TUNE.source and found.hits[0].ranks["bm25"] == 1


def test_model_that_does_not_load_leaves_bm25_and_is_not_ready(make: Make, models: Models) -> None:
    models.broken = {"words"}
    retriever = make()
    assert retriever.retrieve(search_for("read_csv")).degraded == ("vector",)
    assert retriever.retrieve(search_for("read_csv")).hits and models.loads == ["words"]
    with pytest.raises(ModelNotReady):
        retriever.ready()
    with pytest.raises(ModelNotReady):
        retriever.embed(["x"])


@pytest.mark.parametrize(("broken", "names"), [
    ({"fails": True}, ("vector",)), ({"dimension": 8}, ("vector",)), ({"slow": True}, ("vector",)),
    ({"bm25": None}, ("bm25",)), ({"fails": True, "bm25": None}, ("vector", "bm25")),
])  # fmt: skip
def test_broken_leg_leaves_the_other_and_two_broken_legs_are_reported(make, store, models, tmp_path, broken, names):
    for name in broken.keys() - {"bm25"}:
        setattr(store if name == "slow" else models.embedder, name, broken[name])
    lexical = (lambda index: BrokenLexical(tmp_path / "x")) if "bm25" in broken else None
    found = make(lexical=lexical).retrieve(search_for("read_csv files"))
    assert found.degraded == names
    left = {name: 1 for name in ("vector", "bm25") if name not in names}
    assert [(hit.source, hit.ranks) for hit in found.hits[:1]] == ([(CSV.source, left)] if left else [])


class GatedLexical(LexicalIndex):
    """Syncs once its gate is open."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.gate = threading.Event()

    def sync(self, store: object, index: Index) -> int:
        assert self.gate.wait(60)
        return super().sync(store, index)  # type: ignore[arg-type]


def test_question_waits_for_the_first_build_of_bm25(make: Make, tmp_path: Path) -> None:
    lexical = GatedLexical(tmp_path / "x")
    retriever = make(lexical=lambda index: lexical, patience_s=0.05)
    with pytest.raises(IndexLoading):
        retriever.ready()
    threading.Timer(0.3, lexical.gate.set).start()
    assert retriever.retrieve(search_for("read_csv")).degraded == ()
    assert retriever.ready().id == 1 and retriever.has_loaded()


def test_new_revision_is_waited_for_only_briefly(make: Make, store: MemoryStore, tmp_path: Path) -> None:
    lexical = GatedLexical(tmp_path / "x")
    lexical.gate.set()
    retriever = make(lexical=lambda index: lexical, patience_s=0.05)
    retriever.prepare()
    lexical.gate.clear()
    store.publish(1, CSV, ACTORS, TUNE)
    assert retriever.retrieve(search_for("asha")).degraded == ("bm25",)
    assert retriever.ready().revision == 2
    lexical.gate.set()
    retriever.prepare()
    assert retriever.retrieve(search_for("asha")).degraded == ()


def test_bm25_is_not_built_if_its_weight_is_zero(make: Make, tmp_path: Path) -> None:
    retriever = make(fusion=Fusion(weights={"bm25": 0}))
    assert retriever.prepare().id == 1 and retriever.retrieve(search_for("csv")).degraded == ()
    assert not list(tmp_path.iterdir())


def test_every_live_collection_is_warmed(make: Make, store: MemoryStore) -> None:
    store.publish_index(2, TUNE, collection="guide")
    retriever = make()
    retriever.warm()
    assert retriever.has_loaded("docs") and retriever.has_loaded("guide")
    assert retriever.retrieve(search_for("asha", "guide")).degraded == ()


def test_questions_waiting_for_an_index_use_no_thread(make: Make, store: MemoryStore, tmp_path: Path) -> None:
    gated = GatedLexical(tmp_path / "gated")
    retriever = make(lexical=lambda index: gated if index.id == 1 else LexicalIndex(tmp_path / "open"))
    store.publish_index(2, TUNE, collection="guide")

    async def ask() -> tuple[Retrieval, Retrieval]:
        waiting = [asyncio.ensure_future(retriever.aretrieve(search_for("csv", "docs"))) for _ in range(100)]
        other = await retriever.aretrieve(search_for("asha", "guide"))
        waiting.pop().cancel()  # one leaving question does not end the preparation for all
        gated.gate.set()
        return other, (await asyncio.gather(*waiting))[0]

    other, held_up = asyncio.run(ask())
    assert other.degraded == held_up.degraded == ()


def test_stream_says_that_an_index_is_loading(make: Make, tmp_path: Path) -> None:
    lexical = GatedLexical(tmp_path / "x")
    engine = QueryEngine(make(lexical=lambda index: lexical))

    async def ask() -> list[object]:
        events = list[object]()
        async for event in engine.stream(Question("How do I load csv files?")):
            events.append(event)
            lexical.gate.set()
        return events

    first, second, *_, answer = asyncio.run(ask())
    assert first == Status(LOADING) and isinstance(second, Retrieval)
    assert isinstance(answer, Answer) and answer.degraded == ()
    assert not any(isinstance(event, Status) for event in asyncio.run(ask()))


def test_folder_of_another_database_is_detected_and_rebuilt(make: Make, tmp_path: Path) -> None:
    other = MemoryStore(make_hit("https://other.test/", "read_csv of another database"))
    LexicalIndex(tmp_path / "1").sync(other, other.live_index("docs"))
    retriever = make()
    assert retriever.retrieve(search_for("read_csv")).degraded == ("bm25",)
    deadline = time.monotonic() + 60
    while (found := retriever.retrieve(search_for("read_csv"))).degraded and time.monotonic() < deadline:
        time.sleep(0.05)
    assert found.degraded == () and found.hits[0].ranks["bm25"] == 1


def test_folder_forgotten_during_a_search_loses_only_that_leg(make: Make, tmp_path: Path) -> None:
    class Forgotten(LexicalIndex):
        def search(self, question: str, k: int) -> Matches:
            found = super().search(question, k)
            self.forget(other, other.live_index("docs"))  # like another question that has noticed the foreign folder
            return found

    other = MemoryStore(make_hit("https://other.test/", "read_csv of another database"))
    LexicalIndex(tmp_path / "1").sync(other, other.live_index("docs"))
    found = make(lexical=lambda index: Forgotten(tmp_path / "1")).retrieve(search_for("read_csv"))
    assert found.degraded == ("bm25",)


def test_old_index_serves_until_the_model_of_the_new_one_is_loaded(make, store, models):
    retriever = make(patience_s=0.05)
    retriever.retrieve(search_for("asha"))
    models.gates["next"] = threading.Event()
    store.publish_index(2, TUNE, model="next")
    assert retriever.retrieve(search_for("asha")).index.id == 1
    models.gates["next"].set()
    retriever.prepare()
    found = retriever.retrieve(search_for("asha"))
    assert found.index.id == 2 and found.hits[0].source == TUNE.source and found.degraded == ()
    assert models.loads == ["words", "next"]


def test_question_waits_for_the_new_index_if_the_old_one_is_pruned(
    make: Make, store: MemoryStore, models: Models
) -> None:
    retriever = make(patience_s=0.05)
    retriever.retrieve(search_for("asha"))
    models.gates["next"] = threading.Event()
    store.publish_index(2, TUNE, model="next")
    del store.indexes[1]
    threading.Timer(0.3, models.gates["next"].set).start()
    assert retriever.retrieve(search_for("asha")).index.id == 2


def test_new_index_and_rollback_are_followed_with_one_model_load(make, store, models):
    retriever = make()
    retriever.retrieve(search_for("x"))
    store.publish_index(2, TUNE)
    assert retriever.retrieve(search_for("asha")).index.id == 2
    store.live["docs"] = 1
    assert retriever.retrieve(search_for("read_csv")).hits[0].source == CSV.source
    assert models.loads == ["words"]


def test_collections_prepared_concurrently_share_a_model_and_yardstick(make, store, models, tmp_path):
    store.publish_index(2, *HITS, collection="other")
    measuring, second, gate, embed = (
        threading.Event(),
        threading.Event(),
        threading.Event(),
        models.embedder.embed_chunks,
    )

    def measure(texts: Sequence[str]) -> np.ndarray:
        measuring.set()
        assert gate.wait(60)
        return embed(texts)

    def lexical(index: Index) -> LexicalIndex:
        if index.id == 2:
            second.set()
        return LexicalIndex(tmp_path / str(index.id))

    models.embedder.embed_chunks = measure
    retriever = make(lexical)
    with ThreadPoolExecutor(2) as threads:
        prepared = [threads.submit(retriever.prepare, "docs")]
        assert measuring.wait(60)
        prepared.append(threads.submit(retriever.prepare, "other"))
        assert second.wait(60)
        gate.set()
        assert [one.result().id for one in prepared] == [1, 2]
    found = [retriever.retrieve(search_for("read_csv", name)).evidence for name in ("docs", "other")]
    assert models.loads == ["words"] and found[0] == found[1] and found[0].cosine is not None


def test_missing_live_index_is_reported_with_the_command_to_run(make: Make, store: MemoryStore) -> None:
    store.live.clear()
    with pytest.raises(CollectionNotNamed, match="raydex index"):
        make().retrieve(search_for("x"))
    with pytest.raises(NoLiveIndex, match="raydex index"):
        make().retrieve(search_for("x", "docs"))


def test_only_or_default_collection_is_used_but_two_need_a_name(make: Make, store: MemoryStore) -> None:
    retriever = make()
    assert retriever.name() == "docs" and retriever.retrieve(search_for("x")).index.id == 1
    store.publish_index(2, TUNE, collection="tune")
    for default in (None, "tune", None):
        store.default = default  # the default applies immediately
        if default:
            assert retriever.retrieve(search_for("x")).index.id == 2
        else:
            with pytest.raises(CollectionNotNamed, match="docs, tune"):
                retriever.retrieve(search_for("x"))
        for index, name in enumerate(("docs", "tune"), 1):
            assert retriever.retrieve(search_for("x", name)).index.id == index
            assert make(collection=name).retrieve(search_for("x")).index.id == index


def test_collection_without_a_live_index_is_not_considered() -> None:
    def choose(**indexes: int | None) -> str:
        rows = [{"name": name, "is_default": False, "index": index} for name, index in indexes.items()]
        return choose_collection(rows)

    assert choose(docs=1, typo=None) == "docs" and choose(first=None) == "first"
    with pytest.raises(CollectionNotNamed, match="name one of: docs, tune; `raydex default NAME`"):
        choose(docs=1, tune=2, typo=None)


def test_unreachable_database_is_an_error_not_a_degradation(make: Make, store: MemoryStore) -> None:
    retriever = make()
    retriever.retrieve(search_for("x"))
    store.away = True
    with pytest.raises(StoreUnavailable):
        retriever.retrieve(search_for("x"))


# ---------------------------------------------------------------------------------------------- several queries


def test_texts_of_the_hits_decide_their_order(make: Make) -> None:
    found = make(ranking=LEARNED).retrieve(search_for("read_csv files"))
    assert found.hits[0].source == CSV.source and found.hits[0].score_kind == LEARNED
    assert [hit.score for hit in found.hits] == [hit.scores[LEARNED] for hit in found.hits]
    assert found.hits[0].scores["rrf"] > 0 and "rank" in found.timings


def test_comparison_finds_both_sides_among_texts_with_its_words(make: Make, store: MemoryStore) -> None:
    others = [make_hit(f"https://d.test/{n}", f"The difference between actors and task {n}.") for n in range(5)]
    store.publish(1, CSV, ACTORS, TUNE, *others)
    question = search_for("difference between actors and trials", k=3)
    by_ranking = {name: make(ranking=name).retrieve(question).hits for name in (FUSED, LEARNED)}
    both = {name: {ACTORS.source, TUNE.source} <= {hit.source for hit in hits} for name, hits in by_ranking.items()}
    assert both == {FUSED: False, LEARNED: True}


def test_every_query_goes_to_every_leg_and_to_the_store_once(make: Make, store: MemoryStore, models: Models) -> None:
    retriever = make()
    retriever.prepare()
    models.embedder.calls = 0
    found = retriever.retrieve(Search(("csv", "actors state", "csv")))
    assert found.queries == ("csv", "actors state") and found.question == "csv"
    assert models.embedder.calls == 2 and store.searches == 1
    assert {hit.source for hit in found.hits if hit.ranks["bm25"] == 1} == {CSV.source, ACTORS.source}
    assert found.hits[0].score == found.hits[0].scores["rrf"] and found.hits[0].score_kind == "rrf"


def test_queries_are_embedded_together(make: Make, models: Models) -> None:
    both = threading.Barrier(2, timeout=60)

    class Together(WordEmbedder):
        def embed_query(self, text: str) -> np.ndarray:
            both.wait()
            return super().embed_query(text)

        def embed_chunks(self, texts: Sequence[str]) -> np.ndarray:
            return WordEmbedder().embed_chunks(texts)

    models.embedder = Together()
    assert make().retrieve(Search(("csv", "actors"))).degraded == ()


def test_query_or_passage_that_cannot_be_embedded_costs_only_itself(make: Make, models: Models) -> None:
    class Picky(WordEmbedder):
        def embed_query(self, text: str) -> np.ndarray:
            if text == "bad":
                raise RuntimeError("unreadable")
            return super().embed_query(text)

    models.embedder = Picky()
    retriever = make()
    found = retriever.retrieve(Search(("bad", "read_csv")))
    assert found.degraded == ("vector",) and found.hits[0].ranks == {"vector": 1, "bm25": 1}
    plain, imagined = (retriever.retrieve(Search(("read_csv",), passage=text)) for text in ("", "bad"))
    assert imagined.hits == plain.hits and imagined.degraded == ("hyde",)


# ---------------------------------------------------------------------------------------------- hypothetical passage


def test_mean_of_question_and_passage_is_searched_for(make: Make, store: MemoryStore) -> None:
    question, passage = "how do I call it", "actors keep state between calls"
    retriever = make(fusion=Fusion(weights={"bm25": 0}))
    alone, imagined = (retriever.retrieve(Search((question,), passage=text, k=9)) for text in ("", passage))
    words = WordEmbedder()
    mean = words.embed_query(question) + words.embed_query(passage)
    mean /= np.linalg.norm(mean)
    (expected,) = store.read_index(imagined.index, lambda chunks: chunks.search([mean], [], 9)).nearest
    expected_first = spread_pages(chunk for _, chunk in expected)
    assert [hit.chunk_id for hit in imagined.hits] == [chunk.chunk_id for chunk in expected_first]
    assert [hit.chunk_id for hit in imagined.hits] != [hit.chunk_id for hit in alone.hits]
    assert imagined.queries == (question,) and imagined.evidence == alone.evidence  # a guess is not evidence


STRANGE = ("", "   ", "C++ (", "a:b", '"x', "🙂🙂", "Wie lädt man?", "数据", "'; drop table chunk; --", "\x00\ud800")


@pytest.mark.parametrize("question", [*STRANGE, "word " * 10_000, "x" * 100_000])
def test_no_question_breaks_a_leg(make: Make, question: str) -> None:
    retriever = make()
    for queries in ((question, "read_csv"), ("read_csv", question)):
        found = retriever.retrieve(Search(queries, k=3))
        assert found.degraded == () and found.hits[0].ranks["bm25"]


def test_search_without_a_query_is_refused() -> None:
    with pytest.raises(ValueError, match="query"):
        Search(())


# ---------------------------------------------------------------------------------------------- legs


@pytest.mark.parametrize(("off", "left"), [("vector", "bm25"), ("bm25", "vector")])
def test_leg_of_weight_0_is_neither_searched_nor_reported(make, models, tmp_path, off, left):
    models.embedder.fails = off == "vector"
    lexical = (lambda index: BrokenLexical(tmp_path / "x")) if off == "bm25" else None
    found = make(lexical=lexical, fusion=Fusion(weights={off: 0})).retrieve(search_for("read_csv"))
    assert found.degraded == () and found.hits[0].ranks == {left: 1}


@pytest.mark.parametrize(("settings", "named"), [
    ({"weights": {"vector": -1.0}}, "'vector'"), ({"weights": {"bm25": float("nan")}}, "'bm25'"),
    ({"weights": {"vector": 0, "bm25": 0}}, "vector, bm25"), ({"weights": {"bm52": 1}}, "vector, bm25, previous"),
])  # fmt: skip
def test_invalid_weights_are_refused(make: Make, settings: dict, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        make(fusion=Fusion(**settings))


def test_words_are_searched_while_the_model_embeds(make: Make, models: Models, tmp_path: Path) -> None:
    searched = threading.Event()

    class Telling(LexicalIndex):
        def search(self, *args: Any, **options: Any) -> Matches:
            searched.set()
            return super().search(*args, **options)

    def embed_late(text: str) -> np.ndarray:
        assert searched.wait(30)
        return WordEmbedder().embed_query(text)

    retriever = make(lexical=lambda index: Telling(tmp_path / "x"))
    retriever.prepare()
    models.embedder.embed_query = embed_late  # type: ignore[method-assign]
    found = retriever.retrieve(search_for("read_csv"))
    assert found.degraded == () and found.hits[0].ranks == {"vector": 1, "bm25": 1}


def test_words_are_searched_after_the_store_was_asked_for_a_known_vector(make, store, tmp_path, monkeypatch):
    monkeypatch.setattr("pipelines.answering.retrieval.searcher.AT_ONCE_S", 30.0)
    asked = []

    class Telling(LexicalIndex):
        def search(self, *args, **options):
            asked.append(store.searches)
            return super().search(*args, **options)

    retriever = make(lexical=lambda index: Telling(tmp_path / "x"))
    retriever.prepare()
    store.searches = 0
    assert retriever.retrieve(search_for("read_csv")).degraded == () and asked == [1]


def test_hanging_model_is_not_waited_for_and_blocks_no_other_question(make, models, monkeypatch):
    gate = threading.Event()
    monkeypatch.setattr("pipelines.answering.retrieval.retriever.THREADS", 1)
    retriever = make(patience_s=0.1, timeout_s=1.0)
    retriever.prepare()
    models.embedder.embed_query = lambda text: gate.wait(60)

    async def ask() -> Retrieval:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(retriever.aembed(["files"]), 0.1)
        return await asyncio.wait_for(retriever.aretrieve(search_for("read_csv")), 30)

    found = [retriever.retrieve(search_for("read_csv")), asyncio.run(ask())]
    gate.set()
    assert [(one.degraded, one.hits[0].ranks) for one in found] == [(("vector",), {"bm25": 1})] * 2


@pytest.mark.parametrize("written", [(), ("To load files, call read_csv [1].",)])
def test_model_that_just_failed_is_not_called_again_for_the_answer(
    written: tuple[str, ...], make: Make, models: Models
) -> None:
    retriever = make()
    retriever.prepare()
    models.embedder.calls, models.embedder.fails = 0, True
    answer = QueryEngine(retriever, None, *map(Says, written)).query("read_csv files")
    assert answer.degraded == ("vector",) and "read_csv" in answer.text and models.embedder.calls == 1


# ---------------------------------------------------------------------------------------------- filters and context


def test_filters_apply_to_every_leg_and_to_history(make: Make, store: MemoryStore) -> None:
    old = make_hit("https://d.test/old#csv", "Call read_csv of old.", tags=("old",), version="1", language="de")
    new = make_hit("https://d.test/new#csv", "Call read_csv of new.", tags=("new",), version="2", language="en")
    store.publish_index(2, old, new)
    retriever = make()
    for filters in (
        Filters(tags=("new", "x")), Filters(version="2"), Filters(language="en"), Filters(url_prefix="https://d.test/n"),
    ):  # fmt: skip
        found = retriever.retrieve(search_for("read_csv", filters=filters, previous=(old.chunk_id,)))
        assert [hit.source for hit in found.hits] == [new.source] and found.degraded == ()
        assert set(found.hits[0].ranks) == {"vector", "bm25"}


def test_previously_cited_chunk_stays_a_candidate(make: Make, store: MemoryStore) -> None:
    many = [make_hit(f"https://d.test/{n}", f"read_csv number {n}") for n in range(30)]
    store.publish_index(2, *many, TUNE)
    search = search_for("read_csv", k=20, previous=("no such id", TUNE.chunk_id))
    found = make(leg_depth=10).retrieve(search)
    (cited,) = [hit for hit in found.hits if hit.source == TUNE.source]
    assert cited.ranks == {"previous": 1} and found.degraded == ()
    without = make(leg_depth=10, fusion=Fusion(weights={"previous": 0})).retrieve(search)
    assert TUNE.source not in [hit.source for hit in without.hits]


def test_neighbors_of_a_hit_are_its_context(make: Make, store: MemoryStore) -> None:
    parts = [make_hit("https://d.test/a#s", f"Part {n} about {word}.", ordinal=n) for n, word in enumerate("abcd")]
    store.publish_index(2, *parts, make_hit("https://d.test/a#t", "Another section.", ordinal=4))
    first, *_ = make(neighbours=1).retrieve(search_for("part about c")).hits
    assert first.text == "Part 2 about c."
    assert first.passage == first.context == "Part 1 about b.\n\nPart 2 about c.\n\nPart 3 about d."
    assert make().retrieve(search_for("part about c")).hits[0].context == ""


@pytest.mark.parametrize(("ordinal", "below"), [(1, "**Below**\n\nIts text."), (2, "")], ids=["next", "after more"])
def test_text_under_the_headings_of_a_section_is_below_it(make: Make, store: MemoryStore, ordinal, below) -> None:
    parts = [make_hit("https://d.test/a#s", "About c.", ("Top",)),
             make_hit("https://d.test/a#t", "Its text.", ("Top", "Below"), ordinal=ordinal)]  # fmt: skip
    store.publish_index(2, *parts)
    first, *_ = make(neighbours=1).retrieve(search_for("about c")).hits
    assert (first.passage, first.below) == ("About c.", below)


def test_last_neighbor_is_followed_only_by_the_rest_of_its_code() -> None:
    hit = make_hit("https://d.test/a#s", "```py\none()\n```")
    rest = make_hit("https://d.test/a#s", "```py\n…\ntwo()\n```\n\n| a |\n| --- |\n| b |", ordinal=1)
    more = make_hit("https://d.test/a#s", "```py\nthree()\n```\n\n| a |\n| --- |\n| b |", ordinal=1)
    assert with_neighbours(hit, [hit, rest], 0, 0).passage == "```py\none()\ntwo()\n```\n\n| a |\n| --- |\n| b |"
    assert with_neighbours(hit, [hit, more], 0, 0).passage == hit.text


LINES = "\n".join(f"echo {number}" for number in range(40))
IN_LIST = LINES.replace("\n", "\n    ")
HEAD = "| name | size |\n| --- | --- |\n"


@pytest.mark.parametrize(("one", "other", "overlap", "text"), [
    ("a b c", "b c d", 5, "a b c d"),
    ("a b c", "b c d", 1, "a b c\n\nb c d"),
    ("a b c", "b c d", 0, "a b c\n\nb c d"),
    ("sea a", "and b", 5, "sea a\n\nand b"),
    ("One. Two", "Two\n\nThree", 5, "One. Two\n\nThree"),
    ("", "x", 5, "\n\nx"),
    # Lines repeated by a chunk: of code, of a table's header, of a list's introduction.
    ("It:\n\n```py\ndef f():\n    a()\n```", "It:\n\n```py\ndef f():\n…\n    b()\n```\n\nEnd.", 0,
     "It:\n\n```py\ndef f():\n    a()\n    b()\n```\n\nEnd."),
    # A listing that is cut between its outermost lines; short ones are two listings.
    (f"```sh\n{LINES}\n```", f"```sh\n{LINES}\n```\n\nEnd.", 0, f"```sh\n{LINES}\n{LINES}\n```\n\nEnd."),
    (f"```sh\n{LINES}\n```", f"```py\n{LINES}\n```", 0, f"```sh\n{LINES}\n```\n\n```py\n{LINES}\n```"),
    ("```sh\na\n```", "```sh\nb\n```", 0, "```sh\na\n```\n\n```sh\nb\n```"),
    (f"1. Do:\n\n    ```sh\n    {IN_LIST}\n    ```", f"-   ```sh\n    {IN_LIST}\n    ```\n\n2. Go", 0,
     f"1. Do:\n\n    ```sh\n    {IN_LIST}\n    {IN_LIST}\n    ```\n\n2. Go"),
    (f"- ```sh\n  {LINES}\n  ```", f"```sh\n{LINES}\n```", 0, f"- ```sh\n  {LINES}\n  ```\n\n```sh\n{LINES}\n```"),
    (f"{HEAD}| a | 1 |", f"{HEAD}| b | 2 |", 0, f"{HEAD}| a | 1 |\n| b | 2 |"),
    ("Two steps:\n\n- one", "Two steps:\\\n…\n\n- two", 0, "Two steps:\n\n- one\n\n- two"),
    ("- Two:\n    - one", "- Two:\\\n    …\n-   - two\n    - three", 0, "- Two:\n    - one\n    - two\n    - three"),
    ("Calls:\n\n`a()`\\\nOne.", "Calls:\\\n…\\\n`b()`\\\nTwo.", 0, "Calls:\n\n`a()`\\\nOne.\n\n`b()`\\\nTwo."),
    ("1. Do:\n\n    - a", "-   > Mind.\n\n2. Go", 0, "1. Do:\n\n    - a\n\n    > Mind.\n\n2. Go"),
    ("One is here.", "Two\n…\nmore", 0, "One is here.\n\nTwo\n…\nmore"),
])  # fmt: skip
def test_text_shared_by_two_chunks_is_not_repeated(one: str, other: str, overlap: int, text: str) -> None:
    assert join_chunks(one, other, overlap) == text


# ---------------------------------------------------------------------------------------------- embedding, asyncio


def test_model_of_the_live_index_embeds_texts(make: Make, models: Models) -> None:
    retriever = make()
    vectors = retriever.embed(["read_csv", "actors"])
    assert vectors.shape == (2, 64) and vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1])
    assert retriever.embed([]).shape == (0, 64)


def test_async_calls_run_in_the_threads_of_the_retriever(make: Make, models: Models) -> None:
    retriever, threads, embed = make(), set[str](), models.embedder.embed_chunks
    retriever.prepare()

    def watched(texts: Sequence[str]) -> np.ndarray:
        threads.add(threading.current_thread().name)
        return embed(texts)

    models.embedder.embed_chunks = watched  # type: ignore[method-assign]

    async def ask() -> tuple[Retrieval, np.ndarray, Index]:
        found = await retriever.aretrieve(search_for("read_csv"))
        return found, await retriever.aembed(["x"]), await retriever.aready()

    found, vectors, index = asyncio.run(ask())
    assert found.hits[0].source == CSV.source and vectors.shape == (1, 64) and index.id == 1
    assert all(name.startswith("raydex-embed") for name in threads) and threads
