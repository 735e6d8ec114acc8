"""Every metric equals hand-computed values."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.evaluation.answer_scores import (
    answered,
    cited,
    reference_cited,
    reference_first,
    refused,
    similarity,
    source_cited,
    supported_claims_share,
    supported_share,
    token_f1,
)
from pipelines.evaluation.dataset import Example
from pipelines.evaluation.metrics import HitSources, any_source_score, rank, retrieval_score, score_hits, section_score
from pipelines.records import Answer, Citation, Claims, Hit

KS = [1, 2, 3, 5, 20]
TREC = {"recall": "R", "ndcg": "nDCG"}


def hit(source, *path, also=()):
    """Return a hit at `source` with additional anchors."""
    url, _, anchor = source.partition("#")
    anchors = (*path, anchor) if anchor else path
    return Hit("id", url, anchors, "", (), "text", "hash", 0.0, "rrf", sources=(source, *also))


# pages a b a c: `deep` is in section `outer` of a; the text of b is also on page d
FOUND = HitSources.of([hit("a#deep", "outer"), hit("b#x", also=("d#y",)), hit("a#other"), hit("c")])


def example(*sources):
    return Example("q", sources)


def at_each_k(score, wanted):
    return [score(wanted, FOUND, k) for k in (1, 2, 3, 4, 99)]


def test_retrieval_score_is_a_reference_page_among_the_first_k():
    assert at_each_k(retrieval_score, example("a#elsewhere")) == [1, 1, 1, 1, 1]
    assert at_each_k(retrieval_score, example("b")) == [0, 1, 1, 1, 1]
    assert at_each_k(retrieval_score, example("c#x")) == [0, 0, 0, 1, 1]
    assert at_each_k(retrieval_score, example("z", "b#q")) == [0, 1, 1, 1, 1]
    assert at_each_k(retrieval_score, example("z")) == [0, 0, 0, 0, 0]
    assert at_each_k(retrieval_score, example("A")) == [0, 0, 0, 0, 0]


def test_other_locations_of_a_hit_text_have_their_own_score():
    assert at_each_k(retrieval_score, example("d#y")) == [0, 0, 0, 0, 0]
    assert at_each_k(any_source_score, example("d#y")) == [0, 1, 1, 1, 1]
    assert at_each_k(any_source_score, example("a")) == [1, 1, 1, 1, 1]


def test_section_score_is_the_anchor_on_the_path_of_a_hit():
    assert at_each_k(section_score, example("a#deep")) == [1, 1, 1, 1, 1]
    assert at_each_k(section_score, example("a#outer")) == [1, 1, 1, 1, 1]
    assert at_each_k(section_score, example("a#other")) == [0, 0, 1, 1, 1]
    assert at_each_k(section_score, example("b#outer")) == [0, 0, 0, 0, 0]
    assert at_each_k(section_score, example("c#x")) == [0, 0, 0, 0, 0]
    assert at_each_k(section_score, example("b")) == [0, 1, 1, 1, 1], "without an anchor it means the whole page"


def test_rank_is_the_first_hit_on_a_reference_page():
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


def test_page_counts_once_and_its_later_hits_keep_their_ranks():
    row = score_hits([example("a", "c")], [FOUND], [3, 4])[0]
    assert row["recall@3"] == 0.5 and row["recall@4"] == 1
    assert row["ndcg@4"] == pytest.approx((1 + 1 / math.log2(5)) / (1 + 1 / math.log2(3)))


def test_recall_with_one_reference_is_the_retrieval_score():
    examples = [example(page) for page in "abcz"]
    rows = score_hits(examples, [FOUND] * 4, [1, 3])
    for k in (1, 3):
        assert [row[f"recall@{k}"] for row in rows] == [row[f"retrieval_score@{k}"] for row in rows]
    assert [row["retrieval_score@1"] for row in rows] == [1, 0, 0, 0]
    assert [row["retrieval_score@3"] for row in rows] == [1, 1, 0, 0]
    assert [row["mrr"] for row in rows] == [1, 1 / 2, 1 / 4, 0]


def test_names_impossible_in_urls_are_ordinary_names():
    for odd in ["https://d.test/a\0b", "https://d.test/\udfff", "two words", "again 1", "0", "Ünï"]:
        found = HitSources((("x",), (odd,)), ((), ()))
        rows = score_hits([Example("q", (odd,)), Example("q", ("z",))], [found, found], [1, 2])
        assert [row["mrr"] for row in rows] == [0.5, 0]
        assert [rows[0][f"recall@{k}"] for k in (1, 2)] == [0, 1]


@given(pages=st.lists(st.sampled_from("abcdefg"), max_size=9), wanted=st.sets(st.sampled_from("abcdexyz"), max_size=6))
def test_recall_ndcg_and_mrr_equal_those_of_trec_eval(pages, wanted):
    """trec_eval serves only as a check here: its Python package has no wheel for Linux on arm64."""
    reference = pytest.importorskip("ir_measures")
    row = score_hits([example(*wanted)], [HitSources(tuple((page,) for page in pages), ((),) * len(pages))], KS)[0]
    names = {f"{ours}@{k}": reference.parse_measure(f"{theirs}@{k}") for ours, theirs in TREC.items() for k in KS}
    names["mrr"] = reference.RR
    again = [page if page not in pages[:place] else f"again {place}" for place, page in enumerate(pages)]
    run = {"q": {page: -float(place) for place, page in enumerate(again)}}
    expected = dict.fromkeys(names.values(), 0.0)  # trec_eval leaves out a question without hits or references
    if run["q"] and wanted:
        expected |= reference.calc_aggregate(list(names.values()), {"q": dict.fromkeys(wanted, 1)}, run)
    assert {name: row[name] for name in names} == pytest.approx({n: expected[m] for n, m in names.items()}, abs=1e-6)


def test_no_hits_score_nothing():
    rows = score_hits([example("a"), example("a")], [HitSources((), ()), FOUND], [2])
    assert set(rows[0].values()) == {0.0}
    assert set(rows[1].values()) == {1.0}


def test_token_f1_counts_common_words():
    # said: use map batches · wanted: use map_batches function, without articles, case and punctuation
    assert token_f1("Use map batches [1].", "use map the batches") == 1
    # 2 common of 3 and 5: precision 2/3, recall 2/5
    assert token_f1("ray starts workers", "Ray never starts any actor") == pytest.approx(2 * 2 / (3 + 5))
    # a word counts as often as it appears on both sides
    assert token_f1("go go go", "go") == pytest.approx(2 * 1 / (3 + 1))
    assert token_f1("", "word") == token_f1("word", "the") == 0
    assert token_f1("", "the") == 1


def test_similarity_is_the_cosine_of_both_texts():
    vectors = {"yes ": [1.0, 0.0], "maybe": [0.6, 0.8]}
    assert similarity(lambda texts: np.array([vectors[t] for t in texts]), "yes [2]", "maybe") == pytest.approx(0.6)


CLAIMS = Claims(2, 1, 1)


def answer(*citations, known=True, hits=(), claims=CLAIMS):
    """Return an answer with citations given as `1+a#x` (supported) or `1-a#x`."""
    made = tuple(Citation(int(c[0]), c[2:], "", "", supported=c[1] == "+") for c in citations)
    return Answer("q", "So it is.", "agent", made, tuple(hits), (), {}, 1, 1, known=known, claims=claims)


OTHER_THINGS = Example("How long do I boil an egg?", ())


def test_supported_share_counts_the_citations():
    assert supported_share(answer("1+u", "2-u", "3+u", "4+u")) == 0.75
    assert supported_share(answer()) is None
    assert supported_share(answer("1-u", known=False)) is None


def test_claiming_answer_is_cited_if_a_citation_is_supported():
    assert cited(answer("1-a", "2+b")) == 1
    assert cited(answer("1-a")) == cited(answer()) == 0
    assert cited(answer("1+a", known=False)) is None
    assert cited(answer("1+a", claims=Claims())) is None


def test_share_of_supported_claims_covers_all_claims():
    assert supported_claims_share(answer(claims=Claims(3, 2, 1))) == pytest.approx(1 / 3)
    assert supported_claims_share(answer(claims=Claims(1, 0, 0))) == 0
    assert supported_claims_share(answer(claims=Claims(0, 0, 0))) is None
    assert supported_claims_share(answer(known=False)) is None


def test_question_counts_as_answered_only_if_its_page_was_retrieved():
    found = [hit("a#x"), hit("b#y")]
    assert answered(example("b#elsewhere"), answer(hits=found)) == 1
    assert answered(example("b"), answer(known=False, hits=found)) == 0
    assert answered(example("z"), answer(hits=found)) is None
    assert answered(OTHER_THINGS, answer(hits=found)) is None


def test_off_topic_question_is_refused_or_not():
    assert refused(OTHER_THINGS, answer(known=False)) == 1
    assert refused(OTHER_THINGS, answer()) == 0
    assert refused(example("a"), answer(known=False)) is None


def test_each_question_tells_whether_the_right_source_is_cited():
    found = [hit("a#x"), hit("b#y")]
    assert source_cited(example("b#y"), answer("2+b#y", hits=found)) == 1
    assert source_cited(example("b"), answer("2+b#y", hits=found)) == 1, "the whole page is right"
    assert source_cited(example("b#z"), answer("2+b#y", hits=found)) == 0, "another section of the page"
    assert source_cited(example("z"), answer("2+b#y", hits=found)) == 0, "not found"
    assert source_cited(example("b#y"), answer("2-b#y", hits=found)) == 0, "it does not support"
    assert (source_cited(OTHER_THINGS, answer(known=False)), source_cited(OTHER_THINGS, answer())) == (1, 0)


def test_reference_is_cited_by_a_supported_citation_any_or_the_first():
    found = [hit("a#x"), hit("b#y")]
    second = answer("1+a#x", "2+b#z", hits=found)
    assert (reference_cited(example("b"), second), reference_first(example("b"), second)) == (1, 0)
    unsupported = answer("1-a#x", "2+b#z", hits=found)
    assert (reference_cited(example("a"), unsupported), reference_first(example("b"), unsupported)) == (0, 1)
    assert reference_cited(example("b"), answer(known=False, hits=found)) == 0
    assert reference_first(example("z"), second) is None and reference_cited(OTHER_THINGS, second) is None
