"""Rates how far a reader can rely on an answer, from known figures without another model call.

docs/citations.md has the definition in words, benchmarks/results/confidence.md has the figures.
"""

from pipelines.records import HIGH, LOW, SOME, Claims, Confidence

# Shares of claims that a passage supports: confidence may be high from MOST upwards, and is low below HALF.
MOST, HALF = 0.8, 0.5
# How likely the index answers the question (`likelihood`): high from SURE upwards, low below DOUBTFUL. The first claim
# is mostly the answer itself: high from WELL upwards. Chosen on 29 answers of a small model:
# benchmarks/results/confidence.md.
SURE, DOUBTFUL, WELL = 0.6, 0.1, 0.7
# A quotation always agrees with its source, so its chance of answering the question decides: low below RELEVANT, high
# from CERTAIN upwards, where 101 of 107 quote the right page (benchmarks/results/quotation-support.md). The index's
# likelihood may then be lower: high from CERTAINLY_SURE upwards, low below HARDLY.
CERTAIN, RELEVANT, CERTAINLY_SURE, HARDLY = 0.84, 0.45, 0.4, 0.3
# The most for a quotation of which only the headings fit, that omits something, or that a leg ranked lower.
UNCERTAIN = 0.75


def answers_for_certain(support: float, likelihood: float | None) -> bool:
    """Return whether a quotation with this `support` is certainly the answer, given the index's `likelihood`."""
    return support >= CERTAIN and likelihood is not None and likelihood >= CERTAINLY_SURE


def rate_confidence(
    claims: Claims,
    first: float,
    likelihood: float | None,
    *,
    known: bool = True,
    whole: bool = True,
    quoted: bool = False,
) -> Confidence:
    """Return how far a reader can rely on an answer with `claims`, given the index's `likelihood` of answering.

    `first` is the support of the first claim, or for a `quoted` answer of its first source. `likelihood` is None if no
    index was searched. An answer is not `whole` if its model was cut off or replaced, or if one of its citations is
    unsupported.
    """
    share = claims.supported / claims.total if claims.total else float(known)
    beside = quoted and first < RELEVANT
    doubtful, least, well = (HARDLY, CERTAINLY_SURE, CERTAIN) if quoted else (DOUBTFUL, SURE, WELL)
    if not known or beside or share < HALF or (likelihood is not None and likelihood < doubtful):
        return LOW
    sure = likelihood is not None and likelihood >= least and first >= well
    return HIGH if whole and sure and claims.total and share >= MOST else SOME
