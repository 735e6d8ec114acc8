"""Ranks the right hit of each question, as served, by vectors or by a model.

The gate judges the ranks.

Knows questions, hits and models passed in; does not know how they were made.
"""

import asyncio
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipelines.answering.reranking.base import Reranker
from pipelines.answering.retrieval.ranking.fusion import spread_pages, take_diverse
from pipelines.answering.settings import AnswerSettings
from pipelines.evaluation.dataset import Example
from pipelines.evaluation.statistics import Interval, PairedTest, bootstrap, paired_test
from pipelines.records import Hit
from pipelines.text.counts import counted
from pipelines.text.sheets import Fact, Grid, Part
from pipelines.text.tables import with_interval
from pipelines.training.mining import Corpus, IndexedCollection, embedding_text

Hits = Sequence[Hit]
Matrix = NDArray[np.float32]

# Ranks beyond this count as not found when an embedding model ranks; this hardly changes MRR.
DEPTH = 100
# Questions scored against all chunks at a time: 40 MB for 20,000 chunks.
AT_ONCE = 512


# The numbers of hits to score, and the one that the gate uses: the Ray assistant's study used 9.
KS = (1, 5, 9, 18)
GATE_K = 9

# The rank of the first right hit, from 1; 0 if none was found.
Ranks = Sequence[int]

# ------------------------------------------------------------------------------------------- the gate


@dataclass(frozen=True, slots=True)
class GateScores:
    """retrieval_score by number of hits, and the mean reciprocal rank, over the same questions."""

    retrieval_score: Mapping[int, Interval]
    mrr: Interval

    @classmethod
    def of(cls, ranks: Ranks, ks: Sequence[int] = KS) -> "GateScores":
        """Return the scores of these ranks. Raises NothingToScore."""
        means = bootstrap({**{str(k): within(ranks, k) for k in ks}, "mrr": [1 / r if r else 0.0 for r in ranks]})
        return cls({k: means[str(k)] for k in ks}, means["mrr"])

    def cells(self) -> list[str]:
        """Return each score with its interval as a string."""
        return [with_interval((v.value, v.low, v.high)) for v in (*self.retrieval_score.values(), self.mrr)]


@dataclass(frozen=True, slots=True)
class GateVerdict:
    """Scores on held-out questions before and after training, and the gain at `k` hits with its paired interval."""

    questions: int
    k: int
    before: GateScores
    after: GateScores
    gain: PairedTest

    @property
    def accepted(self) -> bool:
        """Whether the interval of the gain is above 0."""
        return self.gain.low > 0

    def described(self) -> list[Part]:
        """Return the scores and the gain for a person."""
        head = ["", *(f"@{k}" for k in self.before.retrieval_score), "MRR"]
        verdict = f"{counted(self.questions, 'question')}: {'' if self.accepted else 'not '}accepted"
        return [
            Grid(head, [["before", *self.before.cells()], ["after", *self.after.cells()]]),
            Fact(f"gain@{self.k}", f"{describe_gain(self.gain)}, {verdict}"),
        ]


def table_of(rows: Sequence[Mapping[str, float]], align: str = "<>") -> Grid:
    """Return rows of numbers as a table."""
    return Grid(list(rows[0]), [[f"{value:.3f}" for value in row.values()] for row in rows], align)


def describe_gain(gain: PairedTest) -> str:
    """Return a paired gain with its interval and p."""
    return f"{gain.difference:+.3f} [{gain.low:+.3f}, {gain.high:+.3f}], p = {gain.p:.4f}"


def judge_ranks(before: Ranks, after: Ranks, k: int = GATE_K, ks: Sequence[int] = KS) -> GateVerdict:
    """Return the verdict on ranks of the same questions, without the trained model and with it.

    Raises BadPair and NothingToScore.
    """
    gain = paired_test(within(after, k), within(before, k))
    return GateVerdict(len(before), k, GateScores.of(before, ks), GateScores.of(after, ks), gain)


def within(ranks: Ranks, k: int) -> list[float]:
    """Return 1 for each question whose right hit is among the first `k`, else 0."""
    return [float(0 < rank <= k) for rank in ranks]


# ------------------------------------------------------------------------------------------- as served


@dataclass(frozen=True, slots=True)
class JudgingHits:
    """Held-out questions with their hits in retrieval order; `settings` has the service's page rules."""

    examples: Sequence[Example]
    hits: Sequence[Hits]
    settings: AnswerSettings

    @classmethod
    def retrieve(cls, collection: IndexedCollection, examples: Sequence[Example], depth: int) -> "JudgingHits":
        """Return the examples with their best `depth` hits."""
        hits = [collection.retrieve(example.question, depth) for example in examples]
        return cls(examples, hits, collection.settings)

    def ranks(self, reranker: Reranker | None = None) -> list[int]:
        """Return the rank of the first right hit of each question, after applying the service's page rules.

        Raises RerankFailed.
        """
        hits = asyncio.run(self._rerank(reranker)) if reranker else self.hits
        again = reranker and self.settings.retrieval.pages_first  # retrieval has already ordered the pages
        spread = [spread_pages(some) if again else some for some in hits]
        served = [take_diverse(some, len(some), self.settings.retrieval.max_per_page) for some in spread]
        return [rank_of_right(example, some) for example, some in zip(self.examples, served, strict=True)]

    async def _rerank(self, reranker: Reranker) -> list[Hits]:
        pairs = zip(self.examples, self.hits, strict=True)
        return [await reranker.rerank(example.question, hits) for example, hits in pairs]


