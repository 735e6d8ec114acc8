"""Keeps the BM25 folder of one node: memory-mapped, following the revisions of an index.

The folder is derived only from the store: if it is missing, incomplete or another index's, it is unpacked from the
archive there or rebuilt. The process with the folder's lock writes; all others reload.
"""

import fcntl
import logging
import shutil
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from urllib.parse import urlsplit

import tantivy

from pipelines.lexical import archive
from pipelines.lexical.documents import BOOSTS, WORDS, Marker, commit, make_document, make_schema, read_marker
from pipelines.lexical.query import QueryBuilder
from pipelines.lexical.spelling import Vocabulary, correct
from pipelines.lexical.terms import analyzer, stemmed_language, word_analyzer
from pipelines.records import Filters, Index, digest
from pipelines.store import ChangesPruned, NoSuchIndex, Store, StoreUnavailable, UnusableDatabase

log = logging.getLogger(__name__)


class LexicalNotBuilt(Exception):
    """The folder does not contain a complete BM25 index yet."""

    def __init__(self, folder: Path) -> None:
        super().__init__(f"no BM25 index in {folder} yet: sync it first")


def lexical_folder(home: Path, database_url: str, index: int) -> Path:
    """Return the folder of `index` on this node.

    Its name includes the database because index ids repeat between them.
    """
    return home / "lexical" / digest(urlsplit(database_url)._replace(query="").geturl())[:12] / str(index)


def remove_lexical_folders(home: Path, database_url: str, indexes: Iterable[int]) -> None:
    """Remove this node's folders of deleted indexes; folders on other nodes stay, unused."""
    for index in indexes:
        shutil.rmtree(lexical_folder(home, database_url, index), ignore_errors=True)


@dataclass(frozen=True, slots=True)
class Matches:
    """The result of a search in one commit: chunk ids with their BM25 scores, best first, as of `revision`.

    `terms` is the number of terms searched among `texts` chunks. `full_score` is the score of a text that has each term
    once. Both are for the page language that fits the question's words best.
    """

    revision: int
    scores: tuple[tuple[str, float], ...]
    terms: int = 0
    full_score: float = 0.0
    texts: int = 0


@dataclass(frozen=True, slots=True)
class _View:
    """The commit that searches see until the next sync. `texts` counts them per language, "" for all others."""

    marker: Marker
    searcher: tantivy.Searcher
    texts: Mapping[str, int]


