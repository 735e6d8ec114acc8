"""Generates a collection of any size that resembles documentation: real text with changed words, clustered vectors.

    python -m benchmarks.synthetic --home DIR [--chunks 200000] [--vector-type vector]

The pages come from RAYDEX_DATA/ray-docs-html.tar.xz, repeated; each copy replaces some words. Vectors are clustered
around pages, and pages around subjects. The same seed gives the same collection, page by page, so memory stays
constant. It is loaded like a run loads pages, into a separate database on the server of DIR (or of --database-url), and
a second call finds it. Knows nothing about the measurements on it.
"""

import argparse
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import psycopg

from benchmarks.corpus import COMMON_WORDS, SITE, WORD, Corpus, CorpusChunk, CorpusPage, Text, load_corpus
from pipelines import embedded
from pipelines.fetched import FetchedPage
from pipelines.indexing.lock import hold_collection, record_run
from pipelines.indexing.publish import find_base_index, publish_run
from pipelines.keeper import superuser_url
from pipelines.records import Chunk, IndexSettings, VectorType, content_hash, digest
from pipelines.store import BuildResources, NoLiveIndex, Publication, RunLock, StagedPage, Store

COLLECTION = "synthetic"
DIMENSION, MARKDOWN = 384, "text/markdown"
PAGES_A_SUBJECT = 80
# One page in a hundred has this tag, for a filter that keeps 1%.
RARE_TAG, RARE = "percent", 100
# Parts of a unit vector: shared with its subject, shared with its page, and its own; and the number of dimensions in
# which they differ. With these, the local dimension (Levina and Bickel 2004, 50 neighbors), which determines the
# difficulty for HNSW, is 10.7, and the median cosines to the 1st, 10th and 50th neighbor are 0.82, 0.67, 0.55. In the
# Ray documentation they are 11.5, and 0.88, 0.75, 0.67.
SUBJECT, PAGE, OWN = 0.6, 0.6, 0.5
SUBJECT_DIMENSIONS, OWN_DIMENSIONS = 32, 23
# So many of the most frequent words are never the subject of a question.
STOP_RANKS = 100


@dataclass(frozen=True)
class MadePage:
    """A page with the vectors of its chunks: float32 (chunks, 384), rows of length 1."""

    number: int
    staged: StagedPage
    vectors: np.ndarray

    @property
    def fetched(self) -> FetchedPage:
        """The page as a crawler would commit it."""
        body = _body(self.staged.chunks)
        return FetchedPage(self.staged.url, "ok", 200, body=body, content_type=MARKDOWN)


