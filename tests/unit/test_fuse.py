"""Reciprocal rank fusion: the published formula, whatever the order of legs and hits; equal texts are one hit."""

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.answering.fuse import Leg, fuse
from pipelines.records import Hit


def make_hit(name: str, score: float, text: str | None = None) -> Hit:
    return Hit(name, f"https://d.test/{name}", (), "", (), text or name, text or name, score, "cosine")


def leg(name: str, *names: str, weight: float = 1.0) -> Leg:
    return Leg(name, [make_hit(n, 1.0 - i / 10) for i, n in enumerate(names)], weight)


hits = st.builds(
    make_hit,
    name=st.sampled_from("abcdefgh"),
    score=st.floats(-1, 1, allow_nan=False),
    text=st.sampled_from(["one", "two", "three", "four"]),
)
unique_hits = st.lists(hits, max_size=8, unique_by=lambda hit: hit.chunk_id)
legs = st.lists(
    st.builds(Leg, name=st.sampled_from(["vector", "bm25"]), hits=unique_hits, weight=st.floats(0, 10)),
    max_size=3,
)


def test_the_score_is_the_sum_of_weighted_reciprocal_ranks() -> None:
    first, second, third = fuse([leg("vector", "a", "b"), leg("bm25", "b", "c", weight=2)])
    assert first.chunk_id == "b" and first.score == pytest.approx(1 / 62 + 2 / 61)
    assert first.ranks == {"vector": 2, "bm25": 1} and first.scores == {"vector": 0.9, "bm25": 1.0}
    assert (second.chunk_id, third.chunk_id) == ("c", "a")
    assert {hit.score_kind for hit in (first, second, third)} == {"rrf"}


def test_ranks_follow_scores_not_the_order_given() -> None:
    assert [hit.chunk_id for hit in fuse([Leg("bm25", [make_hit("a", 1), make_hit("b", 2)])])] == ["b", "a"]


def test_equal_texts_are_one_hit_with_all_sources() -> None:
    twins = [make_hit("a", 0.9, "same"), make_hit("b", 0.8, "same"), make_hit("c", 0.7)]
    same, other = fuse([Leg("vector", twins), Leg("bm25", [make_hit("d", 5, "same")])])
    assert same.sources == ("https://d.test/a", "https://d.test/b", "https://d.test/d")
    assert same.chunk_id == "a" and same.ranks == {"vector": 1, "bm25": 1}
    assert other.ranks == {"vector": 2} and other.sources == ("https://d.test/c",)


def test_a_text_counts_once_per_leg() -> None:
    twice = Leg("vector", [make_hit("a", 0.9, "same"), make_hit("b", 0.8, "same")])
    assert fuse([twice])[0].score == pytest.approx(1 / 61)


@pytest.mark.parametrize("weight", [-1.0, float("nan")])
def test_a_weight_below_zero_is_refused(weight: float) -> None:
    with pytest.raises(ValueError, match="vector"):
        Leg("vector", [], weight)


@given(legs)
def test_every_text_appears_once_and_every_source_is_kept(given_legs: list[Leg]) -> None:
    fused = fuse(given_legs)
    found = [hit for leg in given_legs for hit in leg.hits]
    assert sorted(hit.text_hash for hit in fused) == sorted({hit.text_hash for hit in found})
    for hit in fused:
        assert set(hit.sources) == {h.source for h in found if h.text_hash == hit.text_hash}
        assert hit.sources[0] == hit.source
    assert [hit.score for hit in fused] == sorted((hit.score for hit in fused), reverse=True)


@given(legs, st.randoms())
def test_the_order_of_legs_and_of_hits_does_not_matter(given_legs: list[Leg], random: object) -> None:
    expected = fuse(given_legs)
    for permutation in itertools.permutations(given_legs):
        shuffled = [replace(leg, hits=random.sample(leg.hits, len(leg.hits))) for leg in permutation]  # type: ignore[attr-defined]
        fused = fuse(shuffled)
        assert [hit.chunk_id for hit in fused] == [hit.chunk_id for hit in expected]
        assert [hit.ranks for hit in fused] == [hit.ranks for hit in expected]
        assert [hit.score for hit in fused] == pytest.approx([hit.score for hit in expected])


@given(unique_hits)
def test_one_leg_keeps_its_order(found: list[Hit]) -> None:
    scores = [hit.scores["vector"] for hit in fuse([Leg("vector", found)])]
    assert scores == sorted(scores, reverse=True)
