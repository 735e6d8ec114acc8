"""A judge's score is read from whatever it wrote, and what is doubtful is no score."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.evaluation.judging.verdict import NoVerdict, Verdict, parse

SCORED = [
    # as asked: JSON
    ('{"reasoning": "Right.", "score": 4}', 4),
    ('{"score": 4.5, "reasoning": "Nearly."}', 4.5),
    ('```json\n{"score": "4/5", "reasoning": "Nearly."}\n```', 4),
    ('Here is my verdict:\n{"Score": 3, "Reasoning": "Half of it."}\nI hope this helps.', 3),
    ("{'score': 2, 'reasoning': 'It isn\\'t there'}", 2),
    ('{"score": "four", "explanation": "Good."}', 4),
    ('{"rating": 5, "comment": "All there."}', 5),
    ('{"quality": {"score": 4, "reasoning": "Good."}}', 4),
    ('{"score": 4, "reasoning": "It is cut o', 4),
    ('[{"score": 3, "reasoning": "So so."}]', 3),
    ('{"score": 4, "reasoning": "A {brace} and a "quote" inside"}', 4),
    ('<think>Perhaps {"score": 1}? No.</think>{"score": 5, "reasoning": "Fine."}', 5),
    ('{"reasoning": "It would be a score: 2 without the example", "score": 4}', 4),
    ('{"reasoning": "It maps {a: 1}, which is 2 of 5 steps", "score": 3}', 3),
    ('{"reasoning": "It uses {x}. Score: 2 would be too low.", "score": 4}\nThanks for {asking}', 4),
    ('{"reasoning": "The answer says {\\"score\\": 5} of itself", "score": 1}', 1),
    # the study's form: the score on the first line
    ("4\nThe answer is mostly right.", 4),
    ("4.5\n\nReasoning: it misses one setting.", 4.5),
    ("4.5 because it misses one setting.", 4.5),
    ("4,5 – es fehlt eine Einstellung", 4.5),
    ("5.", 5),
    ("**3**\nHalf of it is there.", 3),
    ("[[2]]", 2),
    ("3 - the answer names one of two ways", 3),
    ("4. The answer is mostly right.", 4),
    ("Four. The answer is mostly right.", 4),
    ("Three and a half: one step is missing", 3.5),
    ("4½", 4.5),
    # labelled
    ("Score: 4", 4),
    ("Score: 4/5", 4),
    ("**Score:** 4 / 5", 4),
    ("**Score: 4**", 4),
    ("Score: `4`", 4),
    ("score = 4.0", 4),
    ("Rating - 3", 3),
    ("Score (1-5): 4", 4),
    ("Score (from 1 to 5): 2", 2),
    ("Score on a scale of 1 (worst) to 5 (best): 4", 4),
    ("## Score\n\n4\n\n## Reasoning\nGood.", 4),
    ("Score: four out of five", 4),
    ("Grade: Five", 5),
    ("| Score | 4 |\n| Reasoning | fine |", 4),
    ("<score>4</score><reasoning>Good, 2 steps of 3.</reasoning>", 4),
    ("Score: \\boxed{4}", 4),
    ("My score is 4 out of 5.", 4),
    ("- Score: 3\n- Reasoning: Two of 4 facts are there.", 3),
    ("Score:\u00a04\u200b", 4),
    # reasoning before
    ("The answer names 2 of the 3 settings and cites them.\n\nScore: 4", 4),
    ("It explains 10 things in 3 steps; 50 % are right.\nFinal score: 2/5", 2),
    ("Accuracy score: 5\nCompleteness score: 3\nOverall score: 4", 4),
    ("A score of 5 would require an example.\nScore: 4", 4),
    ("The answer is right and complete.\n\n5", 5),
    ("The answer is right and complete.\n4/5", 4),
    ("Right in the main, so 4 out of 5.", 4),
    ("★★★★☆ Nearly all of it", 4),
    ("The answer is good: 4 stars", 4),
    ("Both name num_cpus, hence I would give it a 4.", 4),
    ("I'd rate this answer 3, as it leaves out the reason.", 3),
    ("The answer deserves a score of three, since half is missing.", 3),
    ("On a scale from 1 to 5, I give this a 4.", 4),
]

UNSCORED = [
    "",
    "   ",
    "The answer is good.",
    "I'm sorry, I can't rate this.",
    "Score: N/A",
    "Score: <1-5>",
    "Score: 1-5",
    "Score: 3-4",
    "Score: 3 or 4",
    "Score: 7",
    "Score: 0",
    "Score: -3",
    "Score: 45",
    "Score: 8/10",
    "Score: 80%",
    "Score: ten",
    "8\nVery good.",
    '{"score": null, "reasoning": "I cannot tell"}',
    '{"score": 6, "reasoning": "Beyond"}',
    '{"score": "good", "reasoning": "It is"}',
    '{"score": true}',
    f'{{"score": {"9" * 400}}}',
    '{"score": 2, "reasoning": "a"}\n{"score": 4, "reasoning": "b"}',
    '{"score": 4}\nor rather {score: 3}',
    '{"reasoning": "The answer says {"score": 5} of itself", "score": 1,}',
    '{"reasoning": "The answer is cut before its sc',
    "Score: 3\nOn reflection:\nScore: 4",
    "1. The answer names the setting.\n2. It cites a source.",
    "1. The answer names the setting.",
    "The answer was given in 3 steps and names 2 settings.",
    "It took version 2.4 and 5 workers",
    "The score reflects one omission.",
    "A two-step answer that names one of the settings",
    "4\nIt is right.\n2",
]


@pytest.mark.parametrize(("text", "score"), SCORED)
def test_the_score_is_read(text, score):
    found = parse(text)
    assert found.score == score
    assert isinstance(found.score, int) == float(score).is_integer()


@pytest.mark.parametrize("text", UNSCORED)
def test_what_is_doubtful_is_no_score(text):
    with pytest.raises(NoVerdict):
        parse(text)


@pytest.mark.parametrize(
    ("text", "reasoning"),
    [
        ('{"reasoning": "It says num_cpus.", "score": 4}', "It says num_cpus."),
        ('{"score": 4}\nReasoning: it is right.', "it is right."),
        ('{"reasoning": "It maps {a: 1} to {b}.", "score": 4}', "It maps {a: 1} to {b}."),
        ("4\nIt says num_cpus and **why**.", "It says num_cpus and why."),
        ("Score: 4\nReasoning: It is right.", "It is right."),
        ("It is right.\n\nScore: 4/5", "It is right."),
        ("4.5 because one is missing", "one is missing"),
        ("5", ""),
    ],
)
def test_the_reasoning_is_what_stands_beside_the_score(text, reasoning):
    assert parse(text).reasoning == reasoning


def test_the_scale_is_the_callers():
    assert parse("Score: 8/10", 0, 10).score == 8
    with pytest.raises(NoVerdict, match="not from 0 to 1"):
        parse("Score: 2", 0, 1)


def test_the_error_says_what_is_wrong():
    for text, words in [("Score: 7", "7 is not from 1 to 5"), ("Score: 8/10", "out of 10"), ("Good.", "no score")]:
        with pytest.raises(NoVerdict, match=words):
            parse(text)
    with pytest.raises(NoVerdict, match="different scores: 3, 4"):
        parse("Score: 3\nScore: 4")


@given(st.text(alphabet=st.sampled_from(list('score:rating {}[]"/.-–15479½%\n*#<>|★☆oneof4')), max_size=80))
def test_no_text_is_an_error_of_another_kind(text):
    try:
        found = parse(text)
    except NoVerdict:
        return
    assert isinstance(found, Verdict) and 1 <= found.score <= 5


@given(
    st.sampled_from([1, 2, 3, 4, 5, 1.5, 4.5]),
    st.sampled_from(["Score: {}", "**Score:** {}/5", "{}\nWell.", '{{"score": {}}}']),
)
def test_each_score_is_read_in_each_form(score, form):
    assert parse(form.format(score)).score == score
