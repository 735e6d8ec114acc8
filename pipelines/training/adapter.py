"""The query adapter: a linear map that moves question vectors towards their answers.

The arithmetic is over vectors; the stored ones stay unchanged. Heavy libraries are imported in functions.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from pipelines.answering.factory import make_embedder
from pipelines.answering.settings import change
from pipelines.embedding.adapter import KIND, QueryAdapter
from pipelines.evaluation.dataset import Example, dataset_fingerprint, read_answerable
from pipelines.records import Index
from pipelines.text.counts import counted
from pipelines.training.folds import Places
from pipelines.training.mining import Corpus, NothingToLearn, page_folds, pages_of, select_answered
from pipelines.training.ranking import GateVerdict, judge_ranks, vector_ranks
from pipelines.training.run import ModelKind, TrainingOrder, TrainingPlan, TrainingScores, Workplace

Matrix = NDArray[np.float32]


class AdapterPlan(TrainingPlan):
    """Settings for fitting a map.

    On page-disjoint folds of 5,724 LLM-written questions, temperature 0.03 is best (retrieval_score@9 0.893; 0.05:
    0.883; without a map 0.826). On 83 user questions about pages not trained on, 0.05 is best (0.651; 0.03: 0.614;
    without 0.554). The default is the milder one. On one fold, six epochs or ten times the weight changed less than
    0.004. The other settings are not tuned.
    """

    temperature: float = Field(0.05, gt=0, description="temperature of the softmax over all chunks")
    stay: float = Field(1e-3, ge=0, description="weight of the squared distance (Frobenius) to the identity")
    epochs: int = Field(3, ge=0, description="passes over the questions")
    batch_size: int = Field(128, ge=1)
    learning_rate: float = Field(1e-3, gt=0, description="learning rate of Adam")


@dataclass(frozen=True, slots=True)
class AdapterData:
    """Questions with their vectors, (n, d), a check set with its vectors, and the index's chunks with theirs, (m, d).

    `identity` names the vectors, as TokenCounter.identity does.
    """

    plan: AdapterPlan
    index: Index
    identity: str
    corpus: Corpus
    chunks: Matrix
    examples: Sequence[Example]
    questions: Matrix
    check: Sequence[Example]
    check_questions: Matrix

    def learn(self, places: Sequence[int] | Places) -> QueryAdapter:
        """Return the map fitted to the questions at `places`. Raises NothingToLearn."""
        answering = [self.corpus.answering(self.examples[place]) for place in places]
        return QueryAdapter(fit_map(self.questions[list(places)], self.chunks, answering, self.plan), self.identity)

    def compare(self, examples: Sequence[Example], questions: Matrix, mapped: Matrix) -> GateVerdict:
        """Return the verdict on question vectors without the map and with it."""
        right = [self.corpus.on_pages(example) for example in examples]
        texts = [hit.text_hash for hit in self.corpus.chunks]
        before, after = (vector_ranks(some, self.chunks, right, texts) for some in (questions, mapped))
        return judge_ranks(before, after)


class AdapterKind(ModelKind[AdapterPlan, AdapterData, QueryAdapter]):
    """Judged by maps that were not fitted to the questions' pages; the saved map is fitted to all questions."""

    name, card, plan = "adapter", KIND, AdapterPlan
    help = "a linear map of the questions' vectors"

    def load(self, order: TrainingOrder, plan: AdapterPlan) -> AdapterData:
        """Return the examples that the live index answers with their vectors, and the vectors of its chunks."""
        examples, check = read_answerable(order.dataset), read_answerable(order.check) if order.check else []
        plain = change(order.settings, {"retrieval.query_adapter": Path()})  # ignores the map of an earlier training
        with replace(order, settings=plain).open_collection() as collection:
            index, vectors = collection.index, collection.vectors()
            corpus = Corpus(hit for hit in collection.corpus.chunks if hit.chunk_id in vectors)
        chunks = np.stack([vectors[hit.chunk_id] for hit in corpus.chunks])
        chunks /= np.maximum(np.linalg.norm(chunks, axis=1, keepdims=True), 1e-12)
        embedder, answered = make_embedder(order.settings, index.settings.embedding), select_answered(examples, corpus)
        asked = [np.array([embedder.embed_query(e.question) for e in some], np.float32) for some in (answered, check)]
        order.progress(f"{counted(len(answered), 'question')} embedded")
        return AdapterData(plan, index, embedder.counter.identity, corpus, chunks, answered, asked[0], check, asked[1])

    def fit(self, data: AdapterData, workplace: Workplace) -> QueryAdapter:
        """Fit a map to all questions."""
        return data.learn(range(len(data.examples)))

    def judge(self, data: AdapterData, model: QueryAdapter, workplace: Workplace) -> TrainingScores:
        """Judge all questions out of fold, and the check set by a map that was fitted to none of its pages."""
        folds = page_folds(data.examples, data.corpus, data.plan.seed)
        mapped = map_out_of_fold(data.questions, folds, data.learn)
        verdict, checked = data.compare(data.examples, data.questions, mapped), _check(data)
        index, examples = data.index, data.examples
        learned_in = {"collection": index.collection, "index": index.id, "revision": index.revision}
        fingerprint, pages = dataset_fingerprint(examples), len(pages_of(examples))
        entries = {
            "base": {"model": index.settings.model, "identity": model.identity, "dimension": model.dimension},
            "data": {"fingerprint": fingerprint, "questions": len(examples), "pages": pages},
            "settings": data.plan.model_dump() | learned_in,
            "metrics": asdict(verdict),
            "check": asdict(checked) if checked else None,
        }
        scores = verdict.described()
        if checked:
            scores += ["", "checked on further questions", *checked.described()]
        return TrainingScores(verdict.accepted, entries, scores, {})

    def save(self, model: QueryAdapter, folder: Path, card: Mapping[str, Any]) -> None:
        """Write the map and its card."""
        model.save(folder)
        super().save(model, folder, card)


