"""Tells which statements of an answer are claims: they state something about the subject.

Knows statements, words and refusals; no hits and no vectors.
"""

import re

from pipelines.answering.grounding.words import content_words
from pipelines.answering.writing.refusals import is_refusal
from pipelines.answering.writing.text import Statement, StatementKind

LEAST_WORDS = 2  # content words of a claim: "Ray scales." has two, "Yes, it does." one

YES_OR_NO = re.compile(r"\A\W*(?:Yes|No|Ja|Nein|Oui|Non|Sí|是的?|不是?)[,.!:;，。！]\s*", re.IGNORECASE)

# Words (stemmed) about the answer itself: "For example, you can follow these steps below." states nothing.
_TALK = content_words(
    "answer question example following follows step steps below above here help helps hope information details note "
    "yes sure certainly okay summary conclusion overall understand clear let know feel free happy welcome thank thanks "
    "passage passages provided given mentioned based documentation"
)
_NO_CLAIM = re.compile(
    r"[:：]\W*\Z|[?？][\"')\]”’*_]*\Z"
    r"|\A\W*(?:I hope|Hope (?:this|that)|Let me know|Feel free|If you (?:have|need) (?:any|more|further)|Please let me"
    r"|(?:I am|I'm) (?:sorry|not sure|happy|glad)|Sorry\b)",
    re.IGNORECASE,
)


def is_claim(statement: Statement) -> bool:
    """Return whether it is no heading, lead-in, question, courtesy or refusal, and has words about the subject."""
    if statement.kind is StatementKind.HEADING:
        return False
    if statement.kind is not StatementKind.CODE and (_NO_CLAIM.search(statement.text) or is_refusal(statement.text)):
        return False
    return len(content_words(statement.text) - _TALK) >= LEAST_WORDS
