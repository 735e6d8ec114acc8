"""Hundreds of reads during repeated publishes: no error, no short result, no mixture of two states.

Reads go through the retriever, by vectors and BM25. Publishes build a new index next to the live one, roll back to the
previous one, and prune retired ones. tests/integration/indexing/test_publish.py covers publishes in place and
candidates.
"""

import itertools
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from kit.reporting import leave_table
from kit.workshop import Site, Workshop, small_site

from pipelines.answering.factory import make_retriever
from pipelines.answering.retrieval.retriever import Retriever
from pipelines.answering.retrieval.search import Search
from pipelines.answering.settings import AnswerSettings
from pipelines.indexing.lock import hold_collection
from pipelines.indexing.publish import rollback
from pipelines.store import Store

THREADS, K = 4, 10


def state(number: int) -> Site:
    """Return the site as of a publish, whose number is in every text."""
    return {
        path: {anchor: f"{text} This is state {number}." for anchor, text in parts.items()}
        for path, parts in small_site(20).items()
    }


class Readers:
    """Threads that read until they have done `reads` reads in all and publishing has ended."""

    def __init__(self, retriever: Retriever, reads: int) -> None:
        self.ends: Counter[str] = Counter()
        self.states: set[str] = set()
        self.slowest_s = 0.0
        self.published = threading.Event()
        self._retriever, self._left = retriever, itertools.count(reads - 1, -1)
        self._threads = [threading.Thread(target=self._run) for _ in range(THREADS)]

    def __enter__(self) -> "Readers":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.published.set()
        for thread in self._threads:
            thread.join()

    def wait_for(self, reads: int) -> None:
        """Wait for so many more reads, and for more than are in flight: the last of them began after this call."""
        enough = sum(self.ends.values()) + max(THREADS + 1, reads)
        while sum(self.ends.values()) < enough:
            time.sleep(0.01)

    def _run(self) -> None:
        while next(self._left) >= 0 or not self.published.is_set():
            began = time.monotonic()
            self.ends[self._read()] += 1
            self.slowest_s = max(self.slowest_s, time.monotonic() - began)

    def _read(self) -> str:
        try:
            found = self._retriever.retrieve(Search(("What is the part of a page?",), k=K))
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        states = {hit.text.rpartition("This is ")[2] for hit in found.hits}
        self.states |= states
        if found.degraded:
            return f"without {', '.join(found.degraded)}"
        if len(states) != 1:
            return "mixed"
        return "whole" if len(found.hits) == K else "short"


def publish(workshop: Workshop, number: int) -> None:
    """Publish another state: in place, as a new index, or by rolling back to the previous index."""
    store = workshop.store
    if number % 3 == 2:
        workshop.use("hash:64", chunk_size=200 + number)
        workshop.reindex(state(number))
        for _ in range(2):
            with hold_collection(store, "docs") as lock:
                rollback(store, lock, lock.begin("rollback", None))
    else:
        workshop.reindex(state(number))
    with hold_collection(store, "docs"):
        store.prune("docs", keep=1)


@pytest.mark.parametrize(("publishes", "reads"), [(5, 150), pytest.param(10, 10_000, marks=pytest.mark.exhaustive)])
def test_readers_never_notice_a_publish(database_url, tmp_path: Path, request, publishes, reads):
    settings = AnswerSettings(home=tmp_path, retrieval={"patience_s": 60})
    with Store(database_url, pool_size=THREADS + 4) as reading, Store(database_url) as writing:
        workshop = Workshop(writing)
        workshop.reindex(state(0))
        retriever = make_retriever(settings, reading)
        try:
            retriever.prepare()
            with Readers(retriever, reads) as readers:
                readers.wait_for(reads // (2 * publishes))  # the first read of a process takes longer than a publish
                for number in range(1, publishes + 1):
                    publish(workshop, number)
                    readers.wait_for(reads // (2 * publishes))
        finally:
            retriever.close()
    count = sum(readers.ends.values())
    ends = ", ".join(f"{n:,} {end}" for end, n in readers.ends.items())
    head = ("reads", "how they ended", "states seen", "slowest")
    row = (f"{count:,}", ends, str(len(readers.states)), f"{readers.slowest_s:.2f} s")
    leave_table(request.config, f"reads during {publishes} publishes", head, [row])
    assert set(readers.ends) == {"whole"} and count >= reads
    assert len(readers.states) == publishes + 1
