"""Tells which statements of an answer are claims, that is, say something about the subject.

This module looks at statements, words and refusals, but not at hits or vectors.
"""

from pipelines.answering.grounding.words import content_words
from pipelines.answering.writing.stages.refusals import is_refusal
from pipelines.answering.writing.stages.text import Statement, StatementKind
from pipelines.text.phrases import read_phrases

LEAST_WORDS = 2  # content words of a claim: "Ray scales." has two, "Yes, it does." one

PHRASES = read_phrases(__name__)

# Words (stemmed) about the answer itself: "For example, you can follow these steps below." states nothing.
_TALK = content_words(
    "answer question example following follows step steps below above here help helps hope information details note "
    "yes sure certainly okay summary conclusion overall understand clear let know feel free happy welcome thank thanks "
    "passage passages provided given mentioned based documentation"
)


def is_claim(statement: Statement) -> bool:
    """Return whether it has words about the subject and is no heading, lead-in, question, courtesy or refusal."""
    if statement.kind is StatementKind.HEADING:
        return False
    if statement.kind is not StatementKind.CODE and (
        PHRASES["no_claim"].search(statement.text) or is_refusal(statement.text)
    ):
        return False
    return len(content_words(statement.text) - _TALK) >= LEAST_WORDS
