"""The size of the graph decides whether a publish changes an index in place or rebuilds it."""

import pytest

from pipelines.indexing.publish import COSTS_IN_PLACE, cost_in_place, is_cheaper_in_place


@pytest.mark.parametrize(("chunks", "most"), [(100, 0.35), (20_000, 0.35), (140_000, 0.18), (1_000_000, 0.12)])
def test_larger_graph_allows_fewer_in_place_changes(chunks: int, most: float) -> None:
    assert is_cheaper_in_place(int(chunks * (most - 0.02)), chunks)
    assert not is_cheaper_in_place(int(chunks * (most + 0.02)), chunks)


def test_cost_matches_measurements_and_grows_beyond_them() -> None:
    assert [cost_in_place(chunks) for chunks, _ in COSTS_IN_PLACE] == pytest.approx(
        [cost for _, cost in COSTS_IN_PLACE]
    )
    costs = [cost_in_place(chunks) for chunks in (1, 20_000, 50_000, 10**6, 10**7)]
    assert costs == sorted(costs) and costs[0] == costs[1] and costs[-1] < 2 * costs[-2]


def test_unchanged_run_is_cheapest_in_place() -> None:
    assert is_cheaper_in_place(0, 0) and is_cheaper_in_place(0, 10**6)
    assert not is_cheaper_in_place(1, 0)  # an index without chunks is built
