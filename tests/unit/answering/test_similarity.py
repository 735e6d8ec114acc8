"""A verified answer is given to questions with its meaning, and never to one that differs in a key word."""

import json
import tracemalloc
from pathlib import Path

import pytest

from pipelines.answering.verified.similarity import Meaning, may_mean_same, wording_key

SET = Path(__file__).parents[3] / "benchmarks" / "questions" / "same-meaning.jsonl"


def same(one: str, other: str) -> bool:
    pair = may_mean_same(Meaning.of(one), Meaning.of(other))
    assert pair == may_mean_same(Meaning.of(other), Meaning.of(one)), "it does not matter which one was answered"
    return pair


@pytest.mark.parametrize(("one", "other"), [
    ("How do I read a CSV file?", "How do I write a CSV file?"),
    ("How do I install Ray 2.9?", "How do I install Ray 2.10?"),
    ("How do I run on two nodes?", "How do I run on three nodes?"),
    ("How do I enable tracing?", "How do I disable tracing?"),
    ("Which versions are supported?", "Which versions are not supported?"),
    ("Can I connect with a password?", "Can I connect without a password?"),
    ("Why does the worker start?", "Why doesn't the worker start?"),
    ("What is batch_size?", "What is train_batch_size?"),
    ("How do I set work_mem?", "How do I set maintenance_work_mem?"),
    ("How do I use the --force flag?", "How do I use the --verbose flag?"),
    ("How do I cast text to date?", "How do I cast date to text?"),
    ("How do I turn a pandas frame into a Ray Dataset?", "How do I turn a Ray Dataset into a pandas frame?"),
    ("How do I run Ray in Docker?", "How do I run Docker in Ray?"),
    ("What is a placement group?", "How do I create a placement group?"),
    ("When should I use Ray Client?", "What is Ray Client?"),
    ("How many actors run on a node?", "How do actors run on a node?"),
    ("How do I filter rows before a join?", "How do I filter rows after a join?"),
    ("What is a tuple?", "What is the difference between a tuple and a list?"),
    ("How do I install it with pip?", "How do I install it with conda?"),
    ("How do I serve a model?", "How do I serve a model on Kubernetes with TLS and a proxy?"),
])  # fmt: skip
def test_questions_that_differ_in_a_key_word_are_not_the_same(one: str, other: str) -> None:
    assert not same(one, other)


@pytest.mark.parametrize(("one", "other"), [
    ("How do I read a CSV file?", "how can i read csv files"),
    ("What's the GCS?", "what is the GCS"),
    ("How do I limit the CPUs of a task?", "limit CPU of a task"),
    ("How do I use read_csv?", "How to use read csv?"),
    ("How do I create an index?", "How can I build an index?"),
    ("How do I install Ray 2.9 with pip?", "pip install ray 2.9"),
    ("How do I shutdown a node?", "How do I shut down a node?"),
    ("What is the difference between vacuum and analyze?", "difference between analyze and vacuum"),
])  # fmt: skip
def test_synonyms_do_not_make_a_difference(one: str, other: str) -> None:
    assert same(one, other)


def test_question_of_many_words_is_compared_without_all_pairs() -> None:
    long = Meaning.of(" ".join(f"w{chr(97 + n % 26)}{chr(97 + n // 26)}" for n in range(600)))
    tracemalloc.start()
    may_mean_same(long, Meaning.of("csv files"), shared=0.0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2_000_000


def test_words_alone_are_right_for_nearly_all_labeled_pairs() -> None:
    """Without vectors, 0.97 of the matches are correct, and half of the questions with the same meaning match."""
    rows = [json.loads(line) for line in SET.read_text().splitlines()]
    right = [same(row["question"], other) for row in rows for other in row["same"]]
    wrong = [same(row["question"], other) for row in rows for other in row["other"]]
    assert len(right) == len(wrong) == 183
    assert sum(right) / (sum(right) + sum(wrong)) >= 0.97
    assert sum(right) / len(right) >= 0.5


def test_case_spaces_and_final_punctuation_make_no_other_question() -> None:
    assert wording_key("How  do I\nread a CSV? ") == wording_key("how do i read a csv")
