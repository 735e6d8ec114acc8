"""Reads the structured reply of a step: an answer, and whether it satisfies the question.

Any text is valid: at worst, it is a plain answer.
"""

from dataclasses import dataclass

from pipelines.answering.grounding.answerable import says_unknown
from pipelines.llm.replies import object_schema, read_objects

ANSWER, SATISFIED = "answer", "query_satisfied"

SCHEMA = object_schema({ANSWER: {"type": "string"}, SATISFIED: {"type": "boolean"}})


@dataclass(frozen=True, slots=True)
class Step:
    """The answer of one step, and whether it satisfies the question."""

    answer: str
    satisfied: bool


def parse_step(text: str) -> Step:
    """Return the step in `text`; without a JSON object, the text itself is the answer.

    A step satisfies the question unless it says no, is empty, or says that it doesn't know.
    """
    keys = (ANSWER, SATISFIED)
    objects = read_objects(text, keys)
    reply = objects[0] if objects else {ANSWER: text}
    answer = reply.get(ANSWER)
    parts = answer if isinstance(answer, list) else [answer]
    answer = "\n".join(str(part) for part in parts if part is not None).strip()
    return Step(answer, _is_true(reply.get(SATISFIED, True)) and bool(answer) and not says_unknown(answer))


def _is_true(value: object) -> bool:
    return value.strip().lower() in ("true", "yes", "1") if isinstance(value, str) else bool(value)
