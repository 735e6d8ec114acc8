"""Insights: figures equal hand-computed ones, clusters, gaps, pages, and the allowed content of a report."""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kit.answering import WordEmbedder
from kit.xss import PAYLOADS

from pipelines.answering.retrieval.evidence import Yardstick
from pipelines.insights import clustering
from pipelines.insights.clustering import Wording, cluster, most_typical, place
from pipelines.insights.figures import Quantiles, count, count_by, count_by_day
from pipelines.insights.gaps import Trouble, describe_gap, is_elsewhere, nearest_source
from pipelines.insights.groups import Meanings, wording_of
from pipelines.insights.insights import Period, gather_insights
from pipelines.insights.pages import use_of_areas, use_of_pages
from pipelines.insights.report import as_html, live_page, write_report
from pipelines.insights.vectors import RememberingEmbedder, VectorMemory
from pipelines.records import EmbeddingModel
from pipelines.store import AskedQuestion, NoSuchCollection, OpenedSource

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
CSV, ACTORS = "https://d.test/data/csv.html#read", "https://d.test/core/actors.html#create"
TITLES = {"https://d.test/data/csv.html": "CSV", "https://d.test/core/actors.html": "Actors"}


def asked(question: str = "How?", days_ago: float = 0, **more: object) -> AskedQuestion:
    at = NOW - timedelta(days=days_ago)
    row = AskedQuestion(question, at, "docs", confidence="high", agent="llm", channel="page")
    return replace(row, **more)  # type: ignore[arg-type]


class Words(WordEmbedder):
    """Records the texts that it embeds."""

    def __init__(self) -> None:
        super().__init__(200)
        self.embedded: list[str] = []

    def embed_chunks(self, texts: Sequence[str]) -> np.ndarray:
        self.embedded += texts
        return super().embed_chunks(texts) if texts else np.zeros((0, self.dimension), np.float32)


# ---------------------------------------------------------------------------------------------- figures

ROWS = [
    asked(seconds=1.0, first_word=0.2, cost=0.01, prompt_tokens=100, completion_tokens=10, ups=1),
    asked(seconds=3.0, first_word=0.4, cost=0.03, prompt_tokens=300, completion_tokens=30, downs=2, ups=1),
    asked(days_ago=2, known=False, confidence="low", seconds=2.0, agent="extractive", channel="slack"),
    asked(days_ago=2, confidence="low", agent="extractive", seconds=None),
    asked(days_ago=3, known=False, failed=True, confidence="", agent="", seconds=9.0),
]


def test_figures_equal_hand_computed_ones() -> None:
    found = count(ROWS)
    assert (found.questions, found.unknown, found.low, found.failed, found.up, found.down) == (5, 1, 1, 1, 1, 1)
    assert (found.cost, found.prompt_tokens, found.completion_tokens) == (0.04, 400, 40)
    assert found.seconds == Quantiles(2.0, 2.9)  # of 1, 2, 3: the failed question does not count
    assert found.first_word == Quantiles(0.3, 0.39)
    assert count([]).seconds == Quantiles(None, None)


def test_figures_by_name_and_by_day_add_up() -> None:
    assert {name: each.questions for name, each in count_by(ROWS, lambda row: row.agent).items()} == {
        "extractive": 2, "llm": 2, "": 1,
    }  # fmt: skip
    assert {day: each.questions for day, each in count_by_day(ROWS).items()} == {
        "2026-01-28": 1, "2026-01-29": 2, "2026-01-30": 0, "2026-01-31": 2,
    }  # fmt: skip
    weeks = count_by_day([asked(), asked(days_ago=364)])
    assert [*weeks][::52] == ["2025-01-27", "2026-01-26"] and sum(each.questions for each in weeks.values()) == 2


# ---------------------------------------------------------------------------------------------- clusters


def test_wordings_with_one_meaning_form_one_cluster() -> None:
    texts = ["read a csv file", "csv file, read it", "kill an actor", "how to kill the actor"]
    wordings = [Wording(text, (source,)) for text, source in zip(texts, [CSV, CSV, ACTORS, ACTORS], strict=True)]
    assert cluster(place(Words().embed_chunks(texts), wordings)).tolist() == [0, 0, 1, 1]


