"""Defines a search and its result: the retrieval settings, the search for a question, its hits."""

from dataclasses import dataclass, field

from pipelines.answering.retrieval.evidence import Evidence
from pipelines.answering.retrieval.one_page import Focus
from pipelines.answering.retrieval.ranking.fusion import Fusion
from pipelines.answering.retrieval.ranking.texts import LEARNED
from pipelines.records import Filters, Hit, Index
from pipelines.store import Place

HITS = 5  # per answer; benchmarks/results/ray-docs.md has the figures for more


@dataclass(frozen=True, slots=True)
class RetrievalSettings:
    """How a collection is searched.

    Each leg contributes up to `leg_depth` hits per query, and `fusion` merges them into one list. With `ranking`
    "learned", that many hits are reordered by their texts (see ranking.texts); with "fused", the order stays.
    `neighbours` chunks of the section on each side are joined to a hit's context. With `spelling`, words of the
    question that are missing from the index are corrected to similar ones in it. A question waits up to `patience_s`
    seconds for BM25 to catch up or for a new index; then it is answered with the data that is ready. It waits up to
    `timeout_s` more for a leg (None: no limit).
    """

    leg_depth: int = 50
    fusion: Fusion = field(default_factory=Fusion)
    ranking: str = LEARNED
    neighbours: int = 0
    spelling: bool = True
    patience_s: float = 2.0
    timeout_s: float | None = 10.0


@dataclass(frozen=True, slots=True)
class Search:
    """A search: `queries` are the standalone question, followed by other wordings of it.

    `collection` None means the retriever's default or the only one. `previous` are the ids of the chunks that the
    previous turn cited; they are searched again. At least `neighbours` chunks of the section on each side are joined to
    a hit's context. The result includes all chunks of the pages of the first hits, up to `pages` pages. `passage` is a
    hypothetical answer: the search uses the mean of its vector and the question's instead of the question's (HyDE).
    `place` is the page that the reader has open: hits with its version and language are preferred. With `focus` "page",
    its hits come first; with "whole", they also keep the page's order.
    """

    queries: tuple[str, ...]
    collection: str | None = None
    k: int = HITS
    filters: Filters = field(default_factory=Filters)
    previous: tuple[str, ...] = ()
    neighbours: int = 0
    pages: int = 0
    passage: str = ""
    place: Place | None = None
    focus: Focus = ""

    def __post_init__(self) -> None:
        if not self.queries:
            raise ValueError("a search needs at least one query: the question itself")


@dataclass(frozen=True, slots=True)
class Retrieval:
    """Hits from one snapshot of one index for `question`, after spelling correction.

    `degraded` names the missing legs, and `timings` are in seconds. `evidence` is how well the index fits the question.
    `pages` has the chunks of the first pages, page by page in reading order, if the search requests them.
    """

    question: str
    hits: tuple[Hit, ...]
    index: Index
    revision: int
    degraded: tuple[str, ...]
    timings: dict[str, float]
    queries: tuple[str, ...] = ()
    evidence: Evidence | None = None
    pages: tuple[Hit, ...] = ()