def rank_of_right(example: Example, hits: Hits) -> int:
    """Return the rank of the first hit on a reference page, from 1; 0 if there is none."""
    return next((rank for rank, hit in enumerate(hits, 1) if hit.url in example.pages), 0)


# ------------------------------------------------------------------------------------------- by vectors


def vector_ranks(questions: Matrix, chunks: Matrix, right: Sequence[Sequence[int]], texts: Sequence[str]) -> list[int]:
    """Return the rank, from 1, of the first chunk of `right` by cosine for each question; 0 if it has none.

    Chunks with equal `texts` count as one hit, as in retrieval. Rows of `questions` and `chunks` have length 1.
    """
    numbers: dict[str, int] = {}
    text = np.array([numbers.setdefault(name, len(numbers)) for name in texts])
    return [
        rank
        for start in range(0, len(questions), AT_ONCE)
        for rank in _ranks(questions[start : start + AT_ONCE] @ chunks.T, right[start : start + AT_ONCE], text)
    ]


def _ranks(scores: Matrix, right: Sequence[Sequence[int]], text: NDArray[np.int64]) -> list[int]:
    """Return one plus the number of distinct texts that score higher than the best right one."""
    best = [row[places].max() if len(places) else None for row, places in zip(scores, right, strict=True)]
    return [0 if most is None else 1 + len(np.unique(text[row > most])) for row, most in zip(scores, best, strict=True)]


# ------------------------------------------------------------------------------------------- by an embedding model


@dataclass(frozen=True, slots=True)
class JudgingSet:
    """Held-out questions, the pool of texts that a model searches, and the relevant texts of each question."""

    queries: Mapping[str, str]
    texts: Mapping[str, str]
    relevant: Mapping[str, set[str]]


def make_judging_set(examples: Sequence[Example], corpus: Corpus, pool: int, seed: int = 0) -> JudgingSet:
    """Return the examples with a pool of `pool` chunks (0: all): those that answer, and others drawn with `seed`.

    Every chunk of a reference page is relevant, as in retrieval_score. The others are drawn at random, not retrieved.
    Chunks retrieved with the old model would be a harder test for it than for the new one.
    """
    needed = {place for example in examples for place in corpus.answering(example)}
    others = [place for place in range(len(corpus.chunks)) if place not in needed]
    room = len(others) if pool == 0 else max(0, min(pool - len(needed), len(others)))
    places = sorted(needed | set(random.Random(seed).sample(others, room)))
    texts = {str(place): embedding_text(corpus.chunks[place]) for place in places}
    return JudgingSet(
        {example.id: example.question for example in examples},
        texts,
        {example.id: {str(place) for place in corpus.on_pages(example)} & texts.keys() for example in examples},
    )


def ranks_by_question(model: Any, judging: JudgingSet, folder: Path, name: str, batch_size: int = 32) -> dict[str, int]:
    """Return the rank of each question's first relevant text, from 1; 0 if it is not among the first DEPTH.

    The InformationRetrievalEvaluator of sentence-transformers leaves its metrics and predictions in `folder`.
    """
    from sentence_transformers.sentence_transformer.evaluation import InformationRetrievalEvaluator

    of_question, of_chunk = prefixes_of(model)
    evaluator = InformationRetrievalEvaluator(
        dict(judging.queries),
        dict(judging.texts),
        dict(judging.relevant),
        accuracy_at_k=[1, 5, 9, 18],
        mrr_at_k=[DEPTH],
        map_at_k=[DEPTH],
        batch_size=batch_size,
        name=name,
        query_prompt=of_question,
        corpus_prompt=of_chunk,
        write_predictions=True,
        score_functions={model.similarity_fn_name: model.similarity},
    )
    folder.mkdir(parents=True, exist_ok=True)
    evaluator(model, output_path=str(folder))
    (path,) = folder.glob(f"*_{name}_predictions_*.jsonl")
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return {row["query_id"]: _first_rank(row["results"], judging.relevant[row["query_id"]]) for row in rows}


def _first_rank(results: Sequence[Mapping[str, Any]], relevant: set[str]) -> int:
    return next((rank for rank, result in enumerate(results, 1) if result["corpus_id"] in relevant), 0)


def prefixes_of(model: Any) -> tuple[str, str]:
    """Return the prefixes of questions and of chunks, in the same way as TokenCounter."""
    prompts = model.prompts or {}
    usual = prompts.get(model.default_prompt_name, "")
    return prompts.get("query") or usual, prompts.get("document") or prompts.get("passage") or usual
