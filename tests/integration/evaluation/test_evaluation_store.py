"""Evaluations and judgements in the database: resumed by fingerprint and stored unchanged."""

from dataclasses import replace

from kit.databases import evaluation_row

from pipelines.store import EvaluatedQuestion, Judgement, Store

ROW = EvaluatedQuestion(
    "one", "How?", ["a#x"], [{"sources": ["a#x"], "anchors": ["a#x"], "score": 0.5}], ["bm25"], {"total": 0.1}
)


def begin(store: Store, fingerprint: str = "f", fresh: bool = False) -> int:
    return store.begin_evaluation(fingerprint, "docs", 3, 7, {"name": "set"}, {"k": 5}, fresh)


def test_evaluation_resumes_by_fingerprint_unless_a_fresh_one_is_requested(store: Store) -> None:
    first = begin(store)
    assert begin(store) == first
    assert begin(store, "another") != first
    again = begin(store, fresh=True)
    assert again != first and begin(store) == again


def test_rows_read_back_as_written_and_the_last_write_wins(store: Store) -> None:
    here, there = begin(store), begin(store, "another")
    failed = replace(ROW, id="two", hits=[], error="lost \0 and \ud800")
    store.record_evaluated_questions(here, [ROW, failed, failed])
    store.record_evaluated_questions(there, [ROW])
    rows = store.evaluated_questions(here)
    assert rows["one"] == ROW and rows["two"].error == "lost  and "
    answered = replace(ROW, id="two", answer={"text": "So."}, scores={"similarity": 0.5, "supported": None})
    store.record_evaluated_questions(here, [answered])
    assert store.evaluated_questions(here)["two"] == replace(answered, attempts=2)
    assert list(store.evaluated_questions(there)) == ["one"]


def test_evaluation_result_is_stored(store: Store) -> None:
    here = begin(store)
    store.finish_evaluation(here, {"mrr": 0.5, "nothing": float("nan")})
    row = evaluation_row(store, here)
    assert row["scores"] == {"mrr": 0.5, "nothing": None} and row["ended"]
    assert (row["collection"], row["index"], row["revision"]) == ("docs", 3, 7)


def test_judgement_is_kept_and_a_failed_one_is_repeated(store: Store) -> None:
    good = Judgement("quality", 4.0, "because", model="judge", hash="h1")
    failed = Judgement("quality", None, error="timeout", model="judge", hash="h2")
    store.save_judgements([good, failed])
    store.save_judgements([replace(good, score=1.0), replace(failed, score=2.0, error=None)])
    found = store.get_judgements(["h1", "h2", "h3"])
    assert {hash: (row.score, row.error) for hash, row in found.items()} == {"h1": (4.0, None), "h2": (2.0, None)}
    assert found["h1"] == replace(good, cached=True)
    assert store.get_judgements([]) == {}
