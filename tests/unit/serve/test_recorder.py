"""Answers are recorded in the background: no request waits for it, and none fails because of it."""

import contextlib
import logging
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from kit.api import wait_for

from pipelines.records import VERIFIED, Answer, Citation, Claims, Exchange, Hit, Usage
from pipelines.store import RecordedQuestion, StoreUnavailable
from serve.recorder import MOST_ERROR_CHARACTERS, SNIPPET_CHARACTERS, Recorder, abridged, as_kept


def record(recorder: Recorder, *ids: object) -> None:
    for id in ids:
        recorder.record(answered(str(id)))


def answered(id: str, **more: Any) -> RecordedQuestion:
    answer = make_answer(id)
    return RecordedQuestion(id, answer.question, answer, **more)


def hit(n: int, sources: tuple[str, ...] = ()) -> Hit:
    ranks, scores = {"bm25": 1}, {"bm25": 7.0}
    url = f"https://d.test/{n}"
    return Hit(f"c{n}", url, ("a",), "Title", ("H",), "word " * 200, "h", 0.5, "rrf", ranks, scores, sources)


def make_answer(id: str, **more: Any) -> Answer:
    values: dict[str, Any] = {
        "question": f"question {id}", "text": "Yes [1].", "agent": "extractive", "citations": (), "hits": (),
        "degraded": (), "timings": {"retrieve": 0.1}, "index": 3, "revision": 4, "id": id,
    }  # fmt: skip
    return Answer(**{**values, **more})


class Ledger:
    """A store that records its input, is unreachable as often as told, and refuses questions that contain "bad"."""

    def __init__(self, away: int = 0) -> None:
        self.rows: list[RecordedQuestion] = []
        self.batches, self.forgotten, self.away = 0, [], away  # type: ignore[var-annotated]
        self.open = threading.Event()
        self.open.set()

    def record_questions(self, rows: Sequence[RecordedQuestion]) -> None:
        assert self.open.wait(60)
        self.batches += 1
        if self.away > 0:
            self.away -= 1
            raise StoreUnavailable("gone")
        if any("bad" in row.question for row in rows):
            raise ValueError("refused")
        self.rows.extend(rows)

    def forget_questions(self, days: float) -> int:
        self.forgotten.append(days)
        return 2

    @property
    def ids(self) -> list[str]:
        return [row.id for row in self.rows]


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()


def test_every_record_is_written_before_closing(ledger: Ledger) -> None:
    recorder = Recorder(ledger)
    for n in range(250):
        recorder.record(answered(str(n), collection="docs", conversation="x", mode="compact", key_name="ci"))
    recorder.close()
    assert ledger.ids == [str(n) for n in range(250)] and recorder.dropped == 0
    row = ledger.rows[0]
    assert (row.conversation, row.mode, row.collection, row.key_name) == ("x", "compact", "docs", "ci")


def test_records_are_written_without_closing_too(ledger: Ledger) -> None:
    recorder = Recorder(ledger)
    record(recorder, "a")
    wait_for(lambda: ledger.rows)
    assert ledger.ids == ["a"]
    recorder.close()


def test_earlier_records_can_be_waited_for_up_to_a_limit(ledger: Ledger) -> None:
    ledger.open.clear()
    with contextlib.closing(Recorder(ledger)) as recorder:
        record(recorder, "a", "bad")
        assert not recorder.settle(0.01)
        ledger.open.set()
        assert recorder.settle(60) and ledger.ids == ["a"]


def test_records_added_meanwhile_are_not_waited_for() -> None:
    class Growing(Ledger):
        def record_questions(self, rows: Sequence[RecordedQuestion]) -> None:
            super().record_questions(rows)
            self.open.clear()
            record(recorder, "b")

    ledger = Growing()
    recorder = Recorder(ledger)
    record(recorder, "a")
    assert recorder.settle(60) and ledger.ids == ["a"]
    recorder.close(0.1)
    ledger.open.set()


def test_answer_is_stored_without_its_prompts_and_full_texts() -> None:
    citations = (
        Citation(2, "https://d.test/2#a", "T", "snip " * 100, supported=False, support=0.25, by="attributed"),
        Citation(1, "https://d.test/other#x", "T", "snip"),
        Citation(9, "https://nowhere.test/", "T", "snip"),
    )
    hits = (hit(1), hit(2), hit(3, ("https://d.test/3#a", "https://d.test/other#x")))
    exchange = Exchange("m", (), "So.")
    more = {"claims": Claims(3, 2, 1), "notes": ("A note.",), "usage": Usage(10, 5, 2, 0.01), "degraded": ("bm25",)}
    answer = make_answer("a", citations=citations, hits=hits, exchanges=(exchange,), **more)
    kept = abridged(answer)
    assert kept.exchanges == () and kept.cited == ("c2", "c3")
    assert kept.also_found == kept.hits[:1] and replace(kept, agent=VERIFIED).also_found == ()
    assert [len(each.text) for each in kept.hits] == [SNIPPET_CHARACTERS] * 3
    assert [len(citation.snippet) for citation in kept.citations] == [SNIPPET_CHARACTERS, 4, 4]
    assert kept.hits[0].sources == ("https://d.test/1#a",) and kept.hits[2].sources == hits[2].sources
    whole = {"exchanges": answer.exchanges, "hits": answer.hits, "citations": answer.citations}
    assert replace(kept, **whole) == answer


