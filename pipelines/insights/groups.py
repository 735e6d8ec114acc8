"""Groups the questions of a collection: equal wordings, then wordings with the same meaning.

Knows rows and an embedder; knows no database.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pipelines.answering.retrieval.evidence import TextEmbedder, Yardstick
from pipelines.insights.clustering import Wording, cluster, most_typical, place
from pipelines.insights.figures import is_smalltalk, is_unknown
from pipelines.insights.gaps import is_elsewhere, is_troubled
from pipelines.store import AskedQuestion
from pipelines.text.counts import counted
from pipelines.text.progress import Passing, Progress, silent

# Maximum wordings of a collection to cluster: 20,000 take two cores about a minute, and 150 MB.
MOST_WORDINGS = 20_000
# Questions embedded per call, so that a service can answer others in between.
AT_ONCE = 256


# Returns the embedder of a collection's model, None if it has no live index.
EmbedderOf = Callable[[str], TextEmbedder | None]


@dataclass(frozen=True, slots=True)
class Meanings:
    """The wordings of one collection, each with its point and its meaning's number.

    `left_out` counts the wordings beyond MOST_WORDINGS, which each form their own group. `yardstick` is the model's, if
    it has one.
    """

    numbers: Mapping[str, int]
    places: Mapping[str, int]
    points: np.ndarray
    yardstick: Yardstick | None = None
    left_out: int = 0

    @classmethod
    def of(
        cls,
        rows: Sequence[AskedQuestion],
        embedder: TextEmbedder | None,
        most: int = MOST_WORDINGS,
        say: Progress = silent,
    ) -> "Meanings":
        """Cluster the questions of `rows`, which belong to one collection, newest first."""
        found = _wordings(rows)
        chosen = _choose(found, rows, most)
        texts = [found[wording].question for wording in chosen]
        vectors = _embed(texts, embedder, say)
        yardstick = Yardstick.of(embedder) if embedder and texts else None
        points = place(vectors, [_as_compared(found[wording], yardstick) for wording in chosen], yardstick)
        labels = cluster(points)
        numbers = {wording: int(label) for wording, label in zip(chosen, labels, strict=True)}
        alone = (wording for wording in found if wording not in numbers)
        numbers |= {wording: n for n, wording in enumerate(alone, int(labels.max(initial=-1)) + 1)}
        places = {wording: number for number, wording in enumerate(chosen)}
        return cls(numbers, places, points, yardstick, len(found) - len(chosen))

    def groups(self, rows: Iterable[AskedQuestion]) -> list[list[AskedQuestion]]:
        """Return `rows` by meaning, the largest group first, each starting with its most typical question."""
        groups: dict[int, list[AskedQuestion]] = {}
        for row in rows:
            if not is_smalltalk(row):
                groups.setdefault(self.numbers[wording_of(row.question)], []).append(row)
        return sorted(map(self.typical_first, groups.values()), key=len, reverse=True)

    def typical_first(self, rows: list[AskedQuestion]) -> list[AskedQuestion]:
        """Return `rows` of one meaning, starting with the most typical wording."""
        counts = Counter(wording_of(row.question) for row in rows)
        known = [wording for wording in counts if wording in self.places]
        if len(counts) == 1 or not known:
            return rows
        points = self.points[[self.places[wording] for wording in known]]
        typical = known[most_typical(points, [counts[wording] for wording in known])]
        return sorted(rows, key=lambda row: wording_of(row.question) != typical)


def wording_of(question: str) -> str:
    """Return a question normalized in case, spaces and final punctuation."""
    return " ".join(question.casefold().split()).strip(" ?!.,;:\"'`") or question


def wordings(rows: Iterable[AskedQuestion]) -> list[str]:
    """Return the distinct questions of `rows`, the most frequent first, each in the wording seen first."""
    shown: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for row in rows:
        counts[wording_of(row.question)] += 1
        shown.setdefault(wording_of(row.question), row.question)
    return [shown[wording] for wording, _ in counts.most_common()]


def _wordings(rows: Sequence[AskedQuestion]) -> dict[str, AskedQuestion]:
    """Return a row for each wording: the newest with search results, else the newest."""
    found: dict[str, AskedQuestion] = {}
    for row in rows:
        wording = wording_of(row.question)
        if not is_smalltalk(row) and (wording not in found or (row.found and not found[wording].found)):
            found[wording] = row
    return found


def _as_compared(row: AskedQuestion, yardstick: Yardstick | None) -> Wording:
    """Return a question for clustering, without the results of an off-topic one, which are random."""
    return Wording(row.question, () if is_elsewhere(row, yardstick) else row.found, row.known)


def _choose(found: Mapping[str, AskedQuestion], rows: Sequence[AskedQuestion], most: int) -> list[str]:
    """Return at most `most` wordings: the most frequent, then those without a good answer, then the newest."""
    if len(found) <= most:
        return list(found)
    counts = Counter(wording_of(row.question) for row in rows)
    troubled = {wording_of(row.question) for row in rows if is_troubled(row) or is_unknown(row)}
    return sorted(found, key=lambda wording: (-counts[wording], wording not in troubled))[:most]


def _embed(texts: Sequence[str], embedder: TextEmbedder | None, say: Callable[[str], None]) -> np.ndarray:
    """Return a vector for each question; without an embedder zeros, so that only sections and words count."""
    if embedder is None or not texts:
        return np.zeros((len(texts), 1), np.float32)
    vectors = []
    for at in range(0, len(texts), AT_ONCE):
        vectors.append(embedder.embed_chunks(texts[at : at + AT_ONCE]))
        say(Passing(f"embedded {min(at + AT_ONCE, len(texts)):,} of {counted(len(texts), 'wording')}"))
    return np.vstack(vectors)
