"""Every metric against values that were computed by hand."""

import math

import numpy as np
import pytest

from pipelines.evaluation.dataset import Example
from pipelines.evaluation.metrics import (
    HitSources,
    any_source_score,
    rank,
    retrieval_score,
    score_hits,
    section_score,
    similarity,
    supported_share,
    token_f1,
)
from pipelines.records import Answer, Citation, Hit


def hit(source, *path, also=()):
    """A hit at `source` under further anchors."""
    url, _, anchor = source.partition("#")
    anchors = (*path, anchor) if anchor else path
    return Hit("id", url, anchors, "", (), "text", "hash", 0.0, "rrf", sources=(source, *also))


# pages a b a c: `deep` lies in section `outer` of a; the text of b stands on page d as well
FOUND = HitSources.of([hit("a#deep", "outer"), hit("b#x", also=("d#y",)), hit("a#other"), hit("c")])


def example(*sources):
    return Example("q", sources)


def at_each_k(score, wanted):
    return [score(wanted, FOUND, k) for k in (1, 2, 3, 4, 99)]


def test_the_retrieval_score_is_whether_a_reference_page_is_among_the_first_k():
    assert at_each_k(retrieval_score, example("a#elsewhere")) == [1, 1, 1, 1, 1]
    assert at_each_k(retrieval_score, example("b")) == [0, 1, 1, 1, 1]
    assert at_each_k(retrieval_score, example("c#x")) == [0, 0, 0, 1, 1]
    assert at_each_k(retrieval_score, example("z", "b#q")) == [0, 1, 1, 1, 1]
    assert at_each_k(retrieval_score, example("z")) == [0, 0, 0, 0, 0]
    assert at_each_k(retrieval_score, example("A")) == [0, 0, 0, 0, 0]


def test_another_place_of_a_hits_text_counts_apart():
    assert at_each_k(retrieval_score, example("d#y")) == [0, 0, 0, 0, 0]
    assert at_each_k(any_source_score, example("d#y")) == [0, 1, 1, 1, 1]
    assert at_each_k(any_source_score, example("a")) == [1, 1, 1, 1, 1]


def test_the_section_score_is_whether_the_anchor_is_on_the_path_of_a_hit():
    assert at_each_k(section_score, example("a#deep")) == [1, 1, 1, 1, 1]
    assert at_each_k(section_score, example("a#outer")) == [1, 1, 1, 1, 1]
    assert at_each_k(section_score, example("a#other")) == [0, 0, 1, 1, 1]
    assert at_each_k(section_score, example("b#outer")) == [0, 0, 0, 0, 0]
    assert at_each_k(section_score, example("c#x")) == [0, 0, 0, 0, 0]


def test_a_reference_without_an_anchor_means_the_whole_page():
    assert at_each_k(section_score, example("b")) == [0, 1, 1, 1, 1]


def test_the_rank_is_that_of_the_first_hit_on_a_reference_page():
    assert [rank(example(page), FOUND) for page in "abcz"] == [1, 2, 4, None]
    assert rank(example("c", "b"), FOUND) == 2


def test_recall_ndcg_and_mrr_of_several_references():
    row = score_hits([example("b#x", "c", "z")], [FOUND], [1, 2, 4])[0]
    assert [row[f"recall@{k}"] for k in (1, 2, 4)] == pytest.approx([0, 1 / 3, 2 / 3])
    assert row["mrr"] == pytest.approx(1 / 2)
    gain = {place: 1 / math.log2(place + 1) for place in (1, 2, 3, 4)}
    assert row["ndcg@1"] == 0
    assert row["ndcg@2"] == pytest.approx(gain[2] / (gain[1] + gain[2]))
    assert row["ndcg@4"] == pytest.approx((gain[2] + gain[4]) / (gain[1] + gain[2] + gain[3]))


def test_a_page_counts_once_and_its_further_hits_keep_their_places():
    row = score_hits([example("a", "c")], [FOUND], [3, 4])[0]
    assert row["recall@3"] == 0.5 and row["recall@4"] == 1
    assert row["ndcg@4"] == pytest.approx((1 + 1 / math.log2(5)) / (1 + 1 / math.log2(3)))


def test_with_one_reference_recall_is_the_retrieval_score():
    examples = [example(page) for page in "abcz"]
    rows = score_hits(examples, [FOUND] * 4, [1, 3])
    for k in (1, 3):
        assert [row[f"recall@{k}"] for row in rows] == [row[f"retrieval_score@{k}"] for row in rows]
    assert [row["retrieval_score@1"] for row in rows] == [1, 0, 0, 0]
    assert [row["retrieval_score@3"] for row in rows] == [1, 1, 0, 0]
    assert [row["mrr"] for row in rows] == [1, 1 / 2, 1 / 4, 0]


def test_names_that_no_url_has_are_names_like_others():
    for odd in ["https://d.test/a\0b", "https://d.test/\udfff", "two words", "again 1", "0", "Ünï"]:
        found = HitSources((("x",), (odd,)), ((), ()))
        rows = score_hits([Example("q", (odd,)), Example("q", ("z",))], [found, found], [1, 2])
        assert [row["mrr"] for row in rows] == [0.5, 0]
        assert [rows[0][f"recall@{k}"] for k in (1, 2)] == [0, 1]


def test_nothing_found_scores_nothing():
    rows = score_hits([example("a"), example("a")], [HitSources((), ()), FOUND], [2])
    assert set(rows[0].values()) == {0.0}
    assert set(rows[1].values()) == {1.0}


def test_token_f1_counts_common_words():
    # said: use map batches · wanted: use map_batches function, without articles, case and punctuation
    assert token_f1("Use map batches [1].", "use map the batches") == 1
    # 2 common of 3 and 5: precision 2/3, recall 2/5
    assert token_f1("ray starts workers", "Ray never starts any actor") == pytest.approx(2 * 2 / (3 + 5))
    # a word counts as often as it stands on both sides
    assert token_f1("go go go", "go") == pytest.approx(2 * 1 / (3 + 1))
    assert token_f1("", "word") == token_f1("word", "the") == 0
    assert token_f1("", "the") == 1


def test_similarity_is_the_cosine_of_both_texts():
    vectors = {"yes ": [1.0, 0.0], "maybe": [0.6, 0.8]}
    assert similarity(lambda texts: np.array([vectors[t] for t in texts]), "yes [2]", "maybe") == pytest.approx(0.6)


def test_supported_share_is_that_of_the_citations():
    def answer(*supported):
        citations = tuple(Citation(n, "u", "", "", supported=s) for n, s in enumerate(supported, 1))
        return Answer("q", "a", "agent", citations, (), (), {}, 1, 1)

    assert supported_share(answer(True, False, True, True)) == 0.75
    assert supported_share(answer()) is None
