"""Groups questions that are the same in different words, and items that share a key.

Knows questions as sets of words; does not know what the groups are for.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence

import numpy as np

from pipelines.answering.routing.classifier import words

# Questions with at least this word overlap (Jaccard) are the same question in two wordings. At 0.8 the inspected pairs
# of the Ray assistant's questions differ in an article, a typo or punctuation; at 0.6 many ask different things.
ALIKE = 0.8


def question_groups(questions: Sequence[str], share: float = ALIKE) -> list[int]:
    """Return the group of each question.

    Questions whose word sets overlap by `share` are linked, also through others.
    """
    bags = [frozenset(words(question).split()) for question in questions]
    alike = (
        (one, other)
        for one, other in _pairs_to_compare(bags, share)
        if len(bags[one] & bags[other]) >= share * len(bags[one] | bags[other])
    )
    return connected_groups(len(bags), alike)


def _pairs_to_compare(bags: Sequence[frozenset[str]], share: float) -> set[tuple[int, int]]:
    """Return the pairs that share one of their rarest words; no other pair can overlap by `share`.

    This is prefix filtering (Chaudhuri, Ganti and Kaushik, 2006).
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


def connected_groups(count: int, pairs: Iterable[tuple[int, int]]) -> list[int]:
    """Return the group of each of `count` items: the index of the first item that `pairs` connects it to."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    ends = np.array(list(pairs), np.int64).reshape(-1, 2)
    graph = coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(count, count))
    _, labels = connected_components(graph, directed=False)
    _, first = np.unique(labels, return_index=True)
    return first[labels].tolist()


def pairs_sharing(keys: Iterable[Iterable[Hashable]]) -> Iterator[tuple[int, int]]:
    """Yield each item with the first item that has one of its `keys`, as indices."""
    first: dict[Hashable, int] = {}
    for place, of_item in enumerate(keys):
        for key in of_item:
            yield first.setdefault(key, place), place
