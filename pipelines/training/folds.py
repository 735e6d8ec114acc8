"""Splits questions into folds that share no page, no question and no near-duplicate of one.

Knows questions, their pages and groups of them; no model.
"""

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from pipelines.evaluation.dataset import Example, page_of
from pipelines.evaluation.questions.alike import connected_groups, pairs_sharing

FOLDS = 5  # a fifth of the questions judges

Places = NDArray[np.intp]


class BadFolds(ValueError):
    """Questions can't be split into so many folds."""


# ------------------------------------------------------------------------------------------- groups


def page_groups(examples: Sequence[Example]) -> list[int]:
    """Return the group of each example: those that share a page or a question's text, over however many others."""
    return connected_groups(len(examples), pairs_sharing(map(_page_keys, examples)))


def _page_keys(example: Example) -> list[str]:
    return [f"? {' '.join(example.question.lower().split())}", *(page_of(source) for source in example.sources)]


# ------------------------------------------------------------------------------------------- folds


def group_folds(groups: Sequence[Hashable], n: int = FOLDS, seed: int = 0) -> list[Places]:
    """Return `n` sorted arrays of places of about equal length; no group is in two of them. Raises BadFolds."""
    from sklearn.model_selection import GroupKFold

    numbers = {group: number for number, group in enumerate(dict.fromkeys(groups))}
    if not 2 <= n <= len(numbers):
        raise BadFolds(f"{n} folds of {len(numbers)} groups of questions that share nothing: add questions")
    # GroupKFold deals the groups by size, equal ones by their number: the seed decides through the numbers.
    order = np.random.default_rng(seed).permutation(len(numbers))
    shuffled = order[[numbers[group] for group in groups]]
    return [fold for _, fold in GroupKFold(n).split(shuffled, groups=shuffled)]
