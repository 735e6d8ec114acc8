"""Trains the query adapter: a linear map of question vectors towards their answers.

The arithmetic is over vectors; the stored ones stay as they are. Heavy libraries are imported in functions.
"""

import contextlib
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from pipelines.answering.factory import make_embedder, make_retriever
from pipelines.answering.settings import AnswerSettings, change
from pipelines.embedding.adapter import KIND, QueryAdapter
from pipelines.evaluation.dataset import Example
from pipelines.files.atomic_files import whole_folder
from pipelines.files.model_cards import write_card
from pipelines.records import Index
from pipelines.store import Store
from pipelines.training import card
from pipelines.training.card import GateVerdict, ModelFolder, Progress, TrainingPlan, TrainingResult, silent
from pipelines.training.mining import Corpus, NothingToLearn, page_folds, select_answered
from pipelines.training.ranking import vector_ranks

Matrix = NDArray[np.float32]


class AdapterPlan(TrainingPlan):
    """How a map is learned.

    Page-disjoint folds of 5,724 questions by an LLM prefer temperature 0.03 (retrieval_score@9 0.893; 0.05: 0.883;
    without a map 0.826), 83 of users, on pages not learned from, 0.05 (0.651; 0.03: 0.614; without 0.554): so the
    milder one. On one fold six epochs or ten times the weight changed less than 0.004. The rest is not tuned.
    """

    temperature: float = Field(0.05, gt=0, description="of the softmax over all chunks")
    stay: float = Field(1e-3, ge=0, description="weight of the squared distance (Frobenius) to the identity")
    epochs: int = Field(3, ge=0, description="passes over the questions")
    batch_size: int = Field(128, ge=1)
    learning_rate: float = Field(1e-3, gt=0, description="of Adam")


@dataclass(frozen=True, slots=True)
class QuestionVectors:
    """Questions with their vectors, (n, d)."""

    examples: Sequence[Example]
    vectors: Matrix

    def take(self, places: Sequence[int]) -> "QuestionVectors":
        """Return those at `places`."""
        return QuestionVectors([self.examples[place] for place in places], self.vectors[list(places)])


@dataclass(frozen=True, slots=True)
class AdapterData:
    """The questions to learn from, those of a second check, and the chunks of the index with their vectors, (m, d).

    `identity` names the vectors, as TokenCounter.identity does.
    """

    index: Index
    identity: str
    corpus: Corpus
    chunks: Matrix
    questions: QuestionVectors
    check: QuestionVectors | None = None

    def answering(self, examples: Sequence[Example]) -> list[list[int]]:
        """Return the rows of `chunks` that answer each example."""
        return [self.corpus.answering(example) for example in examples]


def gather_adapter_data(
    store: Store,
    settings: AnswerSettings,
    collection: str | None,
    examples: Sequence[Example],
    check: Sequence[Example] = (),
    *,
    progress: Progress = silent,
) -> AdapterData:
    """Return the examples that the live index answers with their vectors, and those of its chunks.

    Raises CollectionNotNamed, NoLiveIndex, NothingToLearn, and an error of its own for a model that does not load.
    """
    started = time.monotonic()
    plain = change(settings, {"retrieval.query_adapter": Path()})
    with contextlib.closing(make_retriever(plain, store)) as retriever:
        index = store.live_index(retriever.name(collection))
    vectors = store.vectors(index.id)
    with store.scan_chunks(index.id) as (_, hits):
        corpus = Corpus(hit for hit in hits if hit.chunk_id in vectors)
    chunks = np.stack([vectors[hit.chunk_id] for hit in corpus.chunks])
    chunks /= np.maximum(np.linalg.norm(chunks, axis=1, keepdims=True), 1e-12)
    embedder = make_embedder(settings, index.settings.model)

    def embed(some: Sequence[Example]) -> QuestionVectors:
        return QuestionVectors(some, np.stack([embedder.embed_query(example.question) for example in some]))

    questions = embed(select_answered(examples, corpus))
    progress(f"{len(questions.examples):,} questions embedded in {time.monotonic() - started:.0f} s")
    identity = embedder.counter.identity
    return AdapterData(index, identity, corpus, chunks, questions, embed(check) if check else None)


def train_adapter(
    data: AdapterData,
    output: ModelFolder,
    plan: AdapterPlan,
    *,
    accept: bool = False,
    progress: Progress = silent,
) -> TrainingResult:
    """Judge maps on pages that they have not learned from, then put one that learned from all into `output`.

    `accept` accepts it whatever the verdict is. Raises NothingToLearn and BadFolds.
    """
    verdict = judge_out_of_fold(data, plan)
    progress(f"{verdict}\n")
    checked = judge_check(data, data.check, plan) if data.check else None
    started = time.monotonic()
    adapter = QueryAdapter(learn(data, data.questions, plan), data.identity)
    seconds = time.monotonic() - started
    entries = card.make_card(
        KIND,
        base={"model": data.index.settings.model, "identity": adapter.identity, "dimension": adapter.dimension},
        examples=data.questions.examples,
        verdict=verdict,
        settings={
            **plan.model_dump(),
            "collection": data.index.collection,
            "index": data.index.id,
            "revision": data.index.revision,
        },
        accept=accept,
    )
    entries["check"] = asdict(checked) if checked else None
    with whole_folder(output.path) as making:
        adapter.save(making)
        write_card(making, entries)
    check = f"\nchecked on further questions\n{checked}\n" if checked else ""
    scores = f"{verdict}\n{check}\nlearned in {seconds:.0f} s"
    return TrainingResult(output.path, entries, scores, {"seconds": round(seconds, 1)})


