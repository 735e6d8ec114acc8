"""Hostile texts slow down no reader of answers, replies, questions or pages, however they arrive.

`make test` counts calls at small lengths. `make test-all` measures CPU time up to 128,000 characters. `python -m
kit.answer_readers` in `tests` prints the table of all shapes.
"""

import math

import pytest
from kit.answer_readers import (
    CHECKS,
    LONGEST_QUESTION,
    LONGEST_REPLY,
    PAGES,
    PASSAGES,
    QUESTIONS,
    REPLIES,
    STAGES,
    WRITERS,
    methods_of,
    patterns,
    searching,
    unread_functions,
)
from kit.hostile import LENGTHS, SHAPES, THIRTY, Timed, calls_of, timed, too_slow
from kit.pattern_shapes import is_short, repeats_groups_possessively, shapes_of
from kit.reporting import table

from pipelines.answering.conversation import background, followup, smalltalk
from pipelines.indexing.folders import shortcodes
from pipelines.indexing.reading.html import shown
from pipelines.llm import protocol

GROUPS = {
    "stages": STAGES,
    "checks": CHECKS,
    "replies": REPLIES,
    "passages": PASSAGES,
    "writers": WRITERS,
    "questions": QUESTIONS,
    "pages": PAGES,
}
READERS = {f"{kind}: {name}": read for kind, group in GROUPS.items() for name, read in group.items()}
# On a CPU that others use too. A reader that rereads its text needs minutes for 128,000 characters.
BOUND_S, TELLING_S, MOST_GROWTH = 10.0, 0.5, 1.5
QUESTION_S = 0.5  # ten times the slowest one
PATTERN_LENGTH, PATTERN_S = 16_000, 0.1  # linear patterns take a hundredth
SHORT, SHORT_PAGE, TIMES = 400, 800, 4  # a shorter page fits into a chunk and is not cut
MOST_CALLS_MORE, FEW_CALLS = TIMES**1.4, 10_000  # quadratic time means 16 times as many calls
OFTEN = dict(list(THIRTY.items())[::3])
WARM = "Some words " * 300  # longer than a chunk: excludes imports and first-use caches from the count
# Texts arrive in deltas of 4 here. The exhaustive tier tests the other ways, and pages of other types.
SELDOM = {name for name in READERS if name.startswith("stages") and not name.endswith("deltas of 4")} | {
    f"pages: {name}" for name in PAGES if name not in ("HTML", "Markdown")
}

rows = table("What readers take for hostile texts", ("reader", "shape", "seconds", "growth"))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.exhaustive if name in SELDOM else ()) for name in READERS]
)
def test_call_count_grows_linearly_with_hostile_text(name: str) -> None:
    read = READERS[name]
    read(WARM)
    length = SHORT_PAGE if name.startswith("pages") else SHORT
    lengths = (length, length * TIMES)
    counted = {title: tuple(calls_of(read, shape(n)) for n in lengths) for title, shape in OFTEN.items()}
    assert not {
        title: (few, many) for title, (few, many) in counted.items() if many > MOST_CALLS_MORE * few + FEW_CALLS
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", QUESTIONS)
def test_no_question_takes_long(name: str) -> None:
    shapes = {title: SHAPES[title] for title in ("one word", "spaces", "dashes", "a. and spaces", "< and spaces")}
    found = timed(QUESTIONS[name], shapes, (LONGEST_QUESTION,), limit_s=QUESTION_S, runs=1)
    assert not {title: one for title, one in found.items() if one.error or math.isinf(one.longest)}


@pytest.mark.exhaustive
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("name", READERS)
def test_no_reader_takes_long_for_a_hostile_text(name: str, rows: list[tuple[str, ...]]) -> None:
    longest = longest_of(name)
    lengths = (longest // 16, longest)  # enough to tell the growth
    found = timed(READERS[name], THIRTY, lengths, limit_s=BOUND_S, runs=1)
    again = {shape: THIRTY[shape] for shape, one in found.items() if is_fault(one)}
    found |= timed(READERS[name], again, lengths, limit_s=BOUND_S, runs=3) if again else {}
    shape, worst = max(found.items(), key=lambda one: one[1].longest)
    rows.append((name, shape, f"{worst.longest:.3f}", f"{worst.growth:.2f}"))
    assert not {title: one for title, one in found.items() if is_fault(one)}


# Characters that a pattern reads at most, if fewer than PATTERN_LENGTH. The code cuts or refuses longer texts.
BOUNDED = {
    "pipelines.answering.conversation.background": background.LONGEST,
    "pipelines.answering.conversation.followup": followup.LONGEST,
    "pipelines.answering.conversation.smalltalk": smalltalk.LONGEST,
    "pipelines.indexing.folders.shortcodes._ACTION": shortcodes.LONGEST,
    "pipelines.indexing.folders.shortcodes._UNSEEN": shortcodes.LONGEST,
    "pipelines.indexing.reading.formats.markdown:": 500,  # reads a match of _XREF
    "pipelines.indexing.reading.html.shown._EXPONENT": shown._SHORT,
    "pipelines.llm.": protocol.LONGEST_MESSAGE,
}


def test_no_pattern_repeats_a_group_possessively() -> None:
    """Python before 3.11.5 matches such groups wrongly (CPython issue 106052). `(?>(?:…)*)` is right everywhere."""
    assert [name for name, pattern in patterns() if repeats_groups_possessively(pattern)] == []


@pytest.mark.slow
def test_no_pattern_is_slow_on_repetitions_of_its_own_parts() -> None:
    faults: dict[str, list[str]] = {}
    for name, pattern in patterns():
        methods = methods_of(name)
        if methods and not is_short(pattern):
            longest = next((most for begin, most in BOUNDED.items() if name.startswith(begin)), PATTERN_LENGTH)
            shapes = {**shapes_of(pattern), **OFTEN}
            slow = too_slow(searching(pattern, methods), shapes, longest, PATTERN_S)
            faults |= {name: slow} if slow else {}
    assert not faults


# Functions of the reading packages that read no text of others, or not a text as a whole.
NO_READERS = {
    "pipelines.answering.writing.stages.TextStage.feed",  # abstract
    "pipelines.evaluation.judging.dimensions.parse_dimensions",  # reads a setting
    "pipelines.indexing.reading.sketch.is_same",  # compares digests
    "pipelines.llm.servers.http.is_loopback",  # reads a setting
    "serve.api.openai.sources.SourceWriter.feed",  # returns its text
}
ALL_KINDS = f"""# Title

Ray has tasks [1] and `actors`. See [a](https://docs.ray.io/a.html), https://docs.ray.io/a.html, std::string, https:x
and :ref:`a`. {"word-" * 2_000}

- one
- two

```python
ray.init()
```

| a | b |
|---|---|
| 1 | 2 |

{{"answer": "x", "query_satisfied": true, "score": 4}}
1. What is Ray?
Score: 4/5
"""


@pytest.mark.slow
def test_every_function_that_reads_a_text_has_a_reader_here() -> None:
    assert set(unread_functions(ALL_KINDS)) == NO_READERS, "add the new ones to kit/answer_readers.py"


def longest_of(name: str) -> int:
    """Return the greatest length that a reader gets: questions and replies are limited."""
    if name.startswith("questions"):
        return LONGEST_QUESTION
    return LONGEST_REPLY if name.startswith(("stages", "checks", "replies", "writers")) else LENGTHS[-1]


def is_fault(one: Timed) -> bool:
    slow = one.longest > TELLING_S and one.growth > MOST_GROWTH
    return bool(one.error) or math.isinf(one.longest) or slow
