"""The gate that a trained model must pass, its card, and the folder it goes to.

Knows no kind of model: the gate compares the ranks of the right hit without the model and with it. The base of all
plans is here too.
"""

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from pipelines.evaluation.dataset import Example, dataset_fingerprint, page_of
from pipelines.evaluation.statistics import Interval, PairedTest, bootstrap, paired_test
from pipelines.files.atomic_files import replace_folder
from pipelines.files.model_cards import CARD_FILE, VERSION, write_card
from pipelines.records import digest

# Numbers of hits that are scored, and the one that the gate uses: the Ray assistant's study decided by 9.
KS = (1, 5, 9, 18)
GATE_K = 9

# The rank of the first right hit, from 1; 0 where none was found.
Ranks = Sequence[int]
Progress = Callable[[str], object]


def silent(_message: str) -> None:
    """Drop a progress message."""


class NotFree(ValueError):
    """The output folder holds something other than a trained model."""


class TrainingPlan(BaseModel):
    """The settings of a training; a value that can't be used is a ValidationError.

    A field with a description is a flag of `raydex train`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    seed: int = Field(0, description="of everything that is drawn by chance")


class RerankingPlan(TrainingPlan):
    """The settings of a gate that compares the first `k` of `depth` hits before and after reranking."""

    depth: int = Field(30, ge=1, le=200, description="hits that are reranked when judging")
    k: int = Field(9, ge=1, description="the gate compares so many hits")

    @model_validator(mode="after")
    def _check_depth(self) -> Self:
        if self.k > self.depth:
            raise ValueError(f"k is {self.k} and depth {self.depth}: k must not be above depth")
        return self


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


def make_card(
    kind: str,
    *,
    base: Mapping[str, Any],
    examples: Sequence[Example],
    verdict: GateVerdict,
    settings: Mapping[str, Any],
    accept: bool = False,
) -> dict[str, Any]:
    """Return the card of a model of that `kind`, trained and judged on `examples`.

    `base` names the embedding model that it belongs to or was made from. `accept`: a person accepts it whatever the
    verdict is.
    """
    pages = {page_of(source) for example in examples for source in example.sources}
    return {
        "kind": kind,
        "version": VERSION,
        **acceptance(verdict.accepted, accept),
        "base": dict(base),
        "data": {"fingerprint": dataset_fingerprint(examples), "questions": len(examples), "pages": len(pages)},
        "settings": dict(settings),
        "metrics": asdict(verdict),
    }


def acceptance(gained: bool, accept: bool) -> dict[str, Any]:
    """Return the entries of a card that decide whether the model may be used, with today's date."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "accepted": gained or accept,
        "forced": accept and not gained,
    }


@dataclass(frozen=True, slots=True)
class TrainingResult:
    """A trained model in its folder: its card, the scores for a person, and further `figures` for the summary."""

    folder: Path
    card: Mapping[str, Any]
    scores: str
    figures: Mapping[str, Any]

    @property
    def accepted(self) -> bool:
        """Whether the model may be used."""
        return bool(self.card["accepted"])

    def as_dict(self) -> dict[str, Any]:
        """Return the summary as one JSON object."""
        return {"folder": str(self.folder), **self.figures, **self.card}

    def __str__(self) -> str:
        return f"{self.scores}\n{self.folder}: {'' if self.accepted else 'not '}accepted"


# ------------------------------------------------------------------------------------------- the folder


class ModelFolder:
    """The folder of a trained model, and the hidden one beside it where it is trained until it is whole.

    Raises NotFree unless `path` is new, empty, or a trained model, which is replaced.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        if path.exists() and not (path / CARD_FILE).is_file() and (not path.is_dir() or any(path.iterdir())):
            raise NotFree(f"{path} holds something else: name a new folder or that of a trained model")
        self.training = path.with_name(f".{path.name}.training")

    @property
    def model(self) -> Path:
        """Where the trainer saves the model before its card is written."""
        return self.training / "model"

    def checkpoints(self, base: str) -> Path:
        """Return the folder of checkpoints that began with the weights of the identity `base`."""
        return self.training / "checkpoints" / digest(base)[:16]

    def put(self, card: Mapping[str, Any]) -> None:
        """Write the card and move the model to its place; checkpoints go away."""
        write_card(self.model, card)
        replace_folder(self.path, self.model)
        shutil.rmtree(self.training, ignore_errors=True)
