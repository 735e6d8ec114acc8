"""Tells whether hits are about the subject that a follow-up question continues.

This module looks only at words.
"""

from collections.abc import Sequence

from pipelines.answering.grounding.words import content_words, words_of, words_share
from pipelines.answering.hits import full_text
from pipelines.records import Hit

ENOUGH = 0.5  # least share of the subject's words in a hit: "a Serve deployment" is often called "a deployment"


def about_subject(subject: str, hits: Sequence[Hit]) -> list[Hit]:
    """Return the hits that are about `subject`, in order; all hits if the subject has no words."""
    words = content_words(subject)
    if not words:
        return list(hits)
    return [hit for hit in hits if words_share(words, words_of(full_text(hit))) >= ENOUGH]


def subject_first(subject: str, hits: Sequence[Hit]) -> tuple[tuple[Hit, ...], bool]:
    """Return the hits, those about `subject` first, and whether there are any."""
    about = {hit.chunk_id for hit in about_subject(subject, hits)}
    return tuple(sorted(hits, key=lambda hit: hit.chunk_id not in about)), bool(about)