def test_language_of_a_question_is_recorded() -> None:
    assert as_kept(RecordedQuestion("a", "Wie lese ich eine Datei?")).language == "de"


@pytest.mark.parametrize(("page", "recorded"), [
    ("https://d.test/a/?user=ann#b", "https://d.test/a/"),
    ("https://ann:secret@d.test:8000/a", "https://d.test:8000/a"), ("https://[d.test/", ""), ("", ""),
    ("https://d.test/" + "x" * 9_000, "https://d.test/" + "x" * 1_985),
])  # fmt: skip
def test_only_impersonal_parts_of_a_page_url_are_recorded(page: str, recorded: str) -> None:
    assert as_kept(RecordedQuestion("a", "", page=page)).page == recorded


def test_failure_is_a_row_with_its_reason(ledger: Ledger) -> None:
    recorder = Recorder(ledger)
    recorder.record(RecordedQuestion("a", "why does it fail?", error="LLMFailed: gone", key_name="ci", channel="slack"))
    recorder.record(RecordedQuestion("b", "why?", error="x" * 5_000))
    recorder.record(RecordedQuestion("c", "why?", error=""))
    recorder.close()
    assert (ledger.rows[0].error, ledger.rows[0].answer, ledger.rows[0].key_name) == ("LLMFailed: gone", None, "ci")
    assert (ledger.rows[0].channel, ledger.rows[0].language) == ("slack", "en")
    assert [row.error for row in ledger.rows[1:]] == ["x" * MOST_ERROR_CHARACTERS, "unknown"]


def test_outage_loses_nothing_that_fits_the_queue() -> None:
    ledger = Ledger(away=3)
    recorder = Recorder(ledger, pause_s=0.001)
    record(recorder, *"abc")
    recorder.close()
    assert sorted(ledger.ids) == ["a", "b", "c"] and ledger.away == 0 and recorder.dropped == 0


def test_overflow_is_dropped_counted_and_logged_without_waiting(ledger, caplog):
    ledger.open.clear()  # the database hangs
    recorder = Recorder(ledger, most_waiting=5)
    for n in range(200):  # it would never end if it waited
        recorder.record(answered(str(n)) if n % 2 else RecordedQuestion(str(n), "why?", error="gone"))
    ledger.open.set()
    recorder.close()
    assert len(ledger.rows) + recorder.dropped == 200 and 5 <= len(ledger.rows) <= 5 + 5 + 1
    said = [record for record in caplog.records if "not recorded" in record.getMessage()]
    assert 1 <= len(said) <= 8  # at each doubling


def test_unreachable_database_does_not_block_the_shutdown() -> None:
    recorder = Recorder(Ledger(away=10**9), pause_s=0.001)
    record(recorder, *range(20))
    recorder.close(timeout_s=0.05)
    assert recorder.dropped == 20
    record(recorder, "late")
    assert recorder.dropped == 21


def test_refused_row_takes_no_other_row_with_it(ledger: Ledger) -> None:
    ledger.open.clear()
    recorder = Recorder(ledger)
    record(recorder, "a", "b", "bad", "c", "d")
    ledger.open.set()
    recorder.close()
    assert sorted(ledger.ids) == ["a", "b", "c", "d"] and recorder.dropped == 1


def test_invalid_answer_raises_nothing(ledger: Ledger) -> None:
    recorder = Recorder(ledger)
    recorder.record(None)  # type: ignore[arg-type]
    recorder.close()
    assert recorder.dropped == 1


def test_disabled_recording_writes_nothing_but_still_deletes_old_rows(ledger, caplog):
    caplog.set_level(logging.INFO)
    recorder = Recorder(ledger, enabled=False, retention_days=30)
    record(recorder, "a")
    recorder.record(RecordedQuestion("b", "q", error="e"))
    wait_for(lambda: ledger.forgotten)
    recorder.close()
    assert ledger.rows == [] and recorder.dropped == 0 and ledger.forgotten == [30]
    assert "deleted 2 questions" in caplog.text


def test_unlimited_retention_deletes_nothing(ledger: Ledger) -> None:
    recorder = Recorder(ledger, retention_days=None)
    record(recorder, "a")
    recorder.close()
    assert ledger.ids == ["a"] and ledger.forgotten == []


def test_many_threads_can_record(ledger: Ledger) -> None:
    recorder = Recorder(ledger)
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda name: record(recorder, *(f"{name}{n}" for n in range(100))), "abcd"))
    recorder.close()
    assert len(set(ledger.ids)) == 400
