"""Groups connected items, such as questions about one page.

No fold may tear a group apart. Knows places in a list and pairs of them; not what connects them.
"""

from collections.abc import Hashable, Iterable, Iterator

import numpy as np


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
