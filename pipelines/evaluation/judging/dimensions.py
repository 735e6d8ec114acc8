"""Dimensions for judging answers: names with prompts.

A prompt is filled from an example and an answer; the prompts are in dimensions.yaml. Knows strings; knows no model and
no scores. Text from readers, pages and models is quoted between tags that it can't close.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pipelines.answering.synthesis.prompts import Template
from pipelines.evaluation.dataset import Example
from pipelines.llm.replies import object_schema
from pipelines.records import Answer
from pipelines.text.cleaning import clean_for_model
from pipelines.text.phrases import read_table

_TABLE = read_table(__name__)
SYSTEM, REMINDER = _TABLE["system"], _TABLE["reminder"]
COMPARE, COMPARE_REMINDER = Template(_TABLE["compare"]), _TABLE["compare_reminder"]
PADDED = Template(_TABLE["padded"])
SCHEMA = object_schema({"reasoning": {"type": "string"}, "score": {"type": "number"}})

VARIABLES = frozenset({"question", "answer", "reference", "context"})
_TAG = re.compile(
    r"<(?=\s*+(?:/\s*+)?(?:question|reference_answer|generated_answer|context|answer_[ab])\b)", re.IGNORECASE
)


class BadDimension(ValueError):
    """A dimension is unknown, or its prompt can't be used."""


class NotJudgeable(ValueError):
    """An answer lacks a part that a dimension needs; the message says which, and how to get it."""


@dataclass(frozen=True, slots=True)
class Dimension:
    """A criterion: a name and a prompt with {answer} and any of {question}, {reference} and {context}."""

    name: str
    template: Template

    def __post_init__(self) -> None:
        unknown = self.template.variables - VARIABLES
        if unknown or "answer" not in self.template.variables:
            raise BadDimension(
                f"the prompt of dimension {self.name!r} must have {{answer}} and may have "
                f"{', '.join(f'{{{name}}}' for name in sorted(VARIABLES - {'answer'}))}; "
                f"it has {', '.join(f'{{{name}}}' for name in sorted(self.template.variables)) or 'none'}"
            )

    def prompt(self, example: Example, answer: Answer) -> str:
        """Return the prompt for one answer. Raises NotJudgeable."""
        if not answer.text.strip():
            raise NotJudgeable("the answer has no text")
        given = {"question": example.question, "answer": answer.text}
        if "reference" in self.template.variables:
            given["reference"] = _reference(example)
        if "context" in self.template.variables:
            given["context"] = _context(answer)
        used = {name: quote(text) for name, text in given.items() if name in self.template.variables}
        return self.template.format(**used)


DIMENSIONS: Mapping[str, Dimension] = {
    name: Dimension(name, Template(f"{text}\n{_TABLE['reply']}")) for name, text in _TABLE["dimensions"].items()
}


def quote(text: str) -> str:
    """Return a string that is safe between tags: it has no invisible characters and can't close a tag."""
    return _TAG.sub("&lt;", clean_for_model(text)).strip()


def _reference(example: Example) -> str:
    if not example.answer:
        raise NotJudgeable("the question has no reference answer: make it with `raydex questions answer DATASET`")
    return example.answer


def _context(answer: Answer) -> str:
    if not answer.hits:
        raise NotJudgeable("the answer was made without context")
    return "\n\n".join(hit.passage for hit in answer.hits)


def dimension_of(given: str | Dimension) -> Dimension:
    """Return a dimension, looked up by name if it is built in. Raises BadDimension."""
    if isinstance(given, Dimension):
        return given
    if given not in DIMENSIONS:
        raise BadDimension(f"no dimension is called {given!r}; there are {', '.join(DIMENSIONS)}")
    return DIMENSIONS[given]


def parse_dimensions(text: str) -> tuple[Dimension, ...]:
    """Return the dimensions in a list like "quality,brevity=brevity.txt": built-in names, or NAME=FILE with a prompt.

    Raises BadDimension and TemplateError.
    """
    parts = [part.strip().partition("=") for part in text.split(",")]
    return tuple(
        Dimension(name, Template(_read_prompt(path))) if is_own else dimension_of(name) for name, is_own, path in parts
    )


def _read_prompt(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadDimension(f"the prompt {path} can't be read: {error}") from error
