"""A judge's score is parsed from intact or damaged JSON, or from `Score: n`. An ambiguous reply has no score."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.evaluation.judging.verdict import NoVerdict, Verdict, parse_verdict

SCORED = [
    # JSON as requested
    ('{"reasoning": "Right.", "score": 4}', 4),
    ('{"score": 4.5, "reasoning": "Nearly."}', 4.5),
    ('```json\n{"score": "4/5", "reasoning": "Nearly."}\n```', 4),
    ('Here is my verdict:\n{"Score": 3, "Reasoning": "Half of it."}\nI hope this helps.', 3),
    ('{"quality": {"score": 4, "reasoning": "Good."}}', 4),
    ('[{"score": 3, "reasoning": "So so."}]', 3),
    # damaged
    ("{'score': 2, 'reasoning': 'It isn\\'t there'}", 2),
    ('{"score": 4, "reasoning": "It is cut o', 4),
    ('{"score": 4, "reasoning": "A {brace} and a "quote" inside"}', 4),
    # numbers in the reasoning are not a score
    ('{"reasoning": "It would be a score: 2 without the example", "score": 4}', 4),
    ('{"reasoning": "It maps {a: 1}, which is 2 of 5 steps", "score": 3}', 3),
    ('{"reasoning": "It uses {x}. Score: 2 would be too low.", "score": 4}\nThanks for {asking}', 4),
    ('{"reasoning": "The answer says {\\"score\\": 5} of itself", "score": 1}', 1),
    # without JSON
    ("Score: 4", 4),
    ("Score: 4/5", 4),
    ("**Score:** 4 / 5", 4),
    ("**Score: 4**", 4),
    ("score = 4.0", 4),
    ("Score: 4.5\nReasoning: One of 2 steps is missing.", 4.5),
    ("- Score: 3\n- Reasoning: Two of 4 facts are there.", 3),
    ("A score of 5 would require an example.\nScore: 4", 4),
    ("It is right.\n\nFinal score: 4", 4),
    ("Score:\u00a04\u200b", 4),
    ("Score: 4\n\nThat is, score: 4/5", 4),
]

UNSCORED = [
    "", "   ", "4", "The answer is good.", "I'm sorry, I can't rate this.", "Score: N/A", "Score: NaN", "Score: <1-5>",
    "Score: 1-5", "Score: 3-4", "Score: 3 or 4", "Score: 7", "Score: 0", "Score: -3", "Score: 45", "Score: 8/10",
    "Score: 80%", "Score: ten", '{"score": true}', '{"score": 0}', '{"score": NaN, "reasoning": ""}',
    '{"score": Infinity}', f'{{"score": {"9" * 400}}}', '{"score": null, "reasoning": "I cannot tell"}',
    '{"score": 6, "reasoning": "Beyond"}', '{"score": "good", "reasoning": "It is"}',
    '{"score": "3-4", "reasoning": "Between"}', '{"reasoning": "The answer is cut before its sc',
    '{"reasoning": "The answer says {"score": 5} of itself", "score": 1,}',
    '{"score": 2, "reasoning": "a"}\n{"score": 4, "reasoning": "b"}', '{"score": 4}\nor rather {score: 3}',
    "Score: 3\nOn reflection:\nScore: 4", "The answer was given in 3 steps and names 2 settings.",
    "The score reflects one omission.",
]  # fmt: skip


@pytest.mark.parametrize(("text", "score"), SCORED)
def test_score_is_parsed(text, score):
    found = parse_verdict(text)
    assert found.score == score
    assert isinstance(found.score, int) == float(score).is_integer()


@pytest.mark.parametrize("text", UNSCORED)
def test_ambiguous_reply_has_no_score(text):
    with pytest.raises(NoVerdict):
        parse_verdict(text)


@pytest.mark.parametrize(
    ("text", "reasoning"),
    [
        ('{"reasoning": "It says num_cpus.", "score": 4}', "It says num_cpus."),
        ('{"reasoning": "It maps {a: 1} to {b}.", "score": 4}', "It maps {a: 1} to {b}."),
        ("Score: 4\nReasoning: It is right.", "It is right."),
        ("It is right.\n\nScore: 4/5", "It is right."),
        ("**Score:** 4/5\nRight.", "Right."),
        ('{"score": 5}', ""),
        ("Score: 5", ""),
    ],
)
def test_reasoning_is_the_text_around_the_score(text, reasoning):
    assert parse_verdict(text).reasoning == reasoning


def test_caller_sets_the_scale():
    assert parse_verdict("Score: 8/10", 0, 10).score == 8
    with pytest.raises(NoVerdict, match="not from 0 to 1"):
        parse_verdict("Score: 2", 0, 1)


def test_error_explains_the_problem():
    for text, words in [("Score: 7", "7 is not from 1 to 5"), ("Score: 8/10", "out of 10"), ("Good.", "no score"),
                        ('{"score": "good"}', "'good' is not a number")]:  # fmt: skip
        with pytest.raises(NoVerdict, match=words):
            parse_verdict(text)
    with pytest.raises(NoVerdict, match="different scores: 3, 4"):
        parse_verdict("Score: 3\nScore: 4")


@given(st.text(alphabet=st.sampled_from(list('score:reasoning {}[]"/.-–15479½%\n*#<>|of=')), max_size=80))
def test_no_text_raises_another_kind_of_error(text):
    try:
        found = parse_verdict(text)
    except NoVerdict:
        return
    assert isinstance(found, Verdict) and 1 <= found.score <= 5


@given(
    st.sampled_from([1, 2, 3, 4, 5, 1.5, 4.5]),
    st.sampled_from(["Score: {}", "**Score:** {}/5", "Well.\nScore: {}", '{{"score": {}}}']),
)
def test_each_score_is_parsed_in_each_form(score, form):
    assert parse_verdict(form.format(score)).score == score
