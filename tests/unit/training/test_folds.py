"""Folds: questions that share a page, a text or nearly all words are never on both sides."""

import numpy as np
import pytest

from pipelines.evaluation.dataset import Example, page_of
from pipelines.evaluation.questions.alike import connected_groups, pairs_sharing, question_groups
from pipelines.training.folds import BadFolds, group_folds, page_groups


def test_group_is_named_by_its_first_item_and_joined_through_others():
    assert connected_groups(6, [(4, 1), (5, 4), (3, 2)]) == [0, 1, 2, 2, 1, 1]
    assert connected_groups(3, []) == [0, 1, 2]
    assert connected_groups(0, []) == []
    keys = [["a"], ["b"], [], ["c", "b"], ["d"], ["c"]]
    assert connected_groups(len(keys), pairs_sharing(keys)) == [0, 1, 2, 1, 4, 1]


def test_no_page_or_question_is_in_two_folds():
    examples = [Example(f"q{n}", (f"https://d.test/{n // 3}.html#s{n}",)) for n in range(60)]
    examples += [
        Example("bridge", ("https://d.test/0.html", "https://d.test/7.html#x")),
        Example("Q20 ", ("https://d.test/elsewhere.html",)),
    ]
    parts = group_folds(page_groups(examples), 4, seed=1)
    assert sorted(np.concatenate(parts)) == list(range(62))
    assert all(14 <= len(part) <= 18 for part in parts)
    pages = [{page_of(s) for place in part for s in examples[place].sources} for part in parts]
    assert sum(map(len, pages)) == len(set().union(*pages))
    of_twenty = next(part for part in parts if 20 in part)
    assert 61 in of_twenty  # the same question in other words
    again, other = (group_folds(page_groups(examples), 4, seed) for seed in (1, 2))
    assert [part.tolist() for part in parts] == [part.tolist() for part in again] != [part.tolist() for part in other]


@pytest.mark.parametrize("n", [0, 1, 3])
def test_impossible_folds_are_refused(n):
    with pytest.raises(BadFolds, match=f"{n} folds? of 2 groups of questions that share nothing: add questions"):
        group_folds(page_groups([Example("a", ("u",)), Example("b", ("v",)), Example("c", ("v#x",))]), n)


@pytest.mark.parametrize(
    ("questions", "groups"),
    [
        (["What is Ray?", "what is ray"], 1),
        (["How do I tune a model with Ray Tune?", "how do i tune model with ray tune"], 1),
        (["a b c d e f g h i j", "a b c d e f g h i k", "a b c d e f g h l k"], 1),  # a chain of near-duplicates
        (["What is Ray?", "How do I tune a model with Ray Tune?"], 2),
        (["what is ray tune", "what is ray serve"], 2),  # these share only some words
        (["???", "…"], 1),  # without a word
    ],
)
def test_paraphrases_of_a_question_share_a_group(questions, groups):
    assert len(set(question_groups(questions))) == groups
