"""The expected duration of a run comes from constants or from earlier runs."""

import pytest

from pipelines.indexing.building.estimate import EMBED_S, Costs, actors_for, costs_of, estimate


def run(index: int = 1, embedded: int = 400, encoder: float = 20.0, state: str = "done", **pages: int) -> dict:
    return {
        "state": state,
        "counts": {
            "index": index,
            "pages": {"seen": 0, "indexed": 100} | pages,
            "chunks": {"embedded": embedded, "total": 500},
            "seconds": {"encoder": encoder, "crawl_and_embed": 50.0},
        },
    }


def test_first_run_with_the_default_model_uses_constants():
    costs = costs_of([], None, usual=True)
    assert (costs.embed_s, costs.measured) == (EMBED_S, False)
    expected = estimate([], 10, 16_500, 0, costs)
    assert (expected.texts, expected.bottleneck) == (10, "embedding")
    assert "a guess" in str(expected)


def test_cost_of_an_unknown_model_is_unknown_before_a_run():
    costs = costs_of([run(index=7)], 8, usual=False)
    expected = estimate([], 10, 16_500, 2, costs)
    assert expected.seconds is expected.embed_s is None
    assert "not known until a run has embedded some" in str(expected)
    assert actors_for(10, 16_500, costs, 60) is None


def test_earlier_run_gives_texts_per_page_and_seconds_per_text():
    costs = costs_of([run(state="failed", encoder=900.0), run(), run(encoder=1.0)], 1, usual=False)
    assert (costs.texts_per_page, costs.embed_s, costs.measured) == (5.0, 0.05, True)
    expected = estimate([], 1_000, 0, 4, costs)
    assert expected.texts == 5_000
    assert expected.embed_s == pytest.approx(5_000 * 0.05 / 4, rel=0.5)
    assert actors_for(1_000, 0, costs, 50) == 5


def test_short_runs_tell_only_the_speed_of_the_site():
    costs = costs_of([run(embedded=40, seen=100)], 1, usual=True)
    assert (costs.embed_s, costs.measured, costs.fetch_s) == (EMBED_S, False, 0.5)
    assert estimate([100, 2_000], 10, 16_500, 0, costs).bottleneck == "fetching"


def test_few_texts_of_another_model_improve_the_estimate():
    costs = costs_of(
        [run(embedded=0, encoder=0.0), run(embedded=10, encoder=1.0), run(embedded=40, encoder=2.0)], 1, usual=False
    )
    assert (costs.embed_s, costs.measured) == (0.05, True)
    assert "not known" not in str(estimate([100], 10, 16_500, 0, costs))


def test_hosts_are_crawled_concurrently_while_texts_are_embedded():
    expected = estimate([300, 400], 0, 0, 1, Costs(texts_per_page=1.0, fetch_s=1.0))
    assert expected.fetch_s == 400
    assert expected.seconds == pytest.approx(400, rel=0.05)


def test_at_least_one_actor_is_requested():
    assert actors_for(0, 0, Costs(), 600) == 1
