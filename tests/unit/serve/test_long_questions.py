"""Long questions: processing time grows linearly, and a question over the limit is refused with the limit."""

import time
from collections.abc import Callable

import pytest

from pipelines.answering.conversation.followup import complete
from pipelines.answering.conversation.smalltalk import find_smalltalk, strip_smalltalk
from pipelines.lexical import terms
from pipelines.text.detection import find_language

UNITS = [
    "a", "(", "word ", "问", "a\u0301", "`", "http://a.b/c?d=e&", "1", '"', "\n", "[1]", " ", "it ", "in ", ".", "aA",
    ":", "how do i ", "<",
]  # fmt: skip
STEPS: dict[str, Callable[[str], object]] = {
    "language": find_language,
    "follow-up": lambda text: complete(text, ["How do I use lru_cache in Python?"]),
    "follow-up after it": lambda text: complete("How do I clear it?", [text]),
    "small talk": find_smalltalk,
    "greeting before": strip_smalltalk,
    "terms": terms,
}


def seconds(step: Callable[[str], object], text: str) -> float:
    """Return this thread's CPU seconds: other work on the machine does not count."""
    began = time.thread_time()
    step(text)
    return time.thread_time() - began


@pytest.mark.exhaustive  # it measures time
@pytest.mark.parametrize("unit", UNITS, ids=ascii)
@pytest.mark.parametrize("name", STEPS)
def test_step_takes_linear_time(name, unit):
    """Sixteen times the text may take 32 times as long; in a quadratic step it takes 256 times as long."""
    short, long = ((f"how {unit * (length // len(unit))} x") for length in (2_000, 32_000))
    base = max(min(seconds(STEPS[name], short) for _ in range(3)), 0.001)
    assert any(seconds(STEPS[name], long) < 32 * base for _ in range(3)), "a busy machine may pause one of them"
