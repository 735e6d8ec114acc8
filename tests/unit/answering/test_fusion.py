"""Reciprocal rank fusion: the published formula in any order of legs and hits, with equal texts as one hit."""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.plain_fusion import fuse_plainly

from pipelines.answering.retrieval.ranking import fusion
from pipelines.answering.retrieval.ranking.fusion import FusedText, Fusion, RankedList, spread_pages, take_diverse
from pipelines.answering.retrieval.ranking.prior import no_prior
from pipelines.records import Hit

K = 60  # the published constant


def make_hit(name: str, score: float, text: str | None = None) -> Hit:
    return Hit(name, f"https://d.test/{name}", (), "", (), text or name, text or name, score, "cosine")


def ranked(leg: str, hits: Sequence[Hit], weight: float = 1.0) -> RankedList:
    return RankedList(leg, [(hit.score, hit) for hit in hits], weight)


def leg(name: str, *names: str, weight: float = 1.0) -> RankedList:
    return ranked(name, [make_hit(n, 1.0 - i / 10) for i, n in enumerate(names)], weight)


def whole(text: FusedText) -> Hit:
    """Return a text's hit, whose text is its hash."""
    return text.to_hit(replace(make_hit(text.chunk_id, 0.0, text.chunk.text_hash), url=text.url))


def fuse(lists: Sequence[RankedList]) -> list[Hit]:
    return [whole(text) for text in fusion.fuse(lists, k=K)]


texts = st.sampled_from(["one", "two", "three", "four"])
hits = st.builds(make_hit, name=st.sampled_from("abcdefgh"), score=st.floats(-1, 1, allow_nan=False), text=texts)
unique_hits = st.lists(hits, max_size=8, unique_by=lambda hit: hit.chunk_id)
a_leg = st.builds(ranked, leg=st.sampled_from(["vector", "bm25"]), hits=unique_hits, weight=st.floats(0, 10))
legs = st.lists(a_leg, max_size=3)


def test_score_is_the_sum_of_weighted_reciprocal_ranks() -> None:
    first, second, third = fuse([leg("vector", "a", "b"), leg("bm25", "b", "c", weight=2)])
    assert first.chunk_id == "b" and first.score == pytest.approx(1 / 62 + 2 / 61)
    assert first.ranks == {"vector": 2, "bm25": 1} and first.scores == {"vector": 0.9, "bm25": 1.0, "rrf": first.score}
    assert (second.chunk_id, third.chunk_id) == ("c", "a")
    assert {hit.score_kind for hit in (first, second, third)} == {"rrf"}


def test_equal_texts_are_one_hit_with_all_sources() -> None:
    twins = [make_hit("a", 0.9, "same"), make_hit("b", 0.8, "same"), make_hit("c", 0.7)]
    same, other = fuse([ranked("vector", twins), ranked("bm25", [make_hit("d", 5, "same")])])
    assert same.sources == ("https://d.test/a", "https://d.test/b", "https://d.test/d")
    assert same.chunk_id == "a" and same.ranks == {"vector": 1, "bm25": 1}
    assert other.ranks == {"vector": 2} and other.sources == ("https://d.test/c",)


@pytest.mark.parametrize("weight", [-1.0, float("nan"), float("inf"), float("-inf")])
def test_negative_or_infinite_weight_is_refused(weight: float) -> None:
    with pytest.raises(ValueError, match="vector"):
        Fusion(weights={"vector": weight})


@given(legs, st.integers())
def test_order_of_legs_and_hits_does_not_matter(given_legs: list[RankedList], seed: int) -> None:
    expected, random = fuse(given_legs), Random(seed)
    for permutation in itertools.permutations(given_legs):
        fused = fuse([replace(leg, chunks=random.sample(leg.chunks, len(leg.chunks))) for leg in permutation])
        assert [hit.chunk_id for hit in fused] == [hit.chunk_id for hit in expected]
        assert [hit.ranks for hit in fused] == [hit.ranks for hit in expected]
        assert [hit.score for hit in fused] == pytest.approx([hit.score for hit in expected])


