"""A comparison finds both of its sides."""

import pytest
from kit.answering import make_hit

from pipelines.answering.retrieval.ranking.comparisons import best_of_side, compared, with_sides

MERGE = make_hit("https://d.test/merge", "Merge joins two histories.")
REBASE = make_hit("https://d.test/rebase", "Rebase moves commits to another base.")
OTHERS = [make_hit(f"https://d.test/{n}", "The difference between merge and others.") for n in range(4)]


@pytest.mark.parametrize(("question", "sides"), [
    ("What is the difference between merge and rebase?", ("merge", "rebase")),
    ("merge vs. rebase", ("merge", "rebase")),
    ("how do listen and notify differ", ("listen", "notify")),
    ("How does a lock differ from a semaphore?", ("a lock", "a semaphore")),
    ("gather or wait, which one and why?", ("gather", "wait")),
    ("When do I need CLUSTER and when REINDEX?", ("CLUSTER", "REINDEX")),
    ("What is a cache, and how does it differ from a buffer?", ()),
    ("does sync run by itself or do I have to call it?", ()),
    ("How do I merge two branches?", ()),
])  # fmt: skip
def test_only_a_comparison_has_sides(question: str, sides: tuple[str, ...]) -> None:
    assert compared(question) == sides


def test_best_fitting_text_of_a_side_is_chosen_among_texts_with_its_words() -> None:
    chunks = {hit.chunk_id: hit for hit in (*OTHERS, REBASE)}
    found = [(name, 9.0 - n) for n, name in enumerate(["gone", *chunks])]
    (best,) = best_of_side("rebase commits", found, chunks)
    assert best.chunk.source == REBASE.source and best.ranks == {"bm25": 6}
    assert best_of_side("rebase", [], {}) == []


def test_sides_follow_the_first_hit_with_its_score_and_without_duplicates() -> None:
    hits = [MERGE, *OTHERS, REBASE]
    placed = with_sides(hits, [MERGE, REBASE], 4)
    assert [hit.source for hit in placed] == [hit.source for hit in (MERGE, REBASE, *OTHERS[:2])]
    assert placed[1].score == MERGE.score and placed[1].sources == (REBASE.source,)
    assert [hit.source for hit in with_sides(hits, [OTHERS[1]], 9)] == [hit.source for hit in hits]
    assert with_sides([], [REBASE], 4) == []
