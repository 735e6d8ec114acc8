"""Splits questions into folds that share no page, no question and no near-duplicate of one.

Knows questions, their pages and groups of them; no model but the classifier that is fitted without a fold.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from pipelines.answering.routing.classifier import TextClassifier, words
from pipelines.evaluation.dataset import Example, page_of

FOLDS = 5  # a fifth of the questions judges
# Questions whose words overlap so much (Jaccard) are one question in two wordings. At 0.8 the inspected pairs of the
# Ray assistant's questions differ in an article, a typo or a mark; at 0.6 many ask different things.
ALIKE = 0.8

Places = NDArray[np.intp]
Probabilities = NDArray[np.float64]


class BadFolds(ValueError):
    """Questions can't be split into so many folds."""


# ------------------------------------------------------------------------------------------- groups


def connected_groups(count: int, pairs: Iterable[tuple[int, int]]) -> list[int]:
    """Return the group of each of `count` items: the place of the first item that it is connected to by `pairs`."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    ends = np.array(list(pairs), np.int64).reshape(-1, 2)
    graph = coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(count, count))
    _, labels = connected_components(graph, directed=False)
    _, first = np.unique(labels, return_index=True)
    return first[labels].tolist()


def pairs_sharing(keys: Iterable[Iterable[Hashable]]) -> Iterator[tuple[int, int]]:
    """Yield each item with the first item that has one of its `keys`, as places."""
    first: dict[Hashable, int] = {}
    for place, of_item in enumerate(keys):
        for key in of_item:
            yield first.setdefault(key, place), place


def page_groups(examples: Sequence[Example]) -> list[int]:
    """Return the group of each example: those that share a page or a question's text, over however many others."""
    return connected_groups(len(examples), pairs_sharing(map(_page_keys, examples)))


def _page_keys(example: Example) -> list[str]:
    return [f"? {' '.join(example.question.lower().split())}", *(page_of(source) for source in example.sources)]


def question_groups(questions: Sequence[str], share: float = ALIKE) -> list[int]:
    """Return the group of each question: those whose sets of words overlap by `share`, over however many others."""
    bags = [frozenset(words(question).split()) for question in questions]
    alike = (
        (one, other)
        for one, other in _pairs_to_compare(bags, share)
        if len(bags[one] & bags[other]) >= share * len(bags[one] | bags[other])
    )
    return connected_groups(len(bags), alike)


def _pairs_to_compare(bags: Sequence[frozenset[str]], share: float) -> set[tuple[int, int]]:
    """Return the pairs that share one of their rarest words: no other can overlap by `share`.

    (Prefix filtering; Chaudhuri, Ganti and Kaushik, 2006.)
    """
    counts = Counter(word for bag in bags for word in bag)
    holders: dict[str, list[int]] = {}
    pairs: set[tuple[int, int]] = set()
    for place, bag in enumerate(bags):
        rarest = sorted(bag, key=lambda word: (counts[word], word))
        for word in rarest[: len(bag) - int(np.ceil(share * len(bag))) + 1] or [""]:
            pairs.update((other, place) for other in holders.get(word, ()))
            holders.setdefault(word, []).append(place)
    return pairs


# ------------------------------------------------------------------------------------------- folds


def group_folds(groups: Sequence[Hashable], n: int = FOLDS, seed: int = 0) -> list[Places]:
    """Return `n` sorted arrays of places of about equal length; no group is in two of them. Raises BadFolds."""
    from sklearn.model_selection import GroupKFold

    numbers = {group: number for number, group in enumerate(dict.fromkeys(groups))}
    if not 2 <= n <= len(numbers):
        raise BadFolds(
            f"{n} folds of {len(numbers)} groups of questions that share nothing: ask for 2 to {len(numbers)} folds, "
            "or add questions"
        )
    # GroupKFold deals the groups by size, equal ones by their number: the seed decides through the numbers.
    order = np.random.default_rng(seed).permutation(len(numbers))
    shuffled = order[[numbers[group] for group in groups]]
    return [fold for _, fold in GroupKFold(n).split(shuffled, groups=shuffled)]


def predict_out_of_fold(
    fit: Callable[[Places], TextClassifier], texts: Sequence[str], labels: Sequence[str], folds: Sequence[Places]
) -> Probabilities:
    """Return the probability of each of `labels` for each text, (texts, labels).

    `fit` makes the classifier of a fold from the places of the others; a label that they lack has the probability 0.
    """
    probabilities = np.zeros((len(texts), len(labels)))
    for fold in folds:
        classifier = fit(np.setdiff1d(np.arange(len(texts)), fold))
        columns = [labels.index(label) for label in classifier.labels]
        probabilities[fold[:, None], columns] = classifier.probabilities([texts[place] for place in fold])
    return probabilities