# ------------------------------------------------------------------------------------------- judging


def judge_out_of_fold(data: AdapterData, plan: AdapterPlan) -> GateVerdict:
    """Return the verdict over all questions, each mapped by a map that has not seen its pages."""
    examples = data.questions.examples
    folds = page_folds(examples, data.corpus, plan.seed)
    mapped = map_out_of_fold(data.questions.vectors, data.chunks, data.answering(examples), folds, plan)
    return _compare(data, data.questions, mapped)


def judge_check(data: AdapterData, check: QuestionVectors, plan: AdapterPlan) -> GateVerdict:
    """Return the verdict over `check`, mapped by a map that has learned from none of its pages.

    Raises NothingToLearn.
    """
    corpus, examples = data.corpus, data.questions.examples
    judging = {page for example in check.examples for page in corpus.pages_of(example)}
    rest = [place for place, example in enumerate(examples) if judging.isdisjoint(corpus.pages_of(example))]
    if not rest:
        raise NothingToLearn("every page of the data set is one of the check too: nothing is left to learn from")
    matrix = learn(data, data.questions.take(rest), plan)
    return _compare(data, check, QueryAdapter(matrix, "")(check.vectors))


def _compare(data: AdapterData, questions: QuestionVectors, mapped: Matrix) -> GateVerdict:
    right = [data.corpus.on_pages(example) for example in questions.examples]
    texts = [hit.text_hash for hit in data.corpus.chunks]
    before, after = (vector_ranks(some, data.chunks, right, texts) for some in (questions.vectors, mapped))
    return card.judge_ranks(before, after)


# ------------------------------------------------------------------------------------------- learning


def learn(data: AdapterData, questions: QuestionVectors, plan: AdapterPlan) -> Matrix:
    """Return the map that these questions teach. Raises NothingToLearn."""
    return fit_map(questions.vectors, data.chunks, data.answering(questions.examples), plan)


def fit_map(questions: Matrix, chunks: Matrix, answering: Sequence[Sequence[int]], plan: AdapterPlan) -> Matrix:
    """Return the map of (n, d) `questions` to where their chunks lie among (m, d) `chunks`; float32, (d, d).

    `answering` has the rows of `chunks` that answer each question. The loss is the softmax over all chunks of the
    cosine divided by the temperature: minus log of the mass on the answering ones, plus `stay` times the squared
    distance of the map to the identity. Adam, on as many threads as torch has. Raises NothingToLearn.
    """
    import torch

    places = [place for place, rows in enumerate(answering) if len(rows)]
    if not places:
        raise NothingToLearn("no question has a chunk that answers it")
    rng = np.random.default_rng(plan.seed)
    vectors, stored = torch.from_numpy(np.asarray(questions)), torch.from_numpy(np.ascontiguousarray(chunks.T))
    identity = torch.eye(questions.shape[1])
    offset = torch.zeros_like(identity, requires_grad=True)
    adam = torch.optim.Adam([offset], lr=plan.learning_rate)
    for _ in range(plan.epochs):
        order = rng.permutation(places)
        for start in range(0, len(order), plan.batch_size):
            batch = order[start : start + plan.batch_size]
            mapped = torch.nn.functional.normalize(vectors[batch] @ (identity + offset), dim=1)
            logits = mapped @ stored / plan.temperature
            loss = _answer_loss(logits, [answering[place] for place in batch]) + plan.stay * offset.square().sum()
            adam.zero_grad()
            loss.backward()
            adam.step()
    return np.asarray((identity + offset).detach().numpy(), np.float32)


def _answer_loss(logits: Any, answering: Sequence[Sequence[int]]) -> Any:
    """Return minus log of the softmax's mass on the answering chunks: log-sum-exp of all less theirs, mean."""
    import torch

    rows = torch.tensor([row for row, right in enumerate(answering) for _ in right])
    columns = torch.tensor([place for right in answering for place in right])
    most = logits.detach().amax(dim=1)
    mass = torch.zeros(len(answering)).index_add(0, rows, (logits[rows, columns] - most[rows]).exp())
    return (logits.logsumexp(dim=1) - most - mass.log()).mean()


def map_out_of_fold(
    questions: Matrix,
    chunks: Matrix,
    answering: Sequence[Sequence[int]],
    folds: Sequence[Sequence[int]] | Sequence[NDArray[np.intp]],
    plan: AdapterPlan,
) -> Matrix:
    """Return each question mapped by a map that learned from the other folds: the map has not seen its pages."""
    mapped = np.array(questions, np.float32)
    for fold in folds:
        rest = np.setdiff1d(np.arange(len(questions)), fold)
        matrix = fit_map(questions[rest], chunks, [answering[place] for place in rest], plan)
        mapped[fold] = QueryAdapter(matrix, "")(questions[fold])
    return mapped
