"""A lone question has all CPUs; questions that are embedded at the same time have one each."""

import pytest

from pipelines.embedding.onnx.question_sessions import QuestionSessions


def test_a_lone_question_has_all_cpus_and_one_of_several_has_one() -> None:
    sessions = QuestionSessions("single", lambda: "wide")
    with sessions.take() as first, sessions.take() as second, sessions.take() as third:
        assert (first, second, third) == ("wide", "single", "single")
    with sessions.take() as later:
        assert later == "wide"


def test_the_wide_session_is_opened_once_by_the_first_question() -> None:
    opened: list[str] = []
    sessions = QuestionSessions("single", lambda: opened.append("wide") or "wide")
    assert not opened
    for _ in range(2):
        with sessions.take(), sessions.take():
            pass
    assert opened == ["wide"]


def test_a_question_that_fails_leaves_its_cpus() -> None:
    sessions = QuestionSessions("single", lambda: "wide")
    with pytest.raises(RuntimeError), sessions.take():
        raise RuntimeError("the model failed")
    with sessions.take() as session:
        assert session == "wide"


def test_where_no_wide_session_is_or_opens_a_lone_question_has_one_cpu() -> None:
    """The file of the model may be gone by the first question."""
    tries: list[str] = []

    def fail() -> str:
        tries.append("open")
        raise OSError("no such file")

    sessions = QuestionSessions("single", fail)
    for each in (sessions, sessions, QuestionSessions("single", None)):
        with each.take() as session:
            assert session == "single"
    assert tries == ["open"]
