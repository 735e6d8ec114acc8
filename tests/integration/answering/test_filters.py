"""Filtered search in the real database returns k rows if there are k, as near as in an exact search."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import psycopg
import pytest
from kit.databases import DatabaseServer
from kit.workshop import search_index
from pgvector.psycopg import register_vector
from psycopg import sql
from psycopg.rows import dict_row

from pipelines.records import Filters, Index, IndexSettings
from pipelines.store import BuildResources, Store
from pipelines.store.chunks import CHUNK_COLUMNS, chunk_table, create_chunk_table
from pipelines.store.database.connection import statement
from pipelines.store.indexes import IndexSnapshot
from pipelines.store.publish import index_chunks

pytestmark = pytest.mark.slow

CHUNKS, DIMENSION, CLUSTERS = 20_000, 64, 200
QUERIES, K = 20, 10


@dataclass(frozen=True)
class Corpus:
    """CHUNKS chunks in the database, their filterable values, and questions near some of them."""

    url: str
    store: Store
    index: Index
    vectors: np.ndarray
    urls: list[str]
    questions: np.ndarray

    def exact(self, question: np.ndarray, kept: np.ndarray, k: int = K) -> list[str]:
        """Return the ids of the nearest of the chunks numbered in `kept`."""
        return [str(n) for n in kept[np.argsort(-(self.vectors[kept] @ question), kind="stable")][:k]]

    def ids(self, question: np.ndarray, filters: Filters, k: int = K) -> list[str]:
        (nearest,) = search_index(self.store, self.index, [question], [], k, filters).nearest
        return [chunk.chunk_id for _, chunk in nearest]

    def recall(self, filters: Filters, kept: np.ndarray) -> float:
        """Return the share of the truly nearest chunks that are found.

        It covers all questions, and each must find K rows of `kept`.
        """
        shares = []
        for question in self.questions:
            found = self.ids(question, filters)
            assert len(set(found)) == K and set(map(int, found)) <= set(kept.tolist())
            shares.append(len(set(found) & set(self.exact(question, kept))) / K)
        return float(np.mean(shares))


def make_clusters(random: np.random.Generator, centres: np.ndarray, count: int) -> np.ndarray:
    """Return unit vectors around `centres`, like those of texts on the same subjects."""
    vectors = centres[random.integers(len(centres), size=count)] + random.normal(0, 0.6, (count, DIMENSION))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def tags_of(number: int) -> list[str]:
    """Return tags: one for every chunk, one for 10%, 1% and 0.1%, and one for 6 chunks."""
    shares = {"ten": 10, "hundred": 100, "thousand": 1_000, "six": CHUNKS // 6 + 1}
    return ["all", *(tag for tag, every in shares.items() if number % every == 7 % every)]


def url_of(number: int) -> str:
    """Return a URL in one of a hundred folders whose `_` and `%` are literal."""
    return f"https://d.test/{'a_b' if number % 2 else 'a%b'}/{number % 100:02}/{number}.html"


@pytest.fixture(scope="module")
def corpus(server: DatabaseServer) -> Iterator[Corpus]:
    random = np.random.default_rng(0)
    centres = random.normal(0, 1, (CLUSTERS, DIMENSION))
    vectors, questions = make_clusters(random, centres, CHUNKS), make_clusters(random, centres, QUERIES)
    with server.database() as url, Store(url) as store:
        index = load(url, vectors)
        yield Corpus(url, store, index, vectors, [url_of(n) for n in range(CHUNKS)], questions)


def load(url: str, vectors: np.ndarray) -> Index:
    """Return a live index of these vectors, loaded like a build: rows first, then the database indexes."""
    settings = IndexSettings("none", dimension=DIMENSION, vector_type="vector")
    with psycopg.connect(url, row_factory=dict_row) as connection:
        register_vector(connection)
        connection.execute("insert into collection (name) values ('docs')")
        number = connection.execute(
            "insert into index (collection, fingerprint, settings, state, revision) values ('docs', '', %s, 'live', 1) "
            "returning id",
            ['{"model": "none", "dimension": 64, "vector_type": "vector"}'],
        ).fetchone()["id"]
        create_chunk_table(connection, number, "vector", 64)
        chunk = chunk_table(number)
        names = sql.SQL(", ").join(map(sql.Identifier, CHUNK_COLUMNS.names))
        with connection.cursor().copy(statement("restore_chunks", chunk=chunk, names=names)) as rows:
            rows.set_types([*CHUNK_COLUMNS.types, "vector"])
            for n, vector in enumerate(vectors):
                row = {
                    "id": str(n), "url": url_of(n), "anchor": "", "anchors": [], "title": "T", "headings": ["T"],
                    "ordinal": n % 7, "text": f"text {n}", "text_hash": f"t{n}", "embed_hash": f"e{n}", "tokens": 2,
                    "tags": tags_of(n), "version": "2.0" if n % 100 < 5 else "1.0",
                    "language": "de" if n % 1_000 == 3 else "en", "plain": f"text {n}",
                }  # fmt: skip
                rows.write_row((*(row[name] for name in CHUNK_COLUMNS.names), vector))
        index_chunks(connection, chunk, "vector", BuildResources("256MB"))
    return Index(number, "docs", settings, "live", 1)


def numbers(keep: object) -> np.ndarray:
    return np.array([n for n in range(CHUNKS) if keep(n)])  # type: ignore[operator]


FILTERS = {
    "none": (Filters(), lambda n: True),
    "a tag of 0.1%": (Filters(tags=("thousand",)), lambda n: "thousand" in tags_of(n)),
    "a tag of 1%": (Filters(tags=("hundred",)), lambda n: "hundred" in tags_of(n)),
    "a tag of 10%": (Filters(tags=("ten",)), lambda n: "ten" in tags_of(n)),
    "a tag of all": (Filters(tags=("all",)), lambda n: True),
    "either of two tags": (
        Filters(tags=("hundred", "thousand", "none")),
        lambda n: {"hundred", "thousand"} & set(tags_of(n)),
    ),
    "a version of 5%": (Filters(version="2.0"), lambda n: n % 100 < 5),
    "a version of 95%": (Filters(version="1.0"), lambda n: n % 100 >= 5),
    "a language of 0.1%": (Filters(language="de"), lambda n: n % 1_000 == 3),
    "a folder of 1%": (Filters(url_prefix="https://d.test/a_b/07/"), lambda n: n % 100 == 7),
    "all at once": (
        Filters(("ten",), "1.0", "en", "https://d.test/a_b/"),
        lambda n: "ten" in tags_of(n) and n % 100 >= 5 and n % 1_000 != 3 and n % 2,
    ),
}


@pytest.mark.parametrize("name", FILTERS)
def test_filtered_search_finds_k_rows_as_near_as_an_exact_search(corpus: Corpus, name: str) -> None:
    filters, keep = FILTERS[name]
    assert corpus.recall(filters, numbers(keep)) >= 0.95


@pytest.mark.parametrize(("filters", "keep"), [
    (Filters(tags=("six",)), lambda n: "six" in tags_of(n)),
    (Filters(url_prefix="https://d.test/a_b/07/7.html"), lambda n: n == 7),
    (Filters(tags=("no such tag",)), lambda n: False),
    (Filters(language="de", version="2.0", tags=("six",)), lambda n: False),
])  # fmt: skip
def test_filter_that_keeps_fewer_than_k_rows_returns_all_of_them(
    corpus: Corpus, filters: Filters, keep: object
) -> None:
    assert sorted(corpus.ids(corpus.questions[0], filters)) == sorted(map(str, numbers(keep)))


def test_url_prefix_has_no_wildcards(corpus: Corpus) -> None:
    """`_` and `%` are no wildcards."""
    kept = corpus.ids(corpus.questions[0], Filters(url_prefix="https://d.test/a_b/"), 200)
    assert len(kept) == 200 and all(int(n) % 2 for n in kept)
    assert corpus.ids(corpus.questions[0], Filters(url_prefix="https://d.test/a%b/01")) == []
    assert corpus.ids(corpus.questions[0], Filters(url_prefix="https://d.test/%")) == []


@pytest.mark.parametrize("k", [150, 1_500])
def test_rows_beyond_the_graph_search_limit_are_found_too(corpus: Corpus, k: int) -> None:
    assert len(set(corpus.ids(corpus.questions[0], Filters(), k))) == k


@pytest.mark.parametrize("name", ["none", "a tag of 10%", "a version of 95%"])
def test_named_chunks_that_the_graph_search_misses_are_found(corpus: Corpus, name: str, monkeypatch) -> None:
    (filters, keep), send = FILTERS[name], IndexSnapshot._send

    def miss_the_nearest(self, name, values, *args, **options):
        if name != "search_chunks":
            return send(self, name, values, *args, **options)
        kept, k = args
        cursor = send(self, name, values, kept, k + 1)
        return SimpleNamespace(fetchall=lambda: cursor.fetchall()[1:])

    monkeypatch.setattr(IndexSnapshot, "_send", miss_the_nearest)
    for question in corpus.questions:
        nearest = corpus.exact(question, numbers(keep))
        named = [*nearest, *corpus.exact(question, np.arange(CHUNKS))]
        (found,) = search_index(corpus.store, corpus.index, [question], named, K, filters).nearest
        assert [chunk.chunk_id for _, chunk in found] == nearest


def test_filters_apply_to_named_chunks_too(corpus: Corpus) -> None:
    found = search_index(corpus.store, corpus.index, [], ["7", "8", "none"], 5, Filters(tags=("hundred",)))
    assert list(found.by_id) == ["7"] and found.by_id["7"].version == "1.0"


def test_several_vectors_are_searched_at_one_revision(corpus: Corpus) -> None:
    one, other = corpus.questions[:2]
    found = search_index(corpus.store, corpus.index, [one, other], ["7"], K)
    assert not found.too_slow
    assert [[chunk.chunk_id for _, chunk in nearest] for nearest in found.nearest] == [
        corpus.ids(one, Filters()),
        corpus.ids(other, Filters()),
    ]


@pytest.fixture
def slow(corpus: Corpus) -> Iterator[None]:
    """Make distances exceed any time limit: functions in the owner's schema come before pgvector's."""
    with psycopg.connect(corpus.url, autocommit=True) as connection:
        connection.execute("create schema authorization current_user")
        connection.execute(
            "create function wait(vector, vector) returns float8 language plpgsql volatile"
            " as 'begin perform pg_sleep(60); return 0; end'"
        )
        connection.execute("create operator <=> (leftarg = vector, rightarg = vector, function = wait)")
        yield
        connection.execute(sql.SQL("drop schema {} cascade").format(sql.Identifier(connection.info.user)))


@pytest.mark.usefixtures("slow")
def test_slow_search_drops_its_vectors_but_keeps_named_chunks(corpus: Corpus) -> None:
    found = search_index(corpus.store, corpus.index, [corpus.questions[0]] * 2, ["7"], K, Filters(), 1)
    assert found.too_slow and found.nearest == [[], []] and list(found.by_id) == ["7"]


class Slow(list[np.ndarray]):
    """Vectors that arrive one after another."""

    def __iter__(self) -> Iterator[np.ndarray]:
        for vector in super().__iter__():
            yield vector
            time.sleep(1.1)


@pytest.mark.usefixtures("slow")
def test_search_can_be_cancelled_before_it_is_fully_sent(corpus: Corpus) -> None:
    vectors = Slow([corpus.questions[0]] * 3)
    found = search_index(corpus.store, corpus.index, vectors, ["7"], K, Filters(), 1)
    assert found.too_slow and found.nearest == [[], [], []] and list(found.by_id) == ["7"]


@pytest.mark.usefixtures("slow")
def test_search_that_times_out_while_ids_are_found_keeps_them(corpus: Corpus) -> None:
    calls = []

    def find_ids() -> list[str]:
        calls.append(time.sleep(1.1))
        return ["7"]

    found = corpus.store.read_index(
        corpus.index, lambda chunks: chunks.search_while(find_ids, [corpus.questions[0]], K), 1
    )
    assert found.too_slow and found.nearest == [[]] and list(found.by_id) == ["7"] and len(calls) == 1
