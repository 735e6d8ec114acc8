"""Model replies are parsed in every format that models use, and no reply breaks the parser."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.llm import replies
from pipelines.llm.replies import read_items, read_json, read_objects


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": [1]}', {"a": [1]}),
        ('Here it is:\n```json\n["x", "y"]\n```\nDone.', ["x", "y"]),
        ("{'a': 'cut o", {"a": "cut o"}),
        ("no JSON [1] at {all}", None),
        ("[" * 10_000, None),
    ],
)
def test_json_is_found_in_prose_and_repaired(text, value):
    assert read_json(text) == value


@pytest.mark.parametrize(
    ("text", "objects"),
    [
        ('{"Score": 3} or {score: 4,', [{"score": 3}, {"score": 4}]),
        ('{"quality": {"score": 4}}', [{"score": 4}]),
        ('{"why": "it says {\\"score\\": 5}", "score": 1}', [{"why": 'it says {"score": 5}', "score": 1}]),
        ('[{"score": 3}, {"other": 1}]', [{"score": 3}]),
        ('{"other": 1}', []),
    ],
)
def test_objects_with_one_of_the_keys_are_returned(text, objects):
    assert read_objects(text, ("score", "rating")) == objects


def test_items_keep_their_order_without_duplicates():
    assert read_items("1. b c\n2. a b\n3. B  C.\n4. c d") == ["b c", "a b", "c d"]


@pytest.mark.parametrize(
    "text",
    [
        "a b\nc d\ne f",
        "1. a b\n2. c d\n3. e f",
        "1) a b\n2) c d\n3) e f",
        "(1) a b\n[2] c d\n3: e f",
        "**1.** a b\n**2.** c d\n**3.** e f",
        "**1. a b**\n**2: c d**\n**3)** e f",
        "1 - a b\n2 – c d\n3 — e f",
        "- a b\n* c d\n• e f",
        "•a b\n+ c d\n– e f",
        "a) a b\nb) c d\nc. e f",
        '"a b"\n“c d”\n«e f»',
        "'a b',\n`c d`,\n\"e f\",",
        '1. "a b"\n2. **c d**\n3. „e f“',
        "Query 1: a b\nQ2: c d\nquestion: e f",
        "\n\n  a b  \n\r\n\n\tc   d\n \ne f\n\n",
        "```\na b\nc d\ne f\n```",
        "```text\n1. a b\n2. c d\n3. e f\n```",
        "Here are three queries:\n\n1. a b\n2. c d\n3. e f\n\nLet me know if you need more!",
        "Sure! Here are some queries\na b\nc d\ne f",
        "## Queries\na b\nc d\ne f",
        '["a b", "c d", "e f"]',
        '```json\n[\n  "a b",\n  "c d",\n  "e f"\n]\n```',
        '[\n"a b",\n"c d",\n"e f",\n]',
        'Here are the queries:\n["a b", "c d", "e f"]',
        '{"queries": ["a b", "c d", "e f", 7], "n": 3}',
        "As an AI, I do my best. Here you are:\n1. a b\n2. c d\n3. e f",
        "a\u200b b\nc\x00 d\ne f",
    ],
)
def test_items_are_parsed_in_any_format(text):
    assert read_items(text) == ["a b", "c d", "e f"]


@pytest.mark.parametrize(
    "text",
    [
        "", "\n \n", "1.\n2.\n3.", "[" * 10_000, "```\n```", "Here are your queries:",
        "I apologize, this is not possible.", "I'm sorry, but I can't help with that.",
        "I’m sorry.\nPlease ask something else.",
        "As an AI language model, I cannot write queries.",
        "Unfortunately, I cannot provide queries for this.\nThe question is unclear.",
    ],
)  # fmt: skip
def test_refusals_and_list_marks_alone_are_not_items(text):
    assert read_items(text) == []


@pytest.mark.parametrize(
    "item",
    [
        "3.10 support of ray", "2.x migration", "*args of a remote function", "--num-cpus flag", "C++ (worker",
        "8:30 schedule of a job", "I can't connect to the cluster", '"num_cpus" and "num_gpus"', "ray.init()",
        "query.limit(5) of a table", "[a-z] in a runtime_env", '{"env_vars": {}}', "how does `ray.get` block?",
        "Wie skaliere ich ein Deployment?", "東京でのデプロイ", "a b [1]",
        'How do I pass ["a", "b"] on?',
    ],
)  # fmt: skip
def test_items_that_look_like_list_marks_stay_unchanged(item):
    assert read_items(f"{item}\n- {item} too") == [item, f"{item} too"]


@given(st.text(st.sampled_from('{}[]"\\answer: ,\n`-1.<think></think>')))
def test_no_text_raises_an_error(text):
    assert isinstance(read_items(text), list)
    assert isinstance(read_objects(text, ("answer",)), list)
    assert isinstance(read_json(text), dict | list | None)


@pytest.mark.parametrize("text", ["{" * 4_000, "[" * 4_000, '{"a":' * 4_000 + "1" + "}" * 4_000])
def test_unclosed_brackets_are_not_json(text: str) -> None:
    assert read_json(text) is None
    assert read_objects(text, ("answer",)) == []


@given(st.lists(st.sampled_from(["```", "```", "\n", " ", "a", "\t", "`", "py", "\r"]), max_size=14).map("".join))
def test_fences_are_removed_with_surrounding_blank_lines(text: str) -> None:
    assert replies._without_fences(text) == re.sub(r"^\s*```\w*\s*$", "", text, flags=re.MULTILINE)
