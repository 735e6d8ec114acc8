"""Failed questions in Postgres are one row each with the error, and are never read as answers."""

import psycopg
import pytest
from fastapi.testclient import TestClient
from kit.api import FakeEngine, FakeStore

from pipelines.answering.writing.agents import StepUnavailable
from serve.recorder import Recorder
from serve.routes import create_app

QUESTION = {"question": "How do I load csv files?", "collection": "docs", "conversation": "c1"}


@pytest.mark.parametrize("fails", ["fails", "fails_midway"])
def test_failed_question_is_one_row_that_is_never_read_as_an_answer(store, database_url, fails):
    engine, recorder = FakeEngine(FakeStore()), Recorder(store)
    client = TestClient(create_app(engine, store, recorder=recorder))  # type: ignore[arg-type]
    assert client.post("/query/stream", json=QUESTION).status_code == 200
    setattr(engine, fails, StepUnavailable("the agent \0 is full"))
    assert "full" in client.post("/query/stream", json=QUESTION).text
    recorder.close()

    answered, failed = (ask.id for ask in engine.asks)
    row = store.question(failed)
    assert recorder.dropped == 0 and row is not None
    assert (row.question, row.collection, row.conversation, row.key_name) == (*QUESTION.values(), "")
    assert (row.answer, row.error) == (None, "StepUnavailable: the agent  is full")
    with psycopg.connect(database_url) as connection:
        assert connection.execute("select count(*) from question").fetchone() == (2,)

    assert len(store.conversation("c1")) == 1
    for id in (answered, failed):
        store.record_feedback(id, 1)
    assert [rated.answer for rated in store.rated_questions("docs")] == [store.question(answered).answer]
