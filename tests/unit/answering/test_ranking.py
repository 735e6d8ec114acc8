"""Ranking hits by their texts: the meaning of each feature, priors, and the spread over pages."""

from dataclasses import replace

import numpy as np
from kit.answering import make_hit

from pipelines.answering.retrieval.ranking.texts import LEARNED, NAMES, features, rank, with_odds
from pipelines.records import Hit

QUESTION = "How do I limit the memory of a worker?"
LONG = "and so on for many more words that say nothing of it " * 8


def hit(page: str, text: str, score: float = 0.03, ordinal: int = 1, cosine: float | None = 0.5) -> Hit:
    scores = {} if cosine is None else {"vector": cosine}
    url = f"https://d.test/{page}"
    made = make_hit(url, text)
    return replace(made, chunk_id=f"{page}{ordinal}{text[:9]}", url=url, score=score, scores=scores, ordinal=ordinal)


SIMPLE = {
    "fused": [1.0, 0.5, 0.5], "beginning": [1.0, 0.0, 0.0], "page": [1.0, 1.0, 1.0], "short": [0.0, 0.0, 1.0],
    "first": [1.0, 0.0, 0.0],
}  # fmt: skip


def test_each_feature_measures_its_name() -> None:
    good = hit("a", f"Limit the memory of a worker in its settings {LONG}", 0.03, ordinal=0, cosine=0.7)
    late = hit("b", f"{LONG} limit the memory of a worker", 0.015, cosine=0.5)
    short = hit("b", "Nothing of it.", 0.015, cosine=None)
    found = dict(zip(NAMES, features(QUESTION, [good, late, short]).T, strict=True))
    *words, fewest = found.pop("words")
    assert words == [1.0, 1.0] and fewest < 0.1
    assert np.allclose(found.pop("cosine"), [0.0, -0.2, -0.22])
    assert {name: list(values) for name, values in found.items() if name in SIMPLE} == SIMPLE


def test_text_with_the_words_of_the_question_comes_first() -> None:
    first = hit("a", f"Workers are described elsewhere {LONG}", 0.03)
    second = hit("b", f"The memory of a worker is limited by a setting {LONG}", 0.029)
    ranked = rank(QUESTION, [first, second], [1.0, 1.0], 2)
    assert [one.url for one, _ in ranked] == [second.url, first.url]
    (best, odds), (_, less) = ranked
    assert odds > less and with_odds(best, odds).scores == {**second.scores, LEARNED: odds}


def test_prior_moves_a_hit_and_a_prior_of_1_does_not() -> None:
    hits = [hit("a", f"limit the memory of a worker {LONG}"), hit("b", f"limit the memory of a worker, too {LONG}")]
    assert [one.url for one, _ in rank(QUESTION, hits, [1.0, 1.0], 2)] == [hits[0].url, hits[1].url]
    assert [one.url for one, _ in rank(QUESTION, hits, [0.02, 1.0], 2)] == [hits[1].url, hits[0].url]


def test_second_hit_of_a_page_is_demoted_but_stays_above_much_worse_ones() -> None:
    best, other = (hit("a", f"limit the memory of a worker {LONG} {n}", ordinal=n) for n in (1, 2))
    near = hit("b", f"limit the memory of a worker {LONG}", 0.029, cosine=0.49)
    far = hit("c", f"nothing of it {LONG}", 0.01, cosine=0.1)
    hits = [best, other, near, far]
    assert [one.url[-1] for one, _ in rank(QUESTION, hits, [1.0] * 4, 4)] == ["a", "b", "a", "c"]
    assert [one.url[-1] for one, _ in rank(QUESTION, hits, [1.0] * 4, 4, spread=False)] == ["a", "a", "b", "c"]


def test_a_further_section_of_a_page_comes_before_a_clearly_worse_page() -> None:
    best, other = (hit("a", f"limit the memory of a worker {LONG} {n}", ordinal=n) for n in (1, 2))
    worse = hit("b", f"limit the memory of a worker {LONG}", cosine=0.33)
    assert [one.url[-1] for one, _ in rank(QUESTION, [best, worse, other], [1.0] * 3, 3)] == ["a", "a", "b"]


def test_hits_without_vectors_words_or_texts_are_ranked_too() -> None:
    bare = [hit("a", "", cosine=None), hit("b", "一段文字", cosine=None)]
    assert len(rank("这是什么？", bare, [1.0, 1.0], 5)) == 2
    assert rank(QUESTION, [], [], 5) == []
