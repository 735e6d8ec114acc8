"""Refusals by language models: found in the wording of small models and removed from streams, but not from claims."""

import re
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.answering.grounding.answerable import UNKNOWN
from pipelines.answering.writing.stages import TextStages
from pipelines.answering.writing.stages.refusals import RefusalFilter, gives_up, is_refusal, is_whole, may_refuse
from pipelines.answering.writing.stages.text import TextReader, shown

WHOLE = [
    UNKNOWN,
    "I do not know.",
    "I don’t know the answer to that.",
    "**I do not know**: nothing in this collection seems to answer that. [1][2]",
    "I'm sorry, but I cannot answer this question.",
    "I'm sorry, but the passages do not answer the question.",
    "Sorry, I could not find an answer in the documentation.",
    "I don't have enough information to answer.",
    "Answer: I do not know.",
    "The provided passages do not contain the answer.",
    "The answer is not found in the passages.",
    "None of the passages answers your question.",
    "Nothing in this collection seems to answer that.",
]
PARTIAL = [
    "The provided passages do not contain information about sourdough bread.",
    "The passages do not explicitly mention how to kill a replica [1].",
    "Unfortunately, the given documentation does not provide details on that.",
    "Based on the provided passages, there is no information about Kafka.",
    "There is no mention of NCCL in the passages.",
    "The passage doesn't describe it.",
    "No passage says how to do so.",
    "The context provided does not specify the default.",
]
CLAIMS = [
    "Ray does not know how many GPUs a task uses.",
    "The passages do not mention NCCL, but ray.util.collective supports it as a backend [1].",
    "The text field does not contain whitespace.",
    "No documents are loaded until you iterate [2].",
    "There is no need to call ray.init.",
    "No information is lost when a worker dies.",
    "I/O is not blocked.",
    "The context manager does not close the file.",
    "Based on the size of the cluster, Ray chooses the number of workers.",
    "The documentation is built with Sphinx.",
    "If a key is not found, get returns None.",
    "Unfortunately tasks are retried three times.",
]
REAL = "Call `ray.get` to wait for it [1]."


@pytest.mark.parametrize("sentence", WHOLE)
def test_refusal_of_the_question_is_found(sentence):
    assert is_refusal(sentence) and is_whole(sentence)
    assert gives_up(f"{sentence} And more.") or not sentence.endswith(".")


@pytest.mark.parametrize("sentence", PARTIAL)
def test_refusal_that_names_the_missing_information_is_found(sentence):
    assert is_refusal(sentence) and not is_whole(sentence) and not gives_up(sentence)


@pytest.mark.parametrize("sentence", CLAIMS)
def test_claim_is_not_a_refusal(sentence):
    assert not is_refusal(sentence) and not gives_up(sentence)


def filtered(text, size=1, *, final=False, whole=False, question=""):
    refusals = RefusalFilter(final=final, whole=whole, question=question)
    stages = TextStages([TextReader(), refusals])
    parts = [stages.feed(text[at : at + size]) for at in range(0, len(text), size)]
    return shown(piece for part in [*parts, stages.close()] for piece in part), refusals.refused


@pytest.mark.parametrize("size", [1, 4, 1000])
@pytest.mark.parametrize("sentence", [*WHOLE, *PARTIAL])
def test_answer_that_only_refuses_is_removed_entirely(sentence, size):
    assert filtered(sentence, size) == ("", True)
    assert filtered(f"{sentence}\n", size) == ("", True)


@pytest.mark.parametrize("sentence", [*WHOLE, *PARTIAL])
def test_text_after_a_refusal_is_the_answer_unless_the_refusal_is_final(sentence):
    assert filtered(f"{sentence} {REAL}") == (REAL, False)
    assert filtered(f"{sentence}\n\n{REAL}\n\n```\nx = 1\n```\n", final=True) == ("", True)


@pytest.mark.parametrize("sentence", PARTIAL)
def test_capable_model_may_begin_with_missing_information(sentence):
    assert filtered(f"{sentence} {REAL}", final=True, whole=True) == (f"{sentence} {REAL}", False)
    assert filtered(sentence, final=True, whole=True) == (sentence, True)


@pytest.mark.parametrize("sentence", WHOLE)
def test_capable_model_may_refuse_the_whole_question(sentence):
    assert filtered(f"{sentence} {REAL}", final=True, whole=True) == ("", True)


