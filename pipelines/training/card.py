"""The gate that a trained model must pass, and the entries of its card.

Knows no kind of model: the gate compares the ranks of the right hit without the model and with it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from pipelines.evaluation.dataset import Example, dataset_fingerprint, page_of
from pipelines.evaluation.statistics import Interval, PairedTest, bootstrap, paired_test

# Numbers of hits that are scored, and the one that the gate uses: the Ray assistant's study decided by 9.
KS = (1, 5, 9, 18)
GATE_K = 9

# The rank of the first right hit, from 1; 0 where none was found.
Ranks = Sequence[int]


# ------------------------------------------------------------------------------------------- the gate


@dataclass(frozen=True, slots=True)
class GateScores:
    """retrieval_score by number of hits, and the mean reciprocal rank, over the same questions."""

    retrieval_score: Mapping[int, Interval]
    mrr: Interval

    @classmethod
    def of(cls, ranks: Ranks, ks: Sequence[int] = KS) -> "GateScores":
        """Return the scores of these ranks. Raises NothingToScore."""
        means = bootstrap({**{str(k): within(ranks, k) for k in ks}, "mrr": [1 / r if r else 0.0 for r in ranks]})
        return cls({k: means[str(k)] for k in ks}, means["mrr"])


@dataclass(frozen=True, slots=True)
class GateVerdict:
    """Scores on held-out questions before and after training, and the gain at `k` hits with its paired interval."""

    questions: int
    k: int
    before: GateScores
    after: GateScores
    gain: PairedTest

    @property
    def accepted(self) -> bool:
        """Whether the interval of the gain lies above 0."""
        return self.gain.low > 0

    def __str__(self) -> str:
        head = "| | " + " | ".join(f"@{k}" for k in self.before.retrieval_score) + " | MRR |"
        rule = "|---" * (len(self.before.retrieval_score) + 2) + "|"
        rows = [_row("before", self.before), _row("after", self.after)]
        gain = f"gain@{self.k} {self.gain.difference:+.3f} [{self.gain.low:+.3f}, {self.gain.high:+.3f}]"
        verdict = f"p = {self.gain.p:.4f}, {self.questions:,} questions: {'' if self.accepted else 'not '}accepted"
        return "\n".join([head, rule, *rows, f"\n{gain}, {verdict}"])


def judge_ranks(before: Ranks, after: Ranks, k: int = GATE_K, ks: Sequence[int] = KS) -> GateVerdict:
    """Return the verdict on ranks for the same questions, without the trained model and with it.

    Raises BadPair and NothingToScore.
    """
    gain = paired_test(within(after, k), within(before, k))
    return GateVerdict(len(before), k, GateScores.of(before, ks), GateScores.of(after, ks), gain)


def within(ranks: Ranks, k: int) -> list[float]:
    """Return for each question 1 if the right hit is among the first `k`, else 0."""
    return [float(0 < rank <= k) for rank in ranks]


def _row(name: str, scores: GateScores) -> str:
    values = [*scores.retrieval_score.values(), scores.mrr]
    return f"| {name} | " + " | ".join(f"{v.value:.3f} [{v.low:.3f}, {v.high:.3f}]" for v in values) + " |"


# ------------------------------------------------------------------------------------------- the card


def card_entries(
    *, base: Mapping[str, Any], examples: Sequence[Example], verdict: GateVerdict, settings: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the entries of a card of a model that was trained and judged on `examples`.

    `base` names the embedding model that it belongs to or was made from.
    """
    pages = {page_of(source) for example in examples for source in example.sources}
    return {
        "base": dict(base),
        "data": {"fingerprint": dataset_fingerprint(examples), "questions": len(examples), "pages": len(pages)},
        "settings": dict(settings),
        "metrics": asdict(verdict),
    }


def acceptance(gained: bool, accept: bool) -> dict[str, Any]:
    """Return the entries of a card that decide whether the model may be used, with today's date.

    `accept`: a person accepts it whatever the verdict is.
    """
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "accepted": gained or accept,
        "forced": accept and not gained,
    }
