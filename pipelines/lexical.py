"""BM25 over one index, in a memory-mapped folder of this node that follows the index's revisions.

The folder is derived from the store alone: missing, half built or foreign, it is built again. Whoever holds
the folder's lock writes, all others reload. Knows no SQL, no vectors and no question beyond its words.
"""

import fcntl
import json
import logging
import re
import shutil
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit

import tantivy
from tantivy import Filter, Occur, Query, TextAnalyzerBuilder, Tokenizer

from pipelines.characters import clean_for_storage
from pipelines.records import Filters, Hit, Index, digest
from pipelines.store import ChangesPruned

log = logging.getLogger(__name__)

# Raised whenever the same chunk would be indexed as other terms: an older folder is then built again.
VERSION = 2

# One sum of BM25 scores over four fields. Chosen on the Ray documentation (263 pages, 2,203 chunks), share of
# sources among the first 5: headings 0.5 finds 0.95 of generated questions' and 0.66 of users', 1.0 (with 0.5 for
# title and url) 0.93 and 0.57, text alone 0.91 and 0.69. Users rarely use a heading's words, but code names often do.
BOOSTS: Mapping[str, float] = {"text": 1.0, "headings": 0.5, "title": 0.1, "url": 0.1}

# What filters ask for, as whole values: they keep chunks and score nothing.
FILTERED = ("tag", "version", "language", "address")

# A question's terms beyond this many are its most frequent ones, which say least and cost most.
MAX_TERMS = 32
# Words of a question that are looked at: bounds the work on a pasted file.
MAX_WORDS = 2_000

# Words that every question has and no answer is found by, as terms. In the headings of a manual ("How do I …?")
# they are rare enough to outweigh what is asked for.
STOP_TERMS = frozenset(
    """
    a about after all also am an and ani are as at be been befor but by can could did differ do doe for from get
    give go had has have how i if in into is it its just like make me my need no not of on one onli or other our
    out pleas possibl shall should so some tell than that the their them then there these they thing this those
    to up us use via want was way we were what when where whether which while who whi will with without work
    would you your
    """.split()  # noqa: SIM905
)

_MARKER = "#marker"
_WORDS = re.compile(r"\w+(?:\.\w+)*(?:\+\+)?")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_A-Za-z]+")


class LexicalNotBuilt(Exception):
    """The folder holds no whole BM25 index yet."""

    def __init__(self, folder: Path) -> None:
        super().__init__(f"no BM25 index in {folder} yet; sync it first")


class ChunkSource(Protocol):
    """What BM25 reads of the store. `changes_since` raises where changes that old are gone."""

    def scan_chunks(self, index: int, /) -> AbstractContextManager[tuple[int, Iterator[Hit]]]: ...

    def changes_since(self, index: int, revision: int, /) -> tuple[int, list[tuple[str, Hit | None]]]: ...


def lexical_folder(home: Path, database_url: str, index: int) -> Path:
    """Where a node keeps the BM25 folder of `index`: index numbers repeat from database to database."""
    return home / "lexical" / digest(urlsplit(database_url)._replace(query="").geturl())[:12] / str(index)


@lru_cache(maxsize=65_536)
def name_parts(word: str) -> tuple[str, ...]:
    """The parts of a code name, none for a plain word.

    `ray.data.read_csv` gives ray, data, read_csv, read, csv; `ActorPoolStrategy` gives Actor, Pool, Strategy.
    """
    names = word.split(".")
    parts = [part for name in names for part in _PART.findall(name) if part != name]
    return tuple(dict.fromkeys((names if len(names) > 1 else []) + parts))


def with_name_parts(text: str) -> str:
    """The words of `text`, then the parts of its code names, so that both whole names and parts are found."""
    words = _WORDS.findall(text)
    return " ".join([*words, *(part for word in words for part in name_parts(word))])


def url_words(hit: Hit) -> str:
    """Path and anchor of a hit's source as words; host and file ending say nothing about the chunk."""
    path = unquote(urlsplit(hit.url).path).removesuffix(".html")
    anchor = hit.anchors[-1] if hit.anchors else ""
    return f"{path} {anchor}".replace("-", " ").replace("/", " ")


def folders(url: str) -> list[str]:
    """Every beginning of `url` that ends at a slash."""
    return [url[: slash.end()] for slash in re.finditer("/", url)]


def terms(text: str) -> list[str]:
    """The terms of `text` as BM25 sees them: lower case, stemmed, code names whole and in parts."""
    return _analyzer().analyze(with_name_parts(text))


@cache
def _analyzer() -> tantivy.TextAnalyzer:
    # 100 bytes: longer runs are hashes and encoded data that nobody asks for.
    return (
        TextAnalyzerBuilder(Tokenizer.whitespace())  # Python found the words already
        .filter(Filter.lowercase())
        .filter(Filter.remove_long(100))
        .filter(Filter.stemmer("english"))
        .build()
    )