def _check(data: AdapterData) -> GateVerdict | None:
    """Return the verdict on the check set. Raises NothingToLearn."""
    if not data.check:
        return None
    judging = {page for example in data.check for page in data.corpus.pages_of(example)}
    rest = [n for n, example in enumerate(data.examples) if judging.isdisjoint(data.corpus.pages_of(example))]
    if not rest:
        raise NothingToLearn("every page of the data set is one of the check too: nothing is left to learn from")
    return data.compare(data.check, data.check_questions, data.learn(rest)(data.check_questions))


def map_out_of_fold(questions: Matrix, folds: Sequence[Places], learn: Callable[[Places], QueryAdapter]) -> Matrix:
    """Return each question mapped by a map fitted to the other folds, which has not seen its pages."""
    mapped = np.array(questions, np.float32)
    for fold in folds:
        mapped[fold] = learn(np.setdiff1d(np.arange(len(questions)), fold))(questions[fold])
    return mapped


def fit_map(questions: Matrix, chunks: Matrix, answering: Sequence[Sequence[int]], plan: AdapterPlan) -> Matrix:
    """Return the map of (n, d) `questions` to where their chunks are among (m, d) `chunks`; float32, (d, d).

    `answering` has the rows of `chunks` that answer each question. The loss takes the softmax over all chunks of the
    cosine divided by the temperature. It is minus the log of the mass on the answering chunks, plus `stay` times the
    squared distance of the map to the identity. The optimizer is Adam, on as many threads as torch has. Raises
    NothingToLearn.
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
    """Return minus log of the softmax's mass on the answering chunks: log-sum-exp of all minus theirs, averaged."""
    import torch

    rows = torch.tensor([row for row, right in enumerate(answering) for _ in right])
    columns = torch.tensor([place for right in answering for place in right])
    most = logits.detach().amax(dim=1)
    mass = torch.zeros(len(answering)).index_add(0, rows, (logits[rows, columns] - most[rows]).exp())
    return (logits.logsumexp(dim=1) - most - mass.log()).mean()
