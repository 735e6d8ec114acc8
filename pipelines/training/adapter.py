"""A linear map of question vectors is learned: of all chunks of an index the ones that answer should be nearest.

Pure arithmetic over vectors; the stored ones stay as they are. Knows no text, no model and no store.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipelines.embedding.adapter import QueryAdapter
from pipelines.training.mining import NothingToLearn

Matrix = NDArray[np.float32]

# Questions that are scored against all chunks at a time: 20,000 chunks make 40 MB.
AT_ONCE = 512


@dataclass(frozen=True, slots=True)
class AdapterPlan:
    """How a map is learned. `stay` is the weight of the squared distance to the identity (Frobenius).

    Page-disjoint folds of 5,724 questions by an LLM prefer temperature 0.03 (retrieval_score@9 0.893; 0.05: 0.883;
    without a map 0.826), 83 of users, on pages not learned from, 0.05 (0.651; 0.03: 0.614; without 0.554): the
    milder one it is. On one fold six epochs or ten times the weight changed less than 0.004. The rest is not tuned.
    """

    temperature: float = 0.05
    stay: float = 1e-3
    epochs: int = 3
    batch_size: int = 128
    learning_rate: float = 1e-3
    seed: int = 0


def fit(questions: Matrix, chunks: Matrix, answering: Sequence[Sequence[int]], plan: AdapterPlan) -> Matrix:
    """The map of (n, d) `questions` to where their chunks lie among (m, d) `chunks`; float32, (d, d).

    `answering` has the rows of `chunks` that answer each question. The loss is the softmax over all chunks of the
    cosine divided by the temperature, minus log of the mass on the answering ones; plus `stay` times the squared
    distance of the map to the identity. Adam; as many threads as torch has. Raises NothingToLearn.
    """
    import torch

    places = [place for place, rows in enumerate(answering) if len(rows)]
    if not places:
        raise NothingToLearn("no question has a chunk that answers it")
    rng = np.random.default_rng(plan.seed)
    asked, stored = torch.from_numpy(np.asarray(questions)), torch.from_numpy(np.ascontiguousarray(chunks.T))
    identity = torch.eye(questions.shape[1])
    moved = torch.zeros_like(identity, requires_grad=True)
    adam = torch.optim.Adam([moved], lr=plan.learning_rate)
    for _ in range(plan.epochs):
        order = rng.permutation(places)
        for start in range(0, len(order), plan.batch_size):
            batch = order[start : start + plan.batch_size]
            mapped = torch.nn.functional.normalize(asked[batch] @ (identity + moved), dim=1)
            logits = mapped @ stored / plan.temperature
            loss = _missed(logits, [answering[place] for place in batch]) + plan.stay * moved.square().sum()
            adam.zero_grad()
            loss.backward()
            adam.step()
    return np.asarray((identity + moved).detach().numpy(), np.float32)


def _missed(logits: Any, answering: Sequence[Sequence[int]]) -> Any:
    """Minus log of the softmax's mass on the answering chunks, mean over questions: log-sum-exp of all less theirs."""
    import torch

    rows = torch.tensor([row for row, right in enumerate(answering) for _ in right])
    columns = torch.tensor([place for right in answering for place in right])
    most = logits.detach().amax(dim=1)
    theirs = torch.zeros(len(answering)).index_add(0, rows, (logits[rows, columns] - most[rows]).exp())
    return (logits.logsumexp(dim=1) - most - theirs.log()).mean()


def ranks(questions: Matrix, chunks: Matrix, right: Sequence[Sequence[int]], texts: Sequence[str]) -> list[int]:
    """For each question the place, from 1, of the first chunk of `right` by cosine; 0 where there is none.

    Chunks of the same text (`texts` has what tells them apart) are one hit, as in retrieval. Rows have length 1.
    """
    names: dict[str, int] = {}
    text = np.array([names.setdefault(name, len(names)) for name in texts])
    return [
        place
        for start in range(0, len(questions), AT_ONCE)
        for place in _places(questions[start : start + AT_ONCE] @ chunks.T, right[start : start + AT_ONCE], text)
    ]


def _places(scores: Matrix, right: Sequence[Sequence[int]], text: NDArray[np.int64]) -> list[int]:
    """How many different texts score higher than the best right one, and one more."""
    best = [row[places].max() if len(places) else None for row, places in zip(scores, right, strict=True)]
    return [0 if most is None else 1 + len(np.unique(text[row > most])) for row, most in zip(scores, best, strict=True)]


def cross_fitted(
    questions: Matrix,
    chunks: Matrix,
    answering: Sequence[Sequence[int]],
    folds: Sequence[Sequence[int]],
    plan: AdapterPlan,
) -> Matrix:
    """Each question mapped by what was learned from the other folds: how a map does on pages it never saw."""
    mapped = np.array(questions, np.float32)
    for fold in folds:
        out = set(fold)
        rest = [place for place in range(len(questions)) if place not in out]
        matrix = fit(questions[rest], chunks, [answering[place] for place in rest], plan)
        mapped[list(fold)] = QueryAdapter(matrix, "")(questions[list(fold)])
    return mapped
