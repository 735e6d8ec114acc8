"""Recommends how the answers of a model should come about, by what its trial found. Pure arithmetic."""

from dataclasses import dataclass

from pipelines.records import FULL, QUOTED, SUMMARY, WRITTEN, Form

# A model writes alone if all of these hold. By hand: with 20 questions a share is known to about 0.1.
SUPPORTED = 0.9  # of its claims
REFUSES = 0.8  # of the questions about other things
WRONGLY = 0.1  # of the questions that the collection answers, refused at most
BEHIND = 0.1  # its share of right sections below that of quotations, at most
# It is capable, so it writes from whole sections and its refusals stand, if these hold too. By hand.
WELL_SUPPORTED, REFUSES_WELL = 0.95, 0.9
# Its words stand below a quotation if it refuses as much, says something as often, and so much of it is supported: the
# rest is left out. One that answers from passages about other things also misreads a quotation that does not answer:
# docs/llms.md has the grades.
ANSWERS, HALF = 0.5, 0.5


@dataclass(frozen=True, slots=True)
class TrialScores:
    """What a trial counted: of `asked` questions with known sections, and of `foreign` ones about other things.

    `answered` are those that the model claims something about, `cited` those whose right section an answer cites with
    support, `quoted` those whose right section the quotations cite. `refused` of the foreign ones were refused.
    `words_s` are words a second from the question to the end of its answer, `failed` the calls that failed.
    """

    asked: int
    answered: int
    cited: int
    quoted: int
    claims: int
    supported: int
    foreign: int
    refused: int
    words_s: float
    failed: int = 0

    @property
    def support(self) -> float:
        """The share of its claims that a passage supports; 0 without any."""
        return self.supported / self.claims if self.claims else 0.0


def recommend(scores: TrialScores) -> tuple[Form, str]:
    """Return the form of a model's answers, and why."""
    reasons = _against_writing(scores)
    if not reasons and _is_capable(scores):
        return FULL, "it cites no less than quotations would, invents nothing, and refuses what is not answered"
    if not reasons:
        return WRITTEN, "it cites what quotations would, and refuses what the collection does not answer"
    if _refuses(scores) and scores.answered >= ANSWERS * scores.asked and scores.support >= HALF:
        return SUMMARY, "; ".join(reasons)
    return QUOTED, "; ".join(reasons)


def _against_writing(scores: TrialScores) -> list[str]:
    """Return what speaks against answers that the model writes alone."""
    refused = scores.asked - scores.answered
    faults = {
        f"it does not answer {refused} of {scores.asked} questions": refused > WRONGLY * scores.asked,
        f"it cites the right section of {scores.cited} of {scores.asked}, quotations of {scores.quoted}": (
            scores.cited < scores.quoted - BEHIND * scores.asked
        ),
        f"{scores.claims - scores.supported} of its {scores.claims} claims have no support": scores.support < SUPPORTED,
        f"it answers {scores.foreign - scores.refused} of {scores.foreign} questions about other things": (
            not _refuses(scores)
        ),
    }
    return [fault for fault, holds in faults.items() if holds]


def _is_capable(scores: TrialScores) -> bool:
    refuses = scores.refused >= REFUSES_WELL * scores.foreign
    return refuses and scores.cited >= scores.quoted and scores.support >= WELL_SUPPORTED


def _refuses(scores: TrialScores) -> bool:
    return scores.refused >= REFUSES * scores.foreign