def test_refusal_that_was_not_held_back_still_counts():
    said = "The default is not mentioned in the provided context."
    assert filtered(said) == (said, True)
    assert filtered(f"{said} {REAL}") == (f"{said} {REAL}", False)


@pytest.mark.parametrize("sentence", WHOLE)
def test_refusal_after_claims_is_removed(sentence):
    assert filtered(f"{REAL} {sentence}") == (f"{REAL} ", False)
    assert re.fullmatch(rf"{re.escape(REAL)}\n+{re.escape(REAL)}", filtered(f"{REAL}\n\n{sentence}\n\n{REAL}")[0])


@pytest.mark.parametrize("sentence", PARTIAL)
def test_statement_about_missing_information_in_an_answer_stays(sentence):
    assert filtered(f"{REAL} {sentence}") == (f"{REAL} {sentence}", False)


@pytest.mark.parametrize("sentence", CLAIMS)
def test_claims_pass_unchanged(sentence):
    assert filtered(sentence) == (sentence, False)


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize("code", ["So:\n\n```python\n# I do not know.\nprint('x')\n```\n", "```\nray.init()\n```\n[1]"])
def test_any_code_passes_and_can_be_the_whole_answer(code, size):
    assert filtered(code, size) == (code, False)


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_numbers_without_words_are_not_an_answer(size):
    assert filtered("... [1]. [2]. [3].", size) == ("", True)
    assert filtered(f"---\n\n{REAL}", size, final=True) == (REAL, False)


def test_only_a_possible_refusal_is_held_back():
    stages = TextStages([TextReader(), RefusalFilter()])
    for delta, left in (
        ("Call it.", "Call it."),
        (" The", " "),
        (" provided", ""),
        (" handle", "The provided handle"),
        (" is.", " is."),
        ("\nThe passages sho", "\n"),
        ("uld not be long", "The passages should not be long"),
    ):
        assert shown(stages.feed(delta)) == left


@given(st.text(st.sampled_from("The passages do not. I\n`~ [1]?!x"), max_size=80), st.integers(1, 9))
def test_stream_chunk_sizes_do_not_matter(text, size):
    assert filtered(text, size) == filtered(text, 1000)


REQUEST = "can you show me an example of ray.actor.exit_actor()"


def test_text_after_a_repeated_request_is_the_answer():
    code = "```python\nray.actor.exit_actor()\n```"
    text = f"Yes, I can show you an example.\n\n{code}\n"
    said, refused = filtered(text, question=REQUEST)
    assert said.strip() == code and not refused


@pytest.mark.parametrize(("question", "answer", "echo"), [
    (REQUEST, "Yes, you can show me an example of ray.actor.exit_actor(). [1]", True),
    (REQUEST, "Sure, I can show you an example of `ray.actor.exit_actor()`.", True),
    (REQUEST, "An example of ray.actor.exit_actor() [2].", True),
    (REQUEST, "Here is an example of ray.actor.exit_actor():\n\n    ray.actor.exit_actor()", False),
    (REQUEST, "Call `ray.actor.exit_actor()` in a method of the actor [1].", False),
    ("Does Ray export metrics via an actor?", "No, Ray does not export metrics via an actor. [1]", False),
    ("can ray.init() be called twice?", "Yes, ray.init() can be called twice.", False),
])  # fmt: skip
def test_answer_that_only_repeats_the_request_is_empty(question, answer, echo):
    assert filtered(answer, question=question) == (("", True) if echo else (answer, False))


def test_endlessly_repeated_opening_is_parsed_without_backtracking() -> None:
    assert not is_refusal("sorry, but " * 3_000 + "x.")
    assert is_refusal("Sorry, but unfortunately, based on the passages, I do not know that.")
    assert not is_refusal("however, " * 3_000 + "x.") and not may_refuse("the given " * 3_000)


@pytest.mark.parametrize(
    "text", ["a" * 20_000, "-" * 20_000, '." ' * 5_000, "i don't know " * 1_500, "*" * 20_000 + "a"]
)
@pytest.mark.parametrize("size", [4, 20_000])
def test_endless_text_is_held_for_one_sentence_only(text: str, size: int) -> None:
    reader, refusals, held = TextReader(), RefusalFilter(question="Can you show me that?"), 0
    tracemalloc.start()
    try:
        for at in range(0, len(text), size):
            refusals.feed(reader.feed(text[at : at + size]))
            held = max(held, tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()
    assert held < 10_000_000
