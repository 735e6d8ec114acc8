"""Says how far a reader can rely on an answer, from what is known without another call.

docs/citations.md has the definition in words, and its figures.
"""

from pipelines.records import HIGH, LOW, SOME, Claims, Confidence

# Shares of the claims that a passage supports: from MOST on confidence is high, below HALF it is low.
MOST, HALF = 0.8, 0.5
# How likely the index answers the question (`likelihood`): high from SURE on, low below DOUBTFUL.
SURE, DOUBTFUL = 0.6, 0.1


def rate_confidence(claims: Claims, likelihood: float | None, *, known: bool = True, whole: bool = True) -> Confidence:
    """Return how far a reader can rely on an answer with `claims` to a question that the index answers by `likelihood`.

    `likelihood` is None where none was searched. An answer is not `whole` if its model was cut off or replaced.
    """
    share = claims.supported / claims.total if claims.total else float(known)
    if not known or share < HALF or (likelihood is not None and likelihood < DOUBTFUL):
        return LOW
    sure = likelihood is not None and likelihood >= SURE
    return HIGH if whole and sure and claims.total and share >= MOST else SOME
