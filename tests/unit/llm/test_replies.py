"""What a model replies is read in every form that models write, and nothing breaks the reading."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.llm.replies import read_items, read_json, read_objects, strip_reasoning


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("<think>1 or 2?</think>2", "2"),
        ("1 or 2?\n</think>\n2", "\n2"),
        ("2", "2"),
        ("<think>cut off", "<think>cut off"),
    ],
)
def test_reasoning_ends_at_its_closing_mark(text, rest):
    assert strip_reasoning(text) == rest


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": [1]}', {"a": [1]}),
        ('Here it is:\n```json\n["x", "y"]\n```\nDone.', ["x", "y"]),
        ("{'a': 'cut o", {"a": "cut o"}),
        ('<think>{"a": 1}</think>{"a": 2}', {"a": 2}),
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
def test_objects_are_those_that_have_one_of_the_keys(text, objects):
    assert read_objects(text, ("score", "rating")) == objects


def test_items_keep_their_order_and_count_once():
    assert read_items("1. b c\n2. a b\n3. B  C.\n4. c d") == ["b c", "a b", "c d"]


@given(st.text(st.sampled_from('{}[]"\\answer: ,\n`-1.<think></think>')))
def test_no_text_is_an_error(text):
    assert isinstance(read_items(text), list)
    assert isinstance(read_objects(text, ("answer",)), list)
    assert isinstance(read_json(text), dict | list | None)
