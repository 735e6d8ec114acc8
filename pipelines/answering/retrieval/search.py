"""A search and what it finds: the settings of retrieval, a question's search, its hits."""

from dataclasses import dataclass, field

from pipelines.answering.retrieval.evidence import Evidence
from pipelines.answering.retrieval.one_page import Focus
from pipelines.answering.retrieval.ranking.fusion import Fusion
from pipelines.answering.retrieval.ranking.texts import LEARNED
from pipelines.records import Filters, Hit, Index
from pipelines.store import Place

HITS = 5  # that an answer is made from; benchmarks/results/ray-docs.md has the figures for more


@dataclass(frozen=True, slots=True)
class RetrievalSettings:
    """How a collection is searched.

    Each leg contributes up to `leg_depth` hits for each query, and `fusion` makes one list of them; with the `ranking`
    "learned" as many of them are ordered by their texts (see ranking.texts), with "fused" they stay. `neighbours`
    chunks of its section on each side are joined to a hit's context. With `spelling`, words of the question that the
    index does not hold are corrected by those that it holds. A question waits `patience_s` seconds for BM25 to follow
    or for a new index to be prepared before it is answered with what is ready, and `timeout_s` beyond that for a leg
    (None: without limit).
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
    """A search: `queries` are the standalone question, then other wordings of it.

    `collection` None means the retriever's own or the only one. `previous` are the ids of the chunks that the turn
    before cited; they are searched again. At least `neighbours` chunks of its section on each side are joined to a
    hit's context, and the chunks of the first `pages` pages come too, found or not. `passage` is an imagined answer:
    where there is one, the mean of its vector and the question's is searched for instead of the question's (HyDE).
    `place` is the page that the reader has open: hits of its version and language are preferred; with `focus` "page"
    hits of it come first, with "whole" in their order.
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
    """Hits of one snapshot of one index for `question`, its spelling corrected.

    `degraded` names the legs that are missing, `timings` are seconds, `evidence` is how well the index fits, `pages`
    are the chunks of the first pages, if the search wants them, page by page in reading order.
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
