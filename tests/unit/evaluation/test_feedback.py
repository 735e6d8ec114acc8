"""Ratings become evaluation questions, and their wrong hits become training examples."""

from typing import Any

from kit.recorded import hit_at, recorded

from pipelines.evaluation.questions.feedback import from_ratings
from pipelines.records import Citation
from pipelines.store import RecordedQuestion

URL = "https://docs.example/"


def rated(rating: int, question: str = "How?", cited: tuple[str, ...] = ("a#x",), **more: Any) -> RecordedQuestion:
    return recorded(
        "a",
        question,
        text=more.pop("text", "So."),
        cited=[URL + source for source in cited],
        found=[hit_at(URL + source, chunk_id=source, text=f"text of {source}") for source in ("a#x", "b#y")],
        rating=rating,
        **more,
    )


def test_liked_answer_is_an_example_with_its_cited_sources():
    (example,) = from_ratings([rated(1, cited=("a#x", "c"))]).examples
    assert (example.question, example.sources, example.answer) == ("How?", (f"{URL}a#x", f"{URL}c"), "So.")


def test_hits_of_a_disliked_answer_are_wrong_for_its_question():
    feedback = from_ratings([rated(-1)])
    assert feedback.examples == ()
    assert [hit.source for hit in feedback.wrong("  how? ")] == [f"{URL}a#x", f"{URL}b#y"]
    assert feedback.wrong("another") == ()


def test_unliked_unknown_failed_or_uncited_answer_is_no_example():
    rows = [rated(0), rated(1, known=False), rated(1, error="timeout"), rated(1, cited=())]
    unsupported = rated(1, citations=(Citation(1, URL, supported=False),))
    feedback = from_ratings([*rows, unsupported])
    assert (feedback.examples, feedback.disliked) == ((), ())


def test_liked_source_is_not_wrong_for_the_same_question():
    feedback = from_ratings([rated(1), rated(-1)])
    assert [hit.source for hit in feedback.wrong("How?")] == [f"{URL}b#y"]


def test_liked_answers_to_one_question_are_one_example_with_the_newest():
    (example,) = from_ratings([rated(1), rated(2, "how?", ("c",), text="Newer.")]).examples
    assert (example.sources, example.answer) == ((f"{URL}a#x", f"{URL}c"), "Newer.")


def test_follow_up_counts_as_its_standalone_question():
    (example,) = from_ratings([rated(1, "And then?", standalone="How does it go on?")]).examples
    assert example.question == "How does it go on?"
