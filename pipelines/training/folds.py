"""Splits questions into folds that share no page, no question and no near-duplicate of one.

Knows questions, their pages and their groups; knows no model.
"""

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from pipelines.evaluation.dataset import Example, page_of
from pipelines.evaluation.questions.alike import connected_groups, pairs_sharing
from pipelines.text.counts import counted

FOLDS = 5  # a fifth of the questions is used for judging

Places = NDArray[np.intp]


class BadFolds(ValueError):
    """There are too few independent questions for the number of folds."""


# ------------------------------------------------------------------------------------------- groups


def page_groups(examples: Sequence[Example]) -> list[int]:
    """Return the group of each example; examples that share a page or a question are linked, also through others."""
    return connected_groups(len(examples), pairs_sharing(map(_page_keys, examples)))


def _page_keys(example: Example) -> list[str]:
    return [f"? {' '.join(example.question.lower().split())}", *(page_of(source) for source in example.sources)]


# ------------------------------------------------------------------------------------------- folds


def group_folds(groups: Sequence[Hashable], n: int = FOLDS, seed: int = 0) -> list[Places]:
    """Return `n` sorted index arrays of about equal length; no group is in two of them. Raises BadFolds."""
    from sklearn.model_selection import GroupKFold

    numbers = {group: number for number, group in enumerate(dict.fromkeys(groups))}
    if not 2 <= n <= len(numbers):
        raise BadFolds(
            f"{counted(n, 'fold')} of {counted(len(numbers), 'group')} of questions that share nothing: add questions"
        )
    # GroupKFold assigns groups by size, and equal sizes by number, so the seed acts through the numbers.
    order = np.random.default_rng(seed).permutation(len(numbers))
    shuffled = order[[numbers[group] for group in groups]]
    return [fold for _, fold in GroupKFold(n).split(shuffled, groups=shuffled)]
