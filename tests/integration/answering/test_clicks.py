"""Clicks of readers in the database: only on shown sources, once each, as long as the question is stored."""

from datetime import UTC, datetime, timedelta

import pytest
from kit.recorded import recorded

from pipelines.evaluation.questions.making import rated_questions
from pipelines.insights.insights import gather_insights
from pipelines.store import Store

NOW = datetime.now(UTC)
A, B, C = "https://d.test/a#x", "https://d.test/a#y", "https://d.test/b"


@pytest.fixture
def asked(store: Store) -> Store:
    """Three questions by Ann: one today, one that failed, one 100 days old."""
    store.record_questions(
        [
            recorded("new", "how to scale", "docs", cited=[A], found=[A, B], key_name="ann", asked_at=NOW),
            recorded("failed", "how", "docs", error="no model", key_name="ann", asked_at=NOW),
            recorded("old", "how to stop", "docs", cited=[C], key_name="ann", asked_at=NOW - timedelta(days=100)),
        ]
    )
    return store


def clicks(store: Store) -> dict[str, int]:
    found: dict[str, int] = {}
    for one in store.opened_sources("docs"):
        found[one.source] = found.get(one.source, 0) + one.clicks
    return found


def test_shown_source_counts_one_click(asked: Store) -> None:
    assert [asked.record_click("new", source, "ann") for source in (A, A, B, B)] == [True, False, True, False]
    assert clicks(asked) == {A: 1, B: 1}


@pytest.mark.parametrize(
    ("id", "source", "key"),
    [
        ("new", C, "ann"), ("new", "https://evil.example/", "ann"), ("new", "%", "ann"), ("new", '"', "ann"),
        ("new", "", "ann"),
        ("none", A, "ann"), ("failed", A, "ann"), ("new", A, "bob"), ("new", A, ""), ("new", A, None),
    ],
)  # fmt: skip
def test_click_on_an_unshown_source_or_foreign_answer_changes_nothing(asked: Store, id, source, key) -> None:
    assert not asked.record_click(id, source, key)
    assert clicks(asked) == {}


def test_shared_answer_counts_clicks_from_everybody(asked: Store) -> None:
    assert asked.share_answer("new", "ann")
    assert asked.record_click("new", A, "bob")


def test_clicks_are_deleted_with_their_questions_and_searches_by_age(asked: Store) -> None:
    assert asked.record_click("old", C, "ann")
    assert asked.record_search_click("s1", A, "docs", "scaling")
    assert asked.forget_questions(90) == 1
    assert clicks(asked) == {A: 1}
    asked.forget_questions(0)
    assert clicks(asked) == {}


def test_insights_count_opened_pages_and_sections(asked: Store) -> None:
    for source in (A, B):
        asked.record_click("new", source, "ann")
    asked.record_search_click("s1", A, "docs", "scaling")
    view = gather_insights(asked, lambda name: None, collection=None).view("docs")
    (page,) = view["opened"]["pages"]
    assert (view["opened"]["clicks"], page["url"], page["clicks"]) == (3, "https://d.test/a", 3)
    assert page["sections"] == [{"source": A, "clicks": 2}, {"source": B, "clicks": 1}]
    later = gather_insights(asked, lambda name: None).view("docs", NOW + timedelta(days=2))
    assert later["opened"] == {"clicks": 0, "pages": []}


def test_opened_sources_become_labels_ranked_below_rated_ones(asked: Store) -> None:
    asked.record_click("new", B, "ann")
    asked.record_search_click("s1", C, "docs", "stop  a job")
    asked.record_search_click("s2", A, "docs", "Stop a job")
    asked.record_search_click("s3", A, "other", "elsewhere")
    draft = rated_questions(asked, "docs")
    assert [(one.question, one.sources) for one in draft.examples] == [("how to scale", (B,)), ("Stop a job", (C, A))]
    assert draft.counts["opened"] == 2
    asked.record_feedback("new", -1, key_name="ann")
    assert [one.question for one in rated_questions(asked, "docs").examples] == ["Stop a job"], "it helped nobody"
    asked.record_feedback("new", 1, key_name="ann")
    rated = rated_questions(asked, "docs").examples
    assert [one.sources for one in rated] == [(A,), (C, A)], "the rating decides"
