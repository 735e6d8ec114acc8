"""Items are grouped by what connects them, however long the chain."""

from pipelines.evaluation.groups import connected_groups, pairs_sharing


def test_a_group_is_named_by_its_first_item():
    assert connected_groups(6, [(4, 1), (5, 4), (3, 2)]) == [0, 1, 2, 2, 1, 1]
    assert connected_groups(3, []) == [0, 1, 2]
    assert connected_groups(0, []) == []


def test_items_that_share_a_key_are_connected_also_through_others():
    keys = [["a"], ["b"], [], ["c", "b"], ["d"], ["c"]]
    assert connected_groups(len(keys), pairs_sharing(keys)) == [0, 1, 2, 1, 4, 1]