def test_clustering_works_without_vectors_if_the_model_is_gone() -> None:
    wordings = [Wording("import csv", (CSV,)), Wording("load csv", (CSV,)), Wording("kill it", (ACTORS,))]
    assert cluster(place(np.zeros((3, 1), np.float32), wordings)).tolist() == [0, 0, 1]


def test_model_similarity_of_unrelated_texts_is_subtracted() -> None:
    """A model whose cosines are all high must not put everything into one cluster."""
    generator = np.random.default_rng(0)
    vectors = np.hstack([np.full((40, 1), 3.0), generator.normal(size=(40, 400)) / 20])
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    wordings = [Wording(f"word{n} term{n}", (), known=False) for n in range(40)]
    level = float((vectors @ vectors.T)[~np.eye(40, dtype=bool)].mean())
    assert level > 0.8
    assert len({*cluster(place(vectors, wordings)).tolist()}) < 5
    assert len({*cluster(place(vectors, wordings, Yardstick(1.0, level))).tolist()}) == 40


def test_many_questions_are_clustered_equally_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"topic{n % 7} word{n % 7} matter{n % 7}" for n in range(70)]
    points = place(Words().embed_chunks(texts), [Wording(text) for text in texts])
    whole = cluster(points)
    monkeypatch.setattr(clustering, "BLOCK", 16)
    monkeypatch.setattr(clustering, "SLICE", 5)
    assert cluster(points).tolist() == whole.tolist() == [n % 7 for n in range(70)]
    assert cluster(points[:0]).tolist() == [] and cluster(points[:1]).tolist() == [0]


def test_typical_question_is_the_one_most_similar_to_the_others() -> None:
    texts = ["read csv", "read csv file", "read csv file from disk slowly"]
    points = place(Words().embed_chunks(texts), [Wording(text) for text in texts])
    assert most_typical(points, [1, 1, 1]) == 1
    assert most_typical(points, [1, 1, 50]) == 2


def test_groups_count_wordings_and_exclude_small_talk() -> None:
    rows = [asked("How do I read CSV?", found=(CSV,)), asked("how do i read csv", found=(CSV,))]
    rows.append(asked("Hello", agent="smalltalk"))
    embedder = Words()
    (group,) = Meanings.of(rows, embedder).groups(rows)
    assert group == rows[:2]
    assert [text for text in embedder.embedded if "csv" in text.casefold()] == ["How do I read CSV?"]
    assert wording_of("  How  do I? ") == "how do i" and wording_of("?") == "?"


def test_wordings_beyond_the_limit_form_single_groups_and_are_counted() -> None:
    rows = [asked("often"), asked("often"), asked("lacking", known=False), asked("rare one"), asked("rare two")]
    meanings = Meanings.of(rows, Words(), most=2)
    assert meanings.left_out == 2 and {*meanings.places} == {"often", "lacking"}
    assert [len(group) for group in meanings.groups(rows)] == [2, 1, 1, 1]


# ---------------------------------------------------------------------------------------------- gaps and pages


@pytest.mark.parametrize(
    ("row", "trouble"),
    [
        (asked(), None),
        (asked(known=False), Trouble(1.0, "missing")),
        (asked(known=False, downs=1, reasons=("incomplete",)), Trouble(2.0, "missing")),
        (asked(downs=1), Trouble(1.0, "disliked")),
        (asked(downs=1, reasons=("outdated",)), Trouble(2.0, "disliked")),
        (asked(confidence="low"), Trouble(0.4, "thin")),
        (asked(confidence="low", ups=1), None),
        (asked(downs=1, ups=1), None),
        (asked(known=False, failed=True, confidence=""), None),
    ],
)
def test_gap_weighs_as_much_as_its_answers_were_bad(row: AskedQuestion, trouble: Trouble | None) -> None:
    assert Trouble.of([row, asked()]) == trouble


