"""A single question uses all CPUs; questions that are embedded at the same time use one each."""

import pytest

from pipelines.embedding.onnx.question_sessions import QuestionSessions


def test_single_question_gets_all_cpus_and_concurrent_ones_get_one_each() -> None:
    sessions = QuestionSessions("single", lambda: "wide")
    with sessions.take() as first, sessions.take() as second, sessions.take() as third:
        assert (first, second, third) == ("wide", "single", "single")
    with sessions.take() as later:
        assert later == "wide"


def test_first_question_opens_the_wide_session_once() -> None:
    opened: list[str] = []
    sessions = QuestionSessions("single", lambda: opened.append("wide") or "wide")
    assert not opened
    for _ in range(2):
        with sessions.take(), sessions.take():
            pass
    assert opened == ["wide"]


def test_failed_question_releases_its_cpus() -> None:
    sessions = QuestionSessions("single", lambda: "wide")
    with pytest.raises(RuntimeError), sessions.take():
        raise RuntimeError("the model failed")
    with sessions.take() as session:
        assert session == "wide"


def test_single_question_gets_one_cpu_if_the_wide_session_fails_to_open() -> None:
    """The model's file may have been deleted before the first question."""
    tries: list[str] = []

    def fail() -> str:
        tries.append("open")
        raise OSError("no such file")

    sessions = QuestionSessions("single", fail)
    for each in (sessions, sessions, QuestionSessions("single", None)):
        with each.take() as session:
            assert session == "single"
    assert tries == ["open"]
