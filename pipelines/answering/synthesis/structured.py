"""A step's structured reply, `{"answer": …, "query_satisfied": …}`, read from whatever a model wrote.

Knows JSON and its usual damages (json-repair); no model. No text is an error: the worst is a plain answer.
"""

from dataclasses import dataclass
from typing import Any

from pipelines.answering.synthesis.extractive import UNKNOWN
from pipelines.llm.replies import read_objects, strip_reasoning

ANSWER, SATISFIED = "answer", "query_satisfied"

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {ANSWER: {"type": "string"}, SATISFIED: {"type": "boolean"}},
    "required": [ANSWER, SATISFIED],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class Step:
    """What one step says, and whether it answers the question."""

    answer: str
    satisfied: bool


def parse(text: str) -> Step:
    """The reply in `text`: fenced, with words around it, single quotes, Python's booleans, cut off or missing keys.

    Text without such an object is the answer itself. A step satisfies unless it says no, is empty or does not know.
    """
    objects = read_objects(strip_reasoning(text), (ANSWER, SATISFIED)) or read_objects(text, (ANSWER, SATISFIED))
    reply = objects[0] if objects else {ANSWER: text}
    answer = reply.get(ANSWER)
    parts = answer if isinstance(answer, list) else [answer]
    said = "\n".join(str(part) for part in parts if part is not None).strip()
    return Step(said, _true(reply.get(SATISFIED, True)) and bool(said) and not said.startswith(UNKNOWN))


def _true(value: object) -> bool:
    return value.strip().lower() in ("true", "yes", "1") if isinstance(value, str) else bool(value)
