"""The card of a trained model: what it was made from, how good it was before and after, and whether it may be used.

Written beside the weights as card.json. Knows no kind of model: what is judged are places of the right hit.
"""

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pipelines.evaluation.dataset import Example, dataset_fingerprint, page_of
from pipelines.evaluation.statistics import Interval, PairedTest, bootstrap, paired_test
from pipelines.records import digest
from pipelines.whole import replace_folder, whole_file

CARD_FILE = "card.json"
VERSION = 1

# Hits that are scored, and the number the gate goes by: 9 is what the Ray assistant's study was decided at.
KS = (1, 5, 9, 18)
GATE_K = 9

# The place of the first right hit, from 1; 0 where there was none.
Ranks = Sequence[int]


@dataclass(frozen=True, slots=True)
class Scores:
    """retrieval_score by number of hits, and the mean reciprocal rank, over the same questions."""

    retrieval_score: Mapping[int, Interval]
    mrr: Interval

    @classmethod
    def of(cls, ranks: Ranks, ks: Sequence[int] = KS) -> "Scores":
        """Raises NothingToScore."""
        means = bootstrap({**{str(k): within(ranks, k) for k in ks}, "mrr": [1 / r if r else 0.0 for r in ranks]})
        return cls({k: means[str(k)] for k in ks}, means["mrr"])


@dataclass(frozen=True, slots=True)
class Verdict:
    """What held-out questions say of a model: scores before and after, and the gain with its paired interval.

    `accepted` means that the interval of the gain at `k` hits lies above 0.
    """

    questions: int
    k: int
    before: Scores
    after: Scores
    gain: PairedTest

    @property
    def accepted(self) -> bool:
        return self.gain.low > 0

    def __str__(self) -> str:
        head = "| | " + " | ".join(f"@{k}" for k in self.before.retrieval_score) + " | MRR |"
        rows = [_row("before", self.before), _row("after", self.after)]
        rule = "|---" * (len(self.before.retrieval_score) + 2) + "|"
        gain = f"gain@{self.k} {self.gain.difference:+.3f} [{self.gain.low:+.3f}, {self.gain.high:+.3f}]"
        word = "accepted" if self.accepted else "not accepted"
        return "\n".join([head, rule, *rows, f"\n{gain}, p = {self.gain.p:.4f}, {self.questions:,} questions: {word}"])


def judged(before: Ranks, after: Ranks, k: int = GATE_K, ks: Sequence[int] = KS) -> Verdict:
    """The verdict on places of the first right hit for the same questions, without the trained model and with it.

    Raises BadPair and NothingToScore.
    """
    gain = paired_test(within(after, k), within(before, k))
    return Verdict(len(before), k, Scores.of(before, ks), Scores.of(after, ks), gain)


def within(ranks: Ranks, k: int) -> list[float]:
    """For each question 1 if the right hit is among the first `k`, else 0."""
    return [float(0 < rank <= k) for rank in ranks]


def card(
    kind: str,
    *,
    base: Mapping[str, Any],
    examples: Sequence[Example],
    verdict: Verdict,
    settings: Mapping[str, Any],
    forced: bool = False,
) -> dict[str, Any]:
    """What card.json says of a model of that `kind`, trained and judged on `examples`.

    `base` names the embedding model it belongs to or was made from. `forced`: accepted by a person, whatever the
    verdict is.
    """
    pages = {page_of(source) for example in examples for source in example.sources}
    return {
        "kind": kind,
        "version": VERSION,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "accepted": verdict.accepted or forced,
        "forced": forced and not verdict.accepted,
        "base": dict(base),
        "data": {"fingerprint": dataset_fingerprint(examples), "questions": len(examples), "pages": len(pages)},
        "settings": dict(settings),
        "metrics": asdict(verdict),
    }


class NotFree(ValueError):
    """A trained model can't take its place: something else is there."""


def check_free(output: Path) -> None:
    """Raise NotFree unless `output` is new, empty, or a trained model that may be replaced."""
    if not output.exists() or (output / CARD_FILE).is_file():
        return
    if not output.is_dir() or any(output.iterdir()):
        raise NotFree(f"--output {output} holds something else: name a new folder or that of a trained model")


def write_card(folder: Path, card: Mapping[str, Any]) -> None:
    """Write it as card.json, the last file of a model folder: a folder without one is not whole."""
    with whole_file(folder / CARD_FILE) as making:
        making.write_text(json.dumps(card, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _row(name: str, scores: Scores) -> str:
    values = [*scores.retrieval_score.values(), scores.mrr]
    return f"| {name} | " + " | ".join(f"{v.value:.3f} [{v.low:.3f}, {v.high:.3f}]" for v in values) + " |"


def beside(output: Path) -> Path:
    """Where checkpoints and the model lie until it is whole."""
    return output.with_name(f".{output.name}.training")


def checkpoints(output: Path, base: str) -> Path:
    """Where checkpoints lie of what begins with the weights of the identity `base`: another's are not gone on with."""
    return beside(output) / "checkpoints" / digest(base)[:16]


def put(made: Mapping[str, Any], output: Path) -> None:
    """The finished model, with its card, takes its place: what lay there goes last."""
    folder = beside(output) / "model"
    write_card(folder, made)
    replace_folder(output, folder)
    shutil.rmtree(beside(output), ignore_errors=True)
