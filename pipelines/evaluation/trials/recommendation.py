"""Recommends the form of a model's answers from the results of its trial. Pure arithmetic."""

from dataclasses import dataclass

from pipelines.records import FULL, QUOTED, SUMMARY, WRITTEN, Form
from pipelines.text.counts import counted

# A model may write answers if all of these are met. Set by hand: with 20 questions a share is known to about 0.1.
SUPPORTED = 0.9  # share of its claims with support, at least
REFUSES = 0.8  # share of the off-topic questions that it refuses, at least
WRONGLY = 0.1  # share of the answerable questions that it refuses, at most
BEHIND = 0.1  # how far its share of right sections may fall below that of quotations
# If these are met too, it writes from whole sections and its refusals are final. Set by hand.
WELL_SUPPORTED, REFUSES_WELL = 0.95, 0.9
# Its words appear below a quotation if it refuses as often, answers at least ANSWERS of the questions, and at least
# HALF of its claims are supported; the others are left out. A model that answers from off-topic passages also misreads
# a quotation that does not answer: benchmarks/results/forms-of-answers.md has the grades.
ANSWERS, HALF = 0.5, 0.5


@dataclass(frozen=True, slots=True)
class TrialScores:
    """The counts of a trial: of `asked` questions with known sections, and of `foreign` off-topic ones.

    `answered` counts questions about which the model makes a claim. `cited` counts those where an answer cites the
    right section with support, `quoted` those where the quotations cite it. `refused` counts refused off-topic
    questions, without failed calls. `words_s` is words per second from the question to the end of its answer. `failed`
    counts failed calls.
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
    """Return the form of a model's answers, and the reason."""
    reasons = _against_writing(scores)
    if not reasons and _is_capable(scores):
        return FULL, "it cites no less than quotations would, invents nothing, and refuses what is not answered"
    if not reasons:
        return WRITTEN, "it cites what quotations would, and refuses what the collection does not answer"
    if _refuses(scores) and scores.answered >= ANSWERS * scores.asked and scores.support >= HALF:
        return SUMMARY, "; ".join(reasons)
    return QUOTED, "; ".join(reasons)


def _against_writing(scores: TrialScores) -> list[str]:
    """Return the reasons why the model should not write answers by itself."""
    refused = scores.asked - scores.answered
    faults = {
        f"it does not answer {refused} of {counted(scores.asked, 'question')}": refused > WRONGLY * scores.asked,
        f"it cites the right section of {scores.cited} of {scores.asked}, quotations of {scores.quoted}": (
            scores.cited < scores.quoted - BEHIND * scores.asked
        ),
        f"{scores.claims - scores.supported} of {counted(scores.claims, 'claim')} without support": scores.support
        < SUPPORTED,
        f"it refuses only {scores.refused} of {counted(scores.foreign, 'question')} about other things": (
            not _refuses(scores)
        ),
    }
    return [fault for fault, holds in faults.items() if holds]


def _is_capable(scores: TrialScores) -> bool:
    refuses = scores.refused >= REFUSES_WELL * scores.foreign
    return refuses and scores.cited >= scores.quoted and scores.support >= WELL_SUPPORTED


def _refuses(scores: TrialScores) -> bool:
    return scores.refused >= REFUSES * scores.foreign