@dataclass(frozen=True)
class Synthetic:
    """`chunks` chunks from `seed`. `cache` is the folder with the chunked pages of the archive."""

    chunks: int
    seed: int = 1
    cache: Path = Path.home() / ".cache" / "raydex-benchmarks"

    @property
    def database(self) -> str:
        """The name of their database."""
        return f"synthetic_{self.chunks}_{self.seed}"

    @cached_property
    def corpus(self) -> Corpus:
        return load_corpus(self.cache)

    @cached_property
    def subjects(self) -> int:
        """The number of subjects."""
        sizes = [len(page.chunks) for page in self.corpus.pages]
        copies, rest = divmod(self.chunks, sum(sizes))
        pages = copies * len(sizes) + int(np.searchsorted(np.cumsum(sizes), rest)) + (rest > 0)
        return -(-pages // PAGES_A_SUBJECT)

    @cached_property
    def _first_chunks(self) -> np.ndarray:
        """The number of the first chunk of each page in a copy, followed by the copy's number of chunks."""
        return np.cumsum([0, *(len(page.chunks) for page in self.corpus.pages)])

    def pages(self, only: Callable[[int], bool] = lambda number: True, news: str = "") -> Iterator[MadePage]:
        """Generate the pages with these numbers, or all. Each third chunk begins with `news`."""
        for subject in range(self.subjects):
            yield from self.pages_of(subject, only, news)

    def pages_of(
        self, subject: int, only: Callable[[int], bool] = lambda number: True, news: str = ""
    ) -> list[MadePage]:
        """Generate the pages of a subject."""
        first, copy_size = subject * PAGES_A_SUBJECT, len(self.corpus.pages)
        made: list[MadePage] = []
        rng = np.random.default_rng([self.seed, 0, subject])
        centre = SUBJECT * _drawn(rng, 1, _basis(self.seed, SUBJECT_DIMENSIONS))
        for number in range(first, first + PAGES_A_SUBJECT):
            copy, place = divmod(number, copy_size)
            room = self.chunks - copy * int(self._first_chunks[-1]) - int(self._first_chunks[place])
            page = self.corpus.pages[place]
            drawn = rng.standard_normal((1 + len(page.chunks), OWN_DIMENSIONS), np.float32)
            if room > 0 and only(number):
                own = _unit(drawn @ _basis(self.seed, OWN_DIMENSIONS))
                vectors = _unit(centre + PAGE * own[:1] + OWN * own[1:])[:room]
                made.append(MadePage(number, self._page(number, copy, page, room, news), vectors))
        return made

    def _page(self, number: int, copy: int, page: CorpusPage, room: int, news: str) -> StagedPage:
        words, url = self._words(copy), f"{SITE}{copy}/{page.path}"
        title = _joined(words, page.title)
        chunks = tuple(
            self._chunk(url, title, words, n, chunk, news if n % 3 == 0 else "")
            for n, chunk in enumerate(page.chunks[:room])
        )
        tags = (RARE_TAG,) if number % RARE == 0 else ()
        read = content_hash(_body(chunks), MARKDOWN, None)
        return StagedPage(url, read, title, "en", tags, f"{copy}.0", page.sections, chunks)

    def _chunk(self, url: str, title: str, words: list[str], ordinal: int, chunk: CorpusChunk, news: str) -> Chunk:
        text = news + _joined(words, chunk.text)
        name = digest(url, chunk.anchors[-1] if chunk.anchors else "", text, str(ordinal))
        headings = tuple(_joined(words, heading) for heading in chunk.headings)
        embed_hash = digest(str(self.seed), name)
        return Chunk(
            name, url, chunk.anchors, title, headings, ordinal, text, digest(text), "", embed_hash, chunk.tokens
        )

    def _words(self, copy: int) -> list[str]:
        last: tuple[int, list[str]] = self.__dict__.get("last_words", (-1, []))
        if last[0] != copy:
            last = self.__dict__["last_words"] = (copy, self.corpus.words_of_copy(copy))
        return last[1]

    @cached_property
    def vectors(self) -> np.ndarray:
        """All vectors in memory: float32 (chunks, 384), rows of length 1."""
        return np.concatenate([page.vectors for page in self.pages()])

    def questions(self, count: int) -> list[tuple[str, np.ndarray]]:
        """Return questions about one chunk each: six of its less common words, and a vector near its own."""
        rng = np.random.default_rng([self.seed, 3])
        return [self._question(rng, subject) for subject in sorted(rng.integers(0, self.subjects, count))]

    def _question(self, rng: np.random.Generator, subject: int) -> tuple[str, np.ndarray]:
        page = (pages := self.pages_of(int(subject)))[rng.integers(len(pages))]
        nth = rng.integers(len(page.vectors))
        near = _unit(page.vectors[nth] + OWN * _drawn(rng, 1, _basis(self.seed, OWN_DIMENSIONS))[0])
        words = sorted(w for w in set(WORD.findall(page.staged.chunks[nth].text)) if self._is_rare(w))
        return " ".join(rng.permutation(words or [page.staged.title])[:6]), near

    def _is_rare(self, word: str) -> bool:
        return self.corpus.ranks.get(word.lower(), COMMON_WORDS) >= STOP_RANKS


def _body(chunks: Sequence[Chunk]) -> bytes:
    return "\n\n".join(chunk.text for chunk in chunks).encode()


def _joined(words: list[str], text: Text) -> str:
    return "".join([words[piece] for piece in text])


def _unit(vectors: np.ndarray) -> np.ndarray:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True), np.float32)


