"""Insights of a real database: read without names, masked, equal to hand counts, printed and written."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from kit.recorded import hit_at, recorded
from kit.reindexing import Jobs
from kit.workshop import Workshop, small_site

from pipelines.embedding import load_embedder
from pipelines.insights.insights import Period, gather_insights
from pipelines.records import Hit, Usage
from pipelines.store import RecordedQuestion, Store

NOW = datetime.now(UTC).replace(microsecond=0)
NAMES = ("site-key-of-jane", "session-4711", "conversation-0815", "question-id-1")


def hit(source: str, cosine: float | None = 0.8) -> Hit:
    return hit_at(source, text="The beginning.", scores={} if cosine is None else {"vector": cosine})


@pytest.fixture
def asked(store: Store) -> dict[str, str]:
    """Record seven questions, one of them to another collection.

    The others go to a collection of three pages. A source is given by its page's number.
    """
    shop = Workshop(store, "docs")
    shop.reindex(small_site(3))
    index = shop.live()
    hits = shop.search("section", 9)
    source = {page.url: page.source for page in reversed(hits)}
    first, second, third = sorted(source.values())

    def row(id: str, question: str, days: float, **more: Any) -> RecordedQuestion:
        base = {"collection": "docs", "asked_at": NOW - timedelta(days=days), "agent": "llm", "channel": "page"}
        known = {"confidence": "high", "index": index.id, "timings": {"total": 1.0, "first_delta": 0.5}}
        return recorded(id, question, **{**base, **known, "key_name": f"{NAMES[0]}/{NAMES[1]}", **more})

    store.record_questions(
        [
            row("question-id-1", "How do I read Excel?", 1, known=False, found=[hit(first)], conversation=NAMES[2]),
            row("b", "how do I read excel", 2, known=False, found=[hit(first), hit(second)]),
            row("c", "mail jane@example.com how to stop?", 3, cited=[second], found=[hit(second)],
                usage=Usage(cost=0.5)),
            row("d", "and there?", 4, standalone="How do I stop a worker?", cited=[second, "x"]),
            row("e", "What is it?", 5, collection="", confidence="low", found=[hit(third, None)]),
            row("f", "It fails", 40, error="away"),
            row("g", "Another?", 1, collection="gone", index=0),
        ]
    )  # fmt: skip
    store.record_feedback("c", -1, "call +49 170 1234567", NAMES[0], ["outdated", "wrong"])
    store.record_feedback("c", -1, "", "another")
    store.record_feedback("d", 1, "fine", NAMES[0])
    return {"first": first, "second": second}


def test_insights_of_a_database_equal_hand_counts(store: Store, asked: dict[str, str]) -> None:
    embedder = load_embedder("hash:64")
    found = gather_insights(store, lambda _: embedder)
    view = found.view()
    totals = view["totals"]
    counted = {"questions": 7, "unknown": 2, "low": 1, "failed": 1, "up": 1, "down": 1, "cost": 0.5}
    assert {name: totals[name] for name in counted} == counted
    assert totals["seconds"] == {"p50": 1.0, "p95": 1.0} and totals["first_word"]["p50"] == 0.5
    assert {name: each["questions"] for name, each in view["collections"].items()} == {"docs": 6, "gone": 1}
    gaps = {gap["question"]: gap for gap in view["gaps"]}
    excel = gaps["How do I read Excel?"]
    assert (excel["count"], excel["wordings"], excel["weight"]) == (2, 1, 2.0)
    assert excel["nearest"]["source"] == asked["first"] and excel["nearest"]["title"]
    assert gaps["mail [e-mail] how to stop?"]["weight"] == 2.0 and gaps["What is it?"]["weight"] == 0.4
    assert "How do I stop a worker?" in [top["question"] for top in view["top"]]
    (rated,) = view["rated"]
    assert rated["comments"] == ["call [phone]"] and view["reasons"] == {"outdated": 1, "wrong": 1}
    pages = view["pages"]
    assert (pages["indexed"], pages["cited"], pages["never_count"]) == (3, 1, 2)
    assert pages["most"][0]["url"] == asked["second"].partition("#")[0] and pages["most"][0]["cited"] == 2
    text = json.dumps(found.views())
    assert not [name for name in NAMES if name in text]


def test_period_and_collection_filter_the_questions(store: Store, asked: dict[str, str]) -> None:
    embedder = load_embedder("hash:64")

    def questions(period: Period, collection: str | None = None) -> int:
        return int(gather_insights(store, lambda _: embedder, period, collection).view()["totals"]["questions"])

    assert questions(Period(NOW - timedelta(days=2.5))) == 3
    assert questions(Period(NOW - timedelta(days=2.5)), "docs") == 2
    assert questions(Period(None, NOW - timedelta(days=3.5)), "docs") == 3
    assert questions(Period(), "gone") == 1
    with store.asked(None, None, None, 2) as rows:
        assert [row.collection for row in rows] == ["docs", "gone"]


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RAYDEX_HOME", str(tmp_path))


def test_command_prints_a_summary_and_writes_a_report(jobs: Jobs, asked: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "report.v1").mkdir()  # a folder with a file's suffix
    out = jobs.text("insights", "--out", tmp_path / "report.v1")
    assert out.startswith("7 questions from ") and "How do I read Excel?: asked 2×: 2 not known" in out
    assert f"nearest: {asked['first']}" in out and "\ntook " in out
    assert json.loads((tmp_path / "report.v1" / "insights.json").read_text())["totals"]["questions"] == 7
    assert "How do I read Excel?" in (tmp_path / "report.v1" / "insights.html").read_text()
    of_docs = jobs.run("insights", "docs", "--days", 2.5)
    assert of_docs.summary["totals"] == jobs.run("insights", "--collection", "docs", "--days", 2.5).summary["totals"]
    assert of_docs.code == 0 and of_docs.summary["totals"]["questions"] == 2
    out = jobs.text("insights", "--since", "2100-01-01", "--out", tmp_path / "none.html")
    assert out.startswith("no question was recorded in this time") and f"report: {tmp_path / 'none.html'}" in out


def test_command_explains_wrong_flags(jobs: Jobs, asked: dict[str, str], tmp_path: Path) -> None:
    for words, message in [
        (("--collection", "wrong"), "there is no collection 'wrong'; there are: docs"),
        (("--days", "3", "--since", "2026-01-01"), "days and since both set the beginning"),
        (("--since", "2026-02-01", "--until", "2026-01-01"), "is not before until"),
        (("--days", "-1"), "--days is -1.0: it must be 0.01 to 36500"),
        (("--out", tmp_path / "report.pdf"), "name a folder, or a file that ends with .html or .json"),
        (("--out", Path(__file__, "report")), "can't be made a folder: Not a directory"),
    ]:
        refused = jobs.run("insights", *words)
        assert refused.code == 2 and message in refused.messages
    assert not (tmp_path / "report.pdf").exists()
