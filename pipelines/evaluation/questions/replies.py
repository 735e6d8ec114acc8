"""Extracts the questions from a language model's reply, ignoring the text around them.

Knows strings; knows no model, prompt or chunk.
"""

import re
from collections.abc import Iterator
from typing import Any

from pipelines.llm.replies import read_items, read_json
from pipelines.llm.retry import UnusableReply
from pipelines.text.cleaning import clean_for_model
from pipelines.text.phrases import read_phrases

FEWEST_WORDS, LONGEST = 3, 300  # minimum words and maximum characters of a question

PHRASES = read_phrases(__name__)


class NoQuestions(UnusableReply):
    """A reply has no usable question."""


def parse_questions(text: str, most: int, any_form: bool = False) -> list[str]:
    """Return at most `most` questions of a reply: JSON in any usual shape, or one per line with any list marker.

    With `any_form`, items of a JSON list need not look like questions: users also write key words and requests.
    Answers, remarks and refusals are left out, and so are questions that refer to a passage the reader does not see. An
    empty JSON list is a valid reply: the passage gives no question. Raises NoQuestions.
    """
    text = clean_for_model(text)
    listed = _json_strings(text)
    lines = read_items("\n".join(listed)) if listed else _asking_lines(text)
    questions = [question for line in lines if (question := _question(line, any_form and bool(listed)))]
    if not questions and listed != []:
        raise NoQuestions("there is no question in the reply")
    return questions[:most]


def _json_strings(text: str) -> list[str] | None:
    """Return the strings of a JSON reply that may be questions; None if it is not JSON."""
    value = read_json(text)
    return None if value is None else list(_strings(value))


def _strings(value: Any) -> Iterator[str]:
    """Yield the strings of plain lists or under keys that name questions; not under other keys (answer, source)."""
    if isinstance(value, str):
        yield " ".join(value.split())
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if re.match(r"q(?:uestion)?s?[ _]?\d*$", str(key), re.IGNORECASE):
                yield from _strings(item)


def _asking_lines(text: str) -> list[str]:
    """Return the questions of a reply that is not JSON, line by line without their list markers."""
    plain = re.sub(r"\*\*|^[^\S\n]*+(?:a|answer)\s*+(?:\d++\s*+)?[:.].*$", "", text, flags=re.IGNORECASE | re.MULTILINE)
    return [line for line in read_items(plain) if line.endswith(("?", "？")) or PHRASES["asks"].match(line)]


def _question(line: str, any_form: bool) -> str:
    """Return a line as a question, "" if it makes no sense without its passage."""
    bare = line.strip().strip("\"'“”").rstrip(".").strip()
    asks = bare.endswith(("?", "？")) or bool(PHRASES["asks"].match(bare))
    wordy = len(bare.split()) >= FEWEST_WORDS or not bare.isascii()
    if not (asks or any_form) or not wordy or len(bare) > LONGEST or PHRASES["points"].search(bare):
        return ""
    return bare if any_form or bare.endswith(("?", "？")) else f"{bare}?"