@cache
def _basis(seed: int, dimensions: int) -> np.ndarray:
    return np.random.default_rng([seed, 4, dimensions]).standard_normal((dimensions, DIMENSION), np.float32)


def _drawn(rng: np.random.Generator, count: int, basis: np.ndarray) -> np.ndarray:
    """Return `count` unit vectors in the span of `basis`."""
    return _unit(rng.standard_normal((count, len(basis)), np.float32) @ basis)


# ---------------------------------------------------------------------------------------------- loading


def synthetic_settings(vector_type: VectorType = "auto") -> IndexSettings:
    """Return the settings of an index of synthetic chunks, whose vectors come from no model."""
    return IndexSettings("none", "none", DIMENSION, vector_type=vector_type)


def stage(store: Store, run: int, pages: Sequence[MadePage], collection: str = COLLECTION) -> None:
    """Save and stage pages like the tasks of a run. A vector that is already stored is not stored again."""
    store.save_pages(collection, run, [page.fetched for page in pages])
    store.stage_pages(run, [page.staged for page in pages])
    vectors = {c.embed_hash: v for page in pages for c, v in zip(page.staged.chunks, page.vectors, strict=True)}
    wanted = {chunk.embed_hash: page.staged.url for page in pages for chunk in page.staged.chunks}
    if mine := sorted(store.claim(run, wanted)):
        store.stage_vectors(run, mine, np.stack([vectors[name] for name in mine]))


Timed = Callable[[str], AbstractContextManager[None]]


def untimed(_name: str) -> AbstractContextManager[None]:
    return nullcontext()


def stage_all(
    store: Store, run: int, pages: Iterator[MadePage], timed: Timed = untimed, collection: str = COLLECTION
) -> None:
    """Stage pages, one subject at a time, each in `timed("stage")`. Generating them is not counted."""
    while batch := list(itertools.islice(pages, PAGES_A_SUBJECT)):
        with timed("stage"):
            stage(store, run, batch, collection)


def publish(store: Store, lock: RunLock, run: int, settings: IndexSettings) -> Publication:
    """Publish the staged pages like a run, and make them live."""
    base = find_base_index(store, lock.collection, settings)
    return publish_run(store, lock, run, settings, base, True, BuildResources("3GB", 2))


def open_database(server: str, name: str) -> str:
    """Return the URL of the database `name` on `server`, created if necessary."""
    with psycopg.connect(server, autocommit=True) as connection:
        found = connection.execute("select from pg_database where datname = %s", [name]).fetchone()
        if found is None:
            connection.execute(f"create database {name}")  # type: ignore[arg-type]
    return urlsplit(server)._replace(path=f"/{name}").geturl()


def prepared(server: str, synthetic: Synthetic, vector_type: VectorType = "auto") -> str:
    """Return the URL of the database with `synthetic` on `server`, loaded if necessary."""
    url = open_database(server, synthetic.database + ("" if vector_type == "auto" else f"_{vector_type}"))
    with Store(url) as store:
        store.migrate()
        load(store, synthetic, synthetic_settings(vector_type))
    return url


def load(store: Store, synthetic: Synthetic, settings: IndexSettings, collection: str = COLLECTION) -> None:
    """Index `synthetic` as `collection`, unless that has a live index."""
    with suppress(NoLiveIndex):
        store.live_index(collection)
        return
    with hold_collection(store, collection) as lock, record_run(lock, "reindex", {}) as record:
        stage_all(store, record.run, synthetic.pages(), collection=collection)
        publish(store, lock, record.run, settings)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--home", type=Path, required=True, help="folder of the embedded Postgres")
    parser.add_argument("--database-url", help="instead of the embedded one")
    parser.add_argument("--chunks", type=int, default=200_000)
    parser.add_argument("--vector-type", choices=["auto", "vector", "halfvec"], default="auto")
    args = parser.parse_args()
    with nullcontext() if args.database_url else embedded.run_postgres(args.home):
        began, server = time.perf_counter(), args.database_url or superuser_url(args.home)
        url = prepared(server, replace(Synthetic(args.chunks), cache=args.home), args.vector_type)
        print(url.rsplit("/", 1)[-1], f"{time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