def test_gap_shows_how_many_of_its_answers_were_bad() -> None:
    gap = {"count": 93, "unknown": 3, "low": 6, "down": 0}
    assert describe_gap(gap, "csv") == "csv: asked 93×: 3 not known, 6 of low confidence"
    assert describe_gap({"count": 1, "unknown": 0, "low": 0, "down": 1}) == "asked 1×: 1 rated down"


def test_nearest_section_is_the_most_frequent_first_hit() -> None:
    assert nearest_source([asked(found=(CSV, ACTORS)), asked(found=(ACTORS, CSV)), asked(found=(ACTORS,))]) == ACTORS
    assert nearest_source([asked()]) == ""


def test_question_is_off_topic_if_nothing_near_was_found() -> None:
    yardstick = Yardstick(0.7, 0.1)
    far = asked("How do I boil an egg?", known=False, cosines=(0.2, 0.1), passages=("Ray clusters scale.",))
    assert is_elsewhere(far, yardstick)
    assert not is_elsewhere(replace(far, cosines=(0.2, 0.5)), yardstick)
    assert not is_elsewhere(replace(far, passages=("boil the egg",)), yardstick)
    assert not is_elsewhere(replace(far, known=True), yardstick)


def test_page_counts_once_per_answer() -> None:
    titles = {**TITLES, "https://d.test/x.html": "X"}
    rows = [asked(cited=(CSV, CSV + "2"), found=(CSV, ACTORS)), asked(cited=(ACTORS,), known=False)]
    rows.append(asked(cited=(CSV, "https://gone.test/a#b"), found=(CSV,)))
    uses = use_of_pages(rows, titles)
    assert [(use.title, use.cited, use.found, use.indexed) for use in uses] == [
        ("CSV", 2, 2, True), ("https://gone.test/a", 1, 0, False), ("Actors", 0, 1, True), ("X", 0, 0, True),
    ]  # fmt: skip
    areas = [(area.name, area.pages, area.cited_pages, area.cited) for area in use_of_areas(uses)]
    assert areas == [("(top)", 1, 0, 0), ("core/", 1, 0, 0), ("data/", 1, 1, 2)]
    assert use_of_areas([]) == []
    both = use_of_pages([], {"file:///srv/docs/a.html": "A", "https://d.test/b.html": "B"})
    assert [area.name for area in use_of_areas(both)] == ["d.test/", "srv/"]


# ---------------------------------------------------------------------------------------------- reports


class Rows:
    """A store with one collection of two pages and the given rows, newest first."""

    def __init__(self, rows: Sequence[AskedQuestion]) -> None:
        self.rows = rows

    def _chosen(self, collection: str | None, since: datetime | None, until: datetime | None) -> list[AskedQuestion]:
        return [
            row for row in self.rows
            if collection in (None, row.collection)
            and (not since or row.asked_at >= since) and (not until or row.asked_at < until)
        ]  # fmt: skip

    def count_asked(self, *chosen: Any) -> int:
        return len(self._chosen(*chosen))

    @contextmanager
    def asked(self, collection: Any, since: Any, until: Any, most: Any) -> Iterator[Iterator[AskedQuestion]]:
        yield iter(self._chosen(collection, since, until)[:most])

    def opened_sources(self, *chosen: Any) -> list[OpenedSource]:
        return []

    def collections(self) -> list[dict[str, object]]:
        return [{"name": "docs", "index": 1}, {"name": "empty", "index": None}]

    def indexed_pages(self, index: int) -> dict[str, str]:
        return TITLES

    def indexed_sections(self, index: int, sources: Sequence[str]) -> dict[str, str]:
        return {source: "Data › CSV" for source in sources if source == CSV}


ASKED = [
    asked("How do I read Excel files?", 1, known=False, found=(CSV,), cosines=(0.9,), comments=("ask bob@x.test",)),
    asked("read excel files", 2, known=False, found=(CSV,), cosines=(0.9,)),
    asked("How do I kill an actor?", 40, found=(ACTORS,), cited=(ACTORS,), ups=1),
]