def _schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("chunk_id", stored=True, tokenizer_name="raw", index_option="basic")
    for field in BOOSTS:
        builder.add_text_field(field, tokenizer_name="names", index_option="freq")
    for field in FILTERED:
        builder.add_text_field(field, tokenizer_name="raw", index_option="basic")
    builder.add_text_field("marker", stored=True, tokenizer_name="raw", index_option="basic")
    return builder.build()


@dataclass(frozen=True, slots=True)
class Matches:
    """What a search found in one commit: chunk ids with their BM25 scores, best first, as of `revision`."""

    revision: int
    scores: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class _View:
    """What searches see until the next sync: one commit."""

    index_id: int
    revision: int
    searcher: tantivy.Searcher


class LexicalIndex:
    """True BM25 (k1 1.2, b 0.75) over title, headings, URL words and text of one index's chunks.

    `folder` belongs to this class alone. `heap` is the writer's memory in bytes: what a build of any size
    holds at most. Safe for threads and for processes of one node.
    """

    def __init__(self, folder: Path, *, boosts: Mapping[str, float] = BOOSTS, heap: int = 128_000_000) -> None:
        self._folder = folder
        self._boosts = dict(boosts)
        self._heap = heap
        self._schema = _schema()
        self._mutex = threading.Lock()
        self._index: tantivy.Index | None = None
        self._view: _View | None = None

    @property
    def revision(self) -> int | None:
        """The revision that searches see, None before the first sync."""
        view = self._view
        return view.revision if view else None

    def search(self, question: str, k: int, filters: Filters = Filters()) -> Matches:
        """The `k` best chunks that `filters` keep, and the revision they were found in. Any text is a question.

        Raises LexicalNotBuilt before the first sync.
        """
        view = self._view
        if view is None:
            raise LexicalNotBuilt(self._folder)
        query = self._query(view.searcher, question, filters)
        if query is None or k < 1:
            return Matches(view.revision, ())
        found = view.searcher.search(query, k, count=False).hits
        scores = ((str(view.searcher.doc(address).get_first("chunk_id")), score) for score, address in found)
        return Matches(view.revision, tuple(scores))

    def sync(self, store: ChunkSource, index: Index) -> int:
        """Bring the folder to `index`'s newest revision and return that.

        Waits while another thread or process writes. Raises what the store raises.
        """
        with self._mutex:
            if not self._is_at(index):
                with self._writing() as folder:
                    self._reload(index.id)
                    if not self._is_at(index):
                        self._write(store, index.id, folder)
                        self._reload(index.id)
            if self._view is None:
                raise LexicalNotBuilt(self._folder)
            return self._view.revision

    def forget(self) -> None:
        """Drop the folder: what it holds does not match the store. The next sync builds it again."""
        with self._mutex, self._writing() as folder:
            self._view = self._index = None
            shutil.rmtree(folder, ignore_errors=True)

    # -- reading

    def _is_at(self, index: Index) -> bool:
        if self._view is None or self._view.revision != index.revision:
            self._reload(index.id)
        return self._view is not None and self._view.revision == index.revision

    def _reload(self, index_id: int) -> None:
        """See the newest commit; whatever is not a whole index of `index_id` is not seen."""
        try:
            if self._index is None:
                self._index = self._open()
            self._index.reload()
            view = self._read_view(self._index.searcher())
        except (ValueError, OSError) as error:
            if self._folder.exists():
                log.warning("BM25 folder %s is unreadable (%s) and will be built again", self._folder, error)
            self._index, view = None, None
        self._view = view if view and view.index_id == index_id else None

    def _open(self) -> tantivy.Index:
        if not self._folder.is_dir():
            raise FileNotFoundError(f"{self._folder} is missing")
        index = tantivy.Index.open(str(self._folder))
        return self._prepared(index)

    def _create(self, folder: Path) -> tantivy.Index:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return self._prepared(tantivy.Index(self._schema, path=str(folder)))

    def _prepared(self, index: tantivy.Index) -> tantivy.Index:
        index.register_tokenizer("names", _analyzer())
        index.config_reader(reload_policy="manual")
        return index

    def _read_view(self, searcher: tantivy.Searcher) -> _View | None:
        query = Query.term_query(self._schema, "chunk_id", _MARKER, index_option="basic")
        found = searcher.search(query, 1, count=False).hits
        if not found:
            return None
        marker = json.loads(str(searcher.doc(found[0][1]).get_first("marker")))
        if marker["version"] != VERSION:
            raise ValueError(f"its version is {marker['version']}, not {VERSION}")
        return _View(marker["index"], marker["revision"], searcher)

    # -- writing

    @contextmanager
    def _writing(self) -> Iterator[Path]:
        """The folder, locked against the other processes of this node."""
        self._folder.parent.mkdir(parents=True, exist_ok=True)
        with self._folder.with_name(f"{self._folder.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield self._folder

    def _write(self, store: ChunkSource, index_id: int, folder: Path) -> None:
        if self._view is None or not self._replay(store, index_id, self._view.revision):
            self._build(store, index_id, folder)

    def _replay(self, store: ChunkSource, index_id: int, revision: int) -> bool:
        """Follow the changes since `revision`; False where they cannot be followed."""
        try:
            newest, changes = store.changes_since(index_id, revision)
        except ChangesPruned as error:
            log.info("BM25 of index %d is built again: %s", index_id, error)
            return False
        if newest < revision:
            log.warning("index %d went back from revision %d to %d", index_id, revision, newest)
            return False
        if newest > revision:
            with self._writer() as writer:
                for chunk_id, hit in changes:
                    writer.delete_documents_by_term("chunk_id", chunk_id)
                    if hit is not None:
                        writer.add_document(_document(hit))
                _commit(writer, index_id, newest)
        return True

    def _build(self, store: ChunkSource, index_id: int, folder: Path) -> None:
        if self._index is None:
            self._index = self._create(folder)
        with store.scan_chunks(index_id) as (revision, hits), self._writer() as writer:
            writer.delete_all_documents()
            for hit in hits:
                writer.add_document(_document(hit))
            _commit(writer, index_id, revision)

    @contextmanager
    def _writer(self) -> Iterator[tantivy.IndexWriter]:
        assert self._index is not None
        # One thread: it keeps up with what Python feeds it, and leaves few segments.
        writer = self._index.writer(heap_size=self._heap, num_threads=1)
        try:
            yield writer
        finally:
            writer.wait_merging_threads()  # also gives the writer's own lock back

    # -- asking

    def _query(self, searcher: tantivy.Searcher, question: str, filters: Filters) -> Query | None:
        """Any term in any field, as one flat union, which is what tantivy prunes best; then the filters."""
        wanted: list[tuple[Occur, Query]] = [
            (Occur.Should, Query.boost_query(self._term(field, term), boost))
            for term in self._terms(searcher, question)
            for field, boost in self._boosts.items()
        ]
        if not wanted:
            return None
        kept = [(Occur.Must, Query.const_score_query(query, 0.0)) for query in self._conditions(searcher, filters)]
        asked = Query.boolean_query(wanted)
        return Query.boolean_query([(Occur.Must, asked), *kept]) if kept else asked

    def _conditions(self, searcher: tantivy.Searcher, filters: Filters) -> Iterator[Query]:
        if filters.tags:
            yield Query.term_set_query(self._schema, "tag", [clean_for_storage(tag) for tag in filters.tags])
        for field, value in (("version", filters.version), ("language", filters.language)):
            if value is not None:
                yield Query.term_query(self._schema, field, clean_for_storage(value), index_option="basic")
        if filters.url_prefix:
            yield self._under(searcher, clean_for_storage(filters.url_prefix))

    def _under(self, searcher: tantivy.Searcher, prefix: str) -> Query:
        """Chunks whose URL begins so. A folder is one term; any other prefix is all the terms that it begins."""
        if prefix.endswith("/"):
            return Query.term_query(self._schema, "address", prefix, index_option="basic")
        begun = [term for term, _ in searcher.terms_with_prefix("address", prefix)]
        return Query.term_set_query(self._schema, "address", begun)

    def _term(self, field: str, term: str) -> Query:
        return Query.term_query(self._schema, field, term, index_option="freq")

    def _terms(self, searcher: tantivy.Searcher, question: str) -> Sequence[str]:
        """The distinct terms of a question; of a very long one, the rarest that occur."""
        words = " ".join(question.split(maxsplit=MAX_WORDS)[:MAX_WORDS])
        asked = list(dict.fromkeys(terms(words)))
        distinct = [term for term in asked if term not in STOP_TERMS] or asked
        if len(distinct) <= MAX_TERMS:
            return distinct
        frequency = {term: searcher.doc_freq("text", term) for term in distinct}
        return sorted((term for term in distinct if frequency[term]), key=frequency.__getitem__)[:MAX_TERMS]


def _document(hit: Hit) -> tantivy.Document:
    return tantivy.Document(
        chunk_id=hit.chunk_id,
        text=with_name_parts(hit.text),
        headings=with_name_parts(" ".join(hit.headings)),
        title=with_name_parts(hit.title),
        url=with_name_parts(url_words(hit)),
        tag=list(hit.tags),
        version=[hit.version] if hit.version is not None else [],
        language=hit.language,
        address=[hit.url, *folders(hit.url)],
    )


def _commit(writer: tantivy.IndexWriter, index_id: int, revision: int) -> None:
    """Commit with the marker: a document of the same commit, so that both are visible or neither."""
    marker = json.dumps({"version": VERSION, "index": index_id, "revision": revision})
    writer.delete_documents_by_term("chunk_id", _MARKER)
    writer.add_document(tantivy.Document(chunk_id=_MARKER, marker=marker))
    writer.commit()
