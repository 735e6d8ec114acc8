"""Says how far a reader can rely on an answer, from what is known without another call.

docs/citations.md has the definition in words, and its figures.
"""

from pipelines.records import HIGH, LOW, SOME, Claims, Confidence

# Shares of the claims that a passage supports: from MOST on confidence is high, below HALF it is low.
MOST, HALF = 0.8, 0.5
# How likely the index answers the question (`likelihood`): high from SURE on, low below DOUBTFUL. The first claim is
# mostly the answer itself: high from WELL on. Chosen on 29 answers of a small model, whose figures are
# in docs/citations.md.
SURE, DOUBTFUL, WELL = 0.6, 0.1, 0.7
# A quotation claims what its source says; how likely it answers the question decides: low below RELEVANT, high from
# CERTAIN on, where 101 of 107 quote the right page (benchmarks/results/quotation-support.md). That needs less of the
# index, and it is low below HARDLY.
CERTAIN, RELEVANT, CERTAINLY_SURE, HARDLY = 0.84, 0.45, 0.4, 0.3
# The most that a quotation can have whose headings alone fit, that leaves something out, or that a leg found later.
UNCERTAIN = 0.75


def answers_for_certain(support: float, likelihood: float | None) -> bool:
    """Return whether a quotation with such a `support` is the answer, if the index answers by `likelihood`."""
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
    """Return how far a reader can rely on an answer with `claims` to a question that the index answers by `likelihood`.

    `first` is the support of the first claim, of a `quoted` answer that of its first source; `likelihood` is None where
    none was searched. An answer is not `whole` if its model was cut off or replaced, or a number of it does not hold.
    """
    share = claims.supported / claims.total if claims.total else float(known)
    beside = quoted and first < RELEVANT
    doubtful, least, well = (HARDLY, CERTAINLY_SURE, CERTAIN) if quoted else (DOUBTFUL, SURE, WELL)
    if not known or beside or share < HALF or (likelihood is not None and likelihood < doubtful):
        return LOW
    sure = likelihood is not None and likelihood >= least and first >= well
    return HIGH if whole and sure and claims.total and share >= MOST else SOME