class LexicalIndex:
    """True BM25 (k1 1.2, b 0.75) over title, headings, URL words and text of one index's chunks.

    `folder` must not be used by anything else. `heap` is the writer's memory in bytes, which limits a build of any
    size. Safe for threads and for processes of one node.
    """

    def __init__(self, folder: Path, *, boosts: Mapping[str, float] = BOOSTS, heap: int = 128_000_000) -> None:
        self._folder = folder
        self._boosts = dict(boosts)
        self._heap = heap
        self._schema = make_schema()
        self._mutex = threading.Lock()
        self._index: tantivy.Index | None = None
        self._view: _View | None = None

    @property
    def revision(self) -> int | None:
        """The revision that searches see, None before the first sync."""
        view = self._view
        return view.marker.revision if view else None

    def search(self, question: str, k: int, filters: Filters = Filters(), also: str = "") -> Matches:
        """Return the `k` best chunks that pass `filters`, and the revision they were found in. Accepts any text.

        Chunks with words of `also`, synonyms of the question's words, are found too. Raises LexicalNotBuilt before the
        first sync.
        """
        view = self._view
        if view is None:
            raise LexicalNotBuilt(self._folder)
        builder = QueryBuilder(self._schema, view.searcher, self._boosts, view.texts)
        searched = [builder.terms(question, language) for language in view.texts]
        others = [builder.terms(also, language) for language in view.texts]
        query = builder.build(list(dict.fromkeys(chain(*searched, *others))), filters)
        if query is None or k < 1:
            return Matches(view.marker.revision, ())
        hits = view.searcher.search(query, k, count=False).hits
        scores = ((str(view.searcher.doc(address).get_first("chunk_id")), score) for score, address in hits)
        fitting = builder.fitting(searched)
        return Matches(
            view.marker.revision, tuple(scores), len(fitting), builder.full_score(fitting), view.searcher.num_docs
        )

    def correct(self, question: str, is_english: Callable[[str], bool], known: str = "") -> str:
        """Return `question` with its spelling corrected by the words of this index; unchanged before the first sync.

        Words in `known` are correct.
        """
        view = self._view
        return correct(question, Vocabulary(view.searcher, view.texts, known), is_english) if view else question

    def sync(self, store: Store, index: Index) -> int:
        """Update the folder to the newest revision of `index` and return that revision.

        Waits while another thread or process writes. Raises the errors of the store.
        """
        with self._mutex:
            if not self._is_at(index):
                with self._locked_folder() as folder:
                    self._reload(index.id)
                    if not self._is_at(index):
                        self._write(store, index.id, folder)
                        self._reload(index.id)
            if self._view is None:
                raise LexicalNotBuilt(self._folder)
            return self._view.marker.revision

    def keep_archive(self, store: Store, index: Index) -> None:
        """Store the folder for other machines, unless the store has a recent archive. Failures are logged."""
        try:
            if self.revision is None or not archive.needs_archive(store, index.id, self.revision):
                return
            with self._mutex, self._locked_folder() as folder:
                self._reload(index.id)
                if (revision := self.revision) is None:
                    return
                frozen = archive.freeze(folder)
            archive.pack(store, index.id, revision, frozen)
        except (StoreUnavailable, UnusableDatabase, NoSuchIndex, OSError) as error:
            log.info("BM25 of index %d is not stored for other machines: %s", index.id, error)

    def forget(self, store: Store, index: Index) -> None:
        """Delete the folder and its archive, because they do not match the store. The next sync rebuilds the folder."""
        with self._mutex, self._locked_folder() as folder:
            self._view = self._index = None
            shutil.rmtree(folder, ignore_errors=True)
            store.drop_lexical_archive(index.id)

    # -- reading

    def _is_at(self, index: Index) -> bool:
        if self._view is None or self._view.marker.revision != index.revision:
            self._reload(index.id)
        return self._view is not None and self._view.marker.revision == index.revision

    def _reload(self, index_id: int) -> None:
        """Open the newest commit, unless it is not a complete index of `index_id`."""
        try:
            if self._index is None:
                self._index = self._open()
            self._index.reload()
            searcher = self._index.searcher()
            marker = read_marker(searcher, self._schema)
        except (ValueError, OSError) as error:
            if self._folder.exists():
                log.warning("BM25 folder %s is unreadable (%s) and will be rebuilt", self._folder, error)
            self._index = self._view = None
            return
        self._view = _View(marker, searcher, _texts_of(searcher)) if marker and marker.index == index_id else None

    def _open(self) -> tantivy.Index:
        if not self._folder.is_dir():
            raise FileNotFoundError(f"{self._folder} is missing")
        return _configure(tantivy.Index.open(str(self._folder)))

    def _create(self, folder: Path) -> tantivy.Index:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return _configure(tantivy.Index(self._schema, path=str(folder)))

    # -- writing

    @contextmanager
    def _locked_folder(self) -> Iterator[Path]:
        """Yield the folder, locked against other processes of this node."""
        self._folder.parent.mkdir(parents=True, exist_ok=True)
        with self._folder.with_name(f"{self._folder.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield self._folder

    def _write(self, store: Store, index_id: int, folder: Path) -> None:
        if self._view is None:
            self._unpack(store, index_id, folder)
        if self._view is None or not self._replay(store, index_id, self._view.marker.revision):
            self._build(store, index_id, folder)

    def _unpack(self, store: Store, index_id: int, folder: Path) -> None:
        """Open the archive of the index; leave it only if it is at the revision that it was stored with."""
        revision = archive.unpack(store, index_id, folder)
        if revision is not None:
            self._index = None
            self._reload(index_id)
            if self.revision != revision:
                log.warning("BM25 of index %d is built: its archive is not one of revision %d", index_id, revision)
                self._index = self._view = None

    def _replay(self, store: Store, index_id: int, revision: int) -> bool:
        """Apply the changes since `revision`; return False if that is not possible."""
        try:
            newest, changes = store.changes_since(index_id, revision)
        except ChangesPruned as error:
            log.info("BM25 of index %d is rebuilt: %s", index_id, error)
            return False
        if newest < revision:
            log.warning("index %d went back from revision %d to %d", index_id, revision, newest)
            return False
        if newest > revision:
            with self._writer() as writer:
                for chunk_id, hit in changes:
                    writer.delete_documents_by_term("chunk_id", chunk_id)
                    if hit is not None:
                        writer.add_document(make_document(hit))
                commit(writer, Marker(index_id, newest))
        return True

    def _build(self, store: Store, index_id: int, folder: Path) -> None:
        if self._index is None:
            self._index = self._create(folder)
        with store.scan_chunks(index_id) as (revision, hits), self._writer() as writer:
            writer.delete_all_documents()
            for hit in hits:
                writer.add_document(make_document(hit))
            commit(writer, Marker(index_id, revision))

    @contextmanager
    def _writer(self) -> Iterator[tantivy.IndexWriter]:
        assert self._index is not None
        # One thread keeps up with the documents from Python and leaves few segments.
        writer = self._index.writer(heap_size=self._heap, num_threads=1)
        try:
            yield writer
        finally:
            writer.wait_merging_threads()  # also releases the writer's own lock


def _texts_of(searcher: tantivy.Searcher) -> Mapping[str, int]:
    """Return the number of texts in each language with its own stemmer, and under "" those in other languages.

    As in `doc_freq`, deleted texts count until their segment is merged.
    """
    texts = Counter({"": 0})
    for tag, count in searcher.terms_with_prefix("language", ""):
        texts[stemmed_language(tag)] += count
    return texts


def _configure(index: tantivy.Index) -> tantivy.Index:
    index.register_tokenizer("names", analyzer())
    index.register_tokenizer(WORDS, word_analyzer())
    index.config_reader(reload_policy="manual")
    return index
