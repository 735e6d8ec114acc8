"""Decides whether anything that was retrieved could support an answer.

Knows words and scores of hits; no model. docs/citations.md has the figures.
"""

from collections.abc import Sequence

from pipelines.answering.grounding.citations import content, full_text
from pipelines.answering.retrieval.legs import VECTOR
from pipelines.lexical import terms
from pipelines.records import Hit

# On the hits of 83 users' questions and 30 about other things, all-MiniLM-L6-v2: 82 and 2 pass; by words alone 83
# and 20. Other models' cosines may all be high: then the words decide.
CLOSE, SOME, NEARLY_ALL = 0.35, 0.3, 0.8


def answerable(question: str, hits: Sequence[Hit]) -> bool:
    """Whether anything retrieved could support an answer: the gate before a language model is asked. Never raises.

    Lenient, as the model may still say that it does not know: nearly all of the question's words stand in a hit, or
    a hit is close by vector and has some of them. A question in other letters than the Latin ones needs no words
    where vectors are at hand.
    """
    asked = content(question)
    share = (
        max((len(asked & frozenset(terms(full_text(hit)))) / len(asked) for hit in hits), default=0.0) if asked else 0.0
    )
    cosines = [hit.scores[VECTOR] for hit in hits if VECTOR in hit.scores]
    if not cosines:
        return bool(hits) and (share >= SOME)
    return share >= NEARLY_ALL or (max(cosines) >= CLOSE and (share >= SOME or not asked or not question.isascii()))