@given(legs, st.sampled_from([0.02, 0.3, 1.0]), st.sampled_from("abcd"))
def test_fusion_equals_the_plain_formula(given_legs: list[RankedList], weight: float, rare: str) -> None:
    """Compare hits, scores, order, ties and equal texts, with a prior and a preference."""

    def weigh(chunk: Hit) -> float:
        return weight if chunk.url.endswith(rare) else 1.0

    def hits_of(one: RankedList) -> list[Hit]:
        return [replace(make_hit(c.chunk_id, score, c.text_hash), url=c.url) for score, c in one.chunks]

    plain = [(one.leg, hits_of(one), one.weight) for one in given_legs]
    for preferred in (no_prior, weigh):
        fused = fusion.fuse(given_legs, k=K, prior=weigh, preferred=preferred)
        assert [whole(text) for text in fused] == fuse_plainly(plain, K, weigh, preferred)


# ---------------------------------------------------------------------------------------------- other kinds

QUESTIONS = ("how?",)
LISTS = (leg("vector", "a", "b", "c"), leg("bm25", "d", "b", weight=2))


def order(fused: Sequence[FusedText]) -> str:
    return "".join(text.chunk_id for text in fused)


def test_relative_scores_are_scaled_per_list_and_added() -> None:
    fused = Fusion(kind="relative_score", pages_first=False).fuse(LISTS, QUESTIONS)
    assert [(text.chunk_id, text.score) for text in fused] == [("d", 2.0), ("a", 1.0), ("b", 0.5), ("c", 0.0)]
    assert whole(fused[0]).score_kind == "relative_score" and whole(fused[0]).scores["relative_score"] == 2.0
    (alone,) = Fusion(kind="relative_score").fuse([leg("vector", "a")], QUESTIONS)
    assert alone.score == 1.0


@pytest.mark.parametrize(("lexical_k", "expected"), [(0, "abcd"), (1, "adbc"), (2, "abdc"), (9, "abcd")])
def test_first_bm25_hits_are_inserted_after_as_many_others(lexical_k: int, expected: str) -> None:
    fused = Fusion(kind="insert", lexical_k=lexical_k, pages_first=False).fuse(LISTS, QUESTIONS)
    assert order(fused) == expected
    assert [text.score for text in fused] == [1.0, 1 / 2, 1 / 3, 1 / 4]
    assert whole(fused[0]).score_kind == "insert"


@given(legs, st.sampled_from(fusion.FUSIONS))
def test_every_kind_of_fusion_returns_each_text_once(given_legs: list[RankedList], kind: str) -> None:
    fused = Fusion(kind=kind).fuse(given_legs, QUESTIONS)
    hashes = [text.chunk.text_hash for text in fused]
    assert len(set(hashes)) == len(hashes)
    assert set(hashes) == {chunk.text_hash for one in given_legs for _, chunk in one.chunks}


def test_unknown_kind_is_refused_with_the_choices() -> None:
    with pytest.raises(ValueError, match="no fusion 'mean'; choose one of rrf, relative_score, insert"):
        Fusion(kind="mean")


# ---------------------------------------------------------------------------------------------- pages


def on_page(page: str, name: str) -> Hit:
    return replace(make_hit(name, 1.0), url=f"https://d.test/{page}")


@pytest.mark.parametrize(
    ("k", "most", "taken"), [(3, 1, "ace"), (5, 1, "ace"), (4, 2, "abce"), (4, None, "abcd"), (4, 0, "abcd")]
)
def test_no_page_exceeds_its_share_of_the_first_k(k: int, most: int | None, taken: str) -> None:
    """The limit is strict: it returns fewer hits rather than more of one page. None and 0 set no limit."""
    found = [on_page(page, name) for page, name in zip("ppqpr", "abcde", strict=True)]
    assert "".join(hit.chunk_id for hit in take_diverse(found, k, most)) == taken


pages = st.lists(st.builds(on_page, st.sampled_from("pqr"), st.text("xyz", min_size=1)))


@given(pages, st.integers(0, 6), st.integers(1, 3))
def test_diversity_keeps_order_and_fills_the_limit(found: list[Hit], k: int, most: int) -> None:
    taken = take_diverse(found, k, most)
    rest = iter(found)
    assert len(taken) <= k and all(any(hit is one for one in rest) for hit in taken)
    urls = [hit.url for hit in taken]
    assert all(urls.count(url) <= most for url in urls)
    available = sum(min(most, sum(hit.url == url for hit in found)) for url in {hit.url for hit in found})
    assert len(taken) == min(k, available)


def test_best_hit_of_every_page_comes_before_a_second_of_any() -> None:
    hits = [replace(make_hit("text", 1.0), url=page, chunk_id=f"{page}{n}") for n, page in enumerate("aabacb")]
    assert [hit.chunk_id for hit in spread_pages(hits)] == ["a0", "b2", "c4", "a1", "b5", "a3"]
    assert spread_pages([]) == []
