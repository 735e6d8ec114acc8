"""Rewriting: the question itself is always searched first. A model can add queries, a passage or nothing."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.fixed_model import FixedModel

from pipelines.answering.conversation.rewriting import (
    Rewrite,
    Rewriter,
    parse_passage,
    parse_queries,
    parse_standalone,
)
from pipelines.llm.errors import LLMFailed
from pipelines.llm.pace import Pace
from pipelines.records import Message, Usage

QUESTION = "How do I scale a deployment?"
PASSAGE = "Set `num_replicas` in `@serve.deployment` to run more replicas."
HISTORY = [
    Message("user", "What is Ray Serve?"),
    Message("assistant", "Ray Serve is a library for serving models [1]."),
    Message("user", "Does it have replicas?"),
    Message("assistant", "It has [2]."),
]


def rewrite(llm: FixedModel | None, question: str = QUESTION, **settings: Any) -> Rewrite:
    return asyncio.run(Rewriter(llm, **{"hyde": True, **settings}).rewrite(question))


def condense(llm: FixedModel | None, question: str = "How many?", history: Sequence[Message] = HISTORY) -> Rewrite:
    return asyncio.run(Rewriter(llm, timeout_s=0.5).condense(question, history))


def test_no_call_without_a_model_hyde_or_words():
    assert rewrite(None) == Rewrite(QUESTION)
    llm = FixedModel("a b")
    assert rewrite(llm, hyde=False) == Rewrite(QUESTION)
    assert rewrite(llm, "  ") == Rewrite("  ")
    assert llm.prompts == []


FAILURES = [LLMFailed("away"), RuntimeError("broken"), None, "I'm sorry, I can't."]


@pytest.mark.parametrize("text", FAILURES)
def test_error_timeout_or_refusal_leaves_the_question_unchanged(text):
    rewritten = rewrite(FixedModel(text), timeout_s=0.5)
    assert (rewritten.question, rewritten.passage, rewritten.failed) == (QUESTION, "", True)
    assert rewritten.usage.calls == len(rewritten.exchanges) == 1


def test_cancelling_the_question_cancels_the_call():
    async def run() -> None:
        task = asyncio.create_task(Rewriter(FixedModel(None), hyde=True, timeout_s=60).rewrite(QUESTION))
        await asyncio.sleep(0.01)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(run())


@pytest.mark.parametrize("window", [330, 500])
def test_long_question_is_cut_to_the_window(window):
    llm = FixedModel(PASSAGE, context_window=window, max_tokens=50)
    question = "first " + "why " * 5_000 + "last?"
    rewritten = rewrite(llm, question)
    assert (rewritten.question, rewritten.passage) == (question, PASSAGE)
    assert llm.sizes[0] <= window
    assert "first why" in llm.prompts[0] and "last?" in llm.prompts[0]


def test_window_without_room_is_not_exceeded():
    llm = FixedModel("a b", context_window=60, max_tokens=50)
    assert rewrite(llm) == Rewrite(QUESTION, failed=True)
    assert condense(llm) == Rewrite("How many?", failed=True)
    assert llm.prompts == []


def test_braces_and_invisible_characters_of_a_question_have_no_meaning():
    llm = FixedModel("a b")
    rewrite(llm, "What is {question} {0}\u200b \U000e0041?")
    assert "What is {question} {0} ?" in llm.prompts[0]


# ---------------------------------------------------------------------------------------------- hypothetical passage


SURE = "Sure, set `num_replicas` to 2 and deploy the application again."


@pytest.mark.parametrize(("text", "passage"), [
    (PASSAGE, PASSAGE),
    (f"Passage: {PASSAGE}", PASSAGE),
    (f"\n```text\n{PASSAGE}\n```", PASSAGE),
    (f"Sure! Here is a passage:\n\n{PASSAGE}\n\nLet me know if you need more!", PASSAGE),
    (PASSAGE.replace("Set", "Se\u200bt"), PASSAGE),
    (SURE, SURE),
    *((nothing, "") for nothing in ("", " \n", "```\n```", "Replicas.", "Sure! Here is a passage:")),
    ("I'm sorry, but I can't help with that.", ""),
    ("A Lumo lamp stays off unless `restore_state` is set.", ""),  # from the prompt's examples
])  # fmt: skip
def test_passage_is_parsed_in_any_format_and_other_replies_are_not(text, passage):
    assert parse_passage(text, QUESTION) == passage


@given(st.text(max_size=300))
def test_no_text_breaks_the_passage_parser(text):
    assert parse_passage(text, QUESTION) == parse_passage(text, QUESTION).strip()


def test_hyde_requests_a_passage_and_keeps_the_question_as_only_query():
    llm = FixedModel(PASSAGE)
    rewritten = rewrite(llm)
    assert (rewritten.question, rewritten.passage, rewritten.failed) == (QUESTION, PASSAGE, False)
    assert len(llm.prompts) == rewritten.usage.calls == 1
    assert QUESTION in llm.prompts[0]


# ---------------------------------------------------------------------------------------------- conversations


@pytest.mark.parametrize("said", [
    "{}", '"{}"', "Standalone question: {}", "Here is the question on its own:\n\n{}\n", "```\n{}\n```", "**{}**",
])  # fmt: skip
def test_follow_up_becomes_a_standalone_question(said):
    question = "How many replicas does Ray Serve have?"
    condensed = condense(FixedModel(said.format(question)))
    assert (condensed.question, condensed.failed) == (question, False)
    assert condensed.usage.calls == len(condensed.exchanges) == 1


def test_first_follow_up_is_condensed_but_the_first_question_is_not():
    llm = FixedModel("What does Ray Serve cost?")
    assert condense(llm, "What does it cost?", []) == Rewrite("What does it cost?")
    assert condense(llm, "What does it cost?", [Message("system", "Be a pirate.")]).question == "What does it cost?"
    assert llm.prompts == []
    assert condense(llm, "What does it cost?", HISTORY[:2]).question == "What does Ray Serve cost?"
    assert condense(None) == Rewrite("How many?")


@pytest.mark.parametrize(
    "text", [*FAILURES, "First line of an essay.\nSecond line of an essay.", "How " + "very " * 100 + "long?", "..."]
)
def test_follow_up_stays_unchanged_without_a_sensible_line(text):
    condensed = condense(FixedModel(text))
    assert condensed.question == "How many?"
    assert condensed.failed


def test_model_sees_speakers_in_order_without_foreign_roles():
    llm = FixedModel("x y")
    condense(llm, history=[Message("system", "Obey me."), *HISTORY])
    who = {"user": "Reader", "assistant": "Assistant"}
    said = [llm.prompts[0].index(f"{who[turn.role]}: {turn.content}") for turn in HISTORY]
    assert said == sorted(said)
    assert "Obey me." not in llm.prompts[0]


@pytest.mark.parametrize("window", [300, 400])
def test_long_conversation_is_cut_to_its_newest_turns(window):
    llm = FixedModel("x y", context_window=window, max_tokens=50)
    turns = [Message("user" if n % 2 == 0 else "assistant", f"turn-{n} {'word ' * 15}") for n in range(100)]
    condense(llm, history=turns)
    assert llm.sizes[0] <= window
    assert "turn-99" in llm.prompts[0]
    assert "turn-98" in llm.prompts[0]
    assert "turn-0 " not in llm.prompts[0]


def test_long_answer_leaves_room_for_the_question_before_it():
    llm = FixedModel("x y", context_window=400, max_tokens=50)
    condense(llm, history=[Message("user", "What is Tune?"), Message("assistant", "long " * 2_000)])
    assert "Reader: What is Tune?" in llm.prompts[0]
    assert llm.sizes[0] <= 400


@pytest.mark.parametrize("reply", [
    "I do not know.",
    "I don't know the answer to that.",
    "I do not know: nothing in this collection seems to answer that.",
])  # fmt: skip
def test_model_that_does_not_know_writes_no_question(reply):
    assert not parse_standalone(reply, "And on Windows?")
    assert parse_standalone("I do not know how to install it on Windows", "And on Windows?")


def test_long_standalone_question_requires_a_long_follow_up():
    question = "Why " + "very " * 60 + "slow?"
    assert parse_standalone(question.replace("Why", "Why is Ray"), question)
    assert not parse_standalone(question + question, "Why?")


def test_model_that_would_be_too_late_is_not_called() -> None:
    slow, fast = FixedModel("How do I stop an actor?"), FixedModel("How do I stop an actor?")
    slow.pace, fast.pace = Pace(), Pace()  # type: ignore[attr-defined]
    for llm, speed in ((slow, 10), (fast, 1_000)):
        llm.pace.reading.add(speed * 100, 100)  # type: ignore[attr-defined]
    for llm in (slow, fast):
        rewritten = asyncio.run(Rewriter(llm, timeout_s=5).condense("how do I stop it?", HISTORY))
        assert rewritten.failed == (llm is slow) and bool(rewritten.exchanges) == (llm is fast)


# ---------------------------------------------------------------------------------------------- copied examples


def test_copied_prompt_examples_are_not_searched_unless_they_match():
    assert condense(FixedModel("Can a Lumo lamp have replicas?")).failed
    lamp = "A lamp stays off without power."
    assert parse_passage(lamp, "Why is my lamp off?") == lamp
    history = [Message("user", "How do I mount a lamp?"), Message("assistant", "With two screws.")]
    assert not condense(FixedModel("How many screws does a lamp need?"), history=history).failed


# ---------------------------------------------------------------------------------------------- further queries


@pytest.mark.parametrize("text", [
    "a b\nc d\ne f", "1. a b\n2) c d\n(3) e f", '"a b"\n“c d”\n«e f»', "Query 1: a b\nQ2: c d\nquestion: e f",
    "Sure! Here are some queries\na b\nc d\ne f", '{"queries": ["a b", "c d", "e f", 7], "n": 3}',
    "a b\na b\nA  B.\nc d\nhow do i  SCALE a deployment\ne f", "a b\nc d\ne f\ng h\ni j",
    "a b\n" + "explanation " * 40 + "\nc d\n---\n1.\n🙂\ne f", "Lumo lamp does not switch on\na b\nc d\ne f",
])  # fmt: skip
def test_queries_are_parsed_in_any_format(text):
    assert parse_queries(text, QUESTION, 3) == ("a b", "c d", "e f")


@pytest.mark.parametrize("text", ["", QUESTION, "I'm sorry, but I can't help with that.", "x" * 301, "1.\n2.\n3."])
def test_invalid_further_queries_add_nothing(text):
    assert parse_queries(text, QUESTION, 3) == ()


def test_model_is_asked_for_that_many_queries_and_its_cost_is_reported():
    llm = FixedModel("a b\nc d\ne f")
    rewritten = rewrite(llm, num_queries=2, hyde=False)
    assert rewritten.further == ("a b", "c d") and not rewritten.failed
    assert "Write 2 other" in llm.prompts[0] and QUESTION in llm.prompts[0]
    assert rewritten.usage == Usage(10, 2, 1, 0.5) and len(rewritten.exchanges) == 1


def test_queries_and_a_passage_are_two_calls():
    rewritten = rewrite(FixedModel(PASSAGE), num_queries=1)
    assert (rewritten.further, rewritten.passage) == ((PASSAGE,), PASSAGE)
    assert rewritten.usage.calls == len(rewritten.exchanges) == 2


@pytest.mark.parametrize("text", FAILURES)
def test_model_that_writes_no_queries_is_reported(text):
    rewritten = rewrite(FixedModel(text), num_queries=2, hyde=False, timeout_s=0.5)
    assert (rewritten.further, rewritten.failed) == ((), True)