def test_view_shows_gaps_in_the_documentation() -> None:
    view = gather_insights(Rows(ASKED), lambda _: Words()).view()
    (gap,) = view["gaps"]
    assert (gap["question"], gap["count"], gap["unknown"], gap["weight"], gap["kind"]) == (
        "How do I read Excel files?", 2, 2, 2.0, "missing",
    )  # fmt: skip
    assert gap["nearest"] == {"source": CSV, "title": "Data › CSV"} and gap["examples"] == ["read excel files"]
    assert gap["comments"] == ["ask [e-mail]"]
    assert view["pages"]["cited"] == 1 and [page["title"] for page in view["pages"]["never"]] == ["CSV"]
    assert view["totals"]["questions"] == 3 and [top["count"] for top in view["top"]] == [2, 1]
    assert view["notes"] == []


def test_period_without_questions_has_a_view_too() -> None:
    view = gather_insights(Rows(ASKED), lambda _: Words(), Period(NOW + timedelta(days=1))).view()
    assert view["totals"]["questions"] == 0 and view["days"] == {} and view["gaps"] == []
    with pytest.raises(NoSuchCollection):
        gather_insights(Rows([]), lambda _: Words(), collection="wrong")
    assert gather_insights(Rows([]), lambda _: Words(), collection="empty").view()["top"] == []


def test_report_has_views_of_collections_and_periods() -> None:
    rows = [*ASKED, asked("How?", 3, collection="dropped")]
    insights = gather_insights(Rows(rows), lambda _: Words(), Period(None, NOW))
    views = {(view["collection"], view["window"]): view["totals"]["questions"] for view in insights.views()}
    assert views == {
        ("", 0): 4, ("", 30): 3, ("", 7): 3, ("docs", 0): 3, ("docs", 30): 2, ("docs", 7): 2, ("dropped", 0): 1,
        ("dropped", 30): 1, ("dropped", 7): 1,
    }  # fmt: skip


def test_report_is_written_as_html_and_json(tmp_path: Path) -> None:
    insights = gather_insights(Rows(ASKED), lambda _: Words())
    out = tmp_path / "out"
    assert write_report(out, insights) == [out / "insights.html", out / "insights.json"]
    assert write_report(tmp_path / "one.html", insights) == [tmp_path / "one.html"]
    assert json.loads((out / "insights.json").read_text())["totals"]["questions"] == 3


def test_report_text_is_escaped_and_no_foreign_script_runs() -> None:
    rows = [
        asked(payload, known=False, comments=(payload,), downs=1, answer=payload, found=(payload,), cited=(payload,),
              agent=payload, channel=payload, collection=payload, reasons=(payload,))
        for _, payload in PAYLOADS
    ]  # fmt: skip
    plain, page = (as_html(gather_insights(Rows(found), lambda _: Words())) for found in (ASKED, rows))
    data = re.compile(r'(<script type="application/json" id="data">)(.*?)(</script>)', re.DOTALL)
    assert data.sub(r"\1\3", page) == data.sub(r"\1\3", plain)
    assert not re.search("[<>&\u2028\u2029]", data.search(page)[2])  # type: ignore[index]
    policy = re.search('Policy" content="([^"]*)"', page)[1]  # type: ignore[index]
    assert "unsafe" not in policy and "default-src 'none'" in policy and "connect-src" not in policy
    assert "connect-src 'self'" in live_page().policy and "unsafe" not in live_page().policy


def test_vector_is_computed_once_and_the_cache_is_limited() -> None:
    words, memory = Words(), VectorMemory(most=2)
    embedder = RememberingEmbedder(EmbeddingModel("m"), words.embed_chunks, memory)
    first = embedder.embed_chunks(["a", "b"])
    assert np.array_equal(embedder.embed_chunks(["b", "a"]), first[::-1]) and words.embedded == ["a", "b"]
    embedder.embed_chunks(["c", "c"])
    embedder.embed_chunks(["a"])
    assert words.embedded == ["a", "b", "c"]
    embedder.embed_chunks(["b"])
    assert words.embedded == ["a", "b", "c", "b"]
