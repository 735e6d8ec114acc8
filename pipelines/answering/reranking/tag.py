"""Reranks hits by the part of the site that a trained classifier predicts for the question.

This module uses the classifier's folder, questions and URLs. It doesn't know how the classifier was trained.
"""

import asyncio
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from pipelines.answering.reranking.base import DEVICE, by_score
from pipelines.answering.routing.classifier import Classifier, TextClassifier
from pipelines.answering.routing.classifier_folder import MODEL_FILE
from pipelines.answering.routing.sequence_classifier import SequenceClassifier
from pipelines.records import Hit

KIND = "tag"
OTHER = "other"  # the label of questions and pages that belong to no part of the site
THRESHOLD = 0.7  # if the classifier's card has none: between the 0.5 and 0.9 of the Ray assistant's study


class OtherCollection(ValueError):
    """A tag model was trained for a collection that gets no questions here."""


class TagReranker:
    """Puts hits from the part of the site first that a classifier predicts for the question.

    It only reorders if the probability is at least `threshold`, and never for the label "other". The score of a hit
    from that part is the probability; all others get 0. `tag_of` returns the part of a hit: by default, the first
    folder of its URL after the `prefix` in the classifier's metadata (after its host without one). It helps if pages in
    several parts use the same words and questions make clear which part they mean; on the Ray documentation, it gained
    nothing.
    """

    name = "tag"

    def __init__(
        self,
        classifier: Classifier,
        threshold: float | None = None,
        *,
        tag_of: Callable[[Hit], str] | None = None,
        model: str = "",
    ) -> None:
        self.classifier, self.model = classifier, model
        self.threshold = classifier.threshold(THRESHOLD) if threshold is None else threshold
        self.prefix, self.collection = (str(classifier.metadata.get(name, "")) for name in ("prefix", "collection"))
        self.tag_of = tag_of or (lambda hit: part_of(hit.url, self.prefix))

    @classmethod
    def load(cls, model: str, threshold: float | None = None, device: str = DEVICE) -> "TagReranker":
        """Return the reranker from a folder that `raydex train tags` wrote. Raises NotAClassifier."""
        return cls(load_tag_classifier(Path(model), device), threshold, model=model)

    def check_collection(self, asked: Collection[str]) -> None:
        """Raise OtherCollection unless the model's collection is in `asked`; an empty `asked` passes."""
        if self.collection and asked and self.collection not in asked:
            raise OtherCollection(
                f"the tag model {self.model} was trained for the collection {self.collection!r} ({self.prefix}), and "
                f"questions are asked of {', '.join(map(repr, sorted(asked)))}: train one with `raydex train tags "
                "--collection NAME`, or unset reranker.kind"
            )

    async def rerank(self, question: str, hits: Sequence[Hit]) -> tuple[Hit, ...]:
        """Return all hits, the predicted part's first; unchanged if there are none. Never fails."""
        tag, probability = await asyncio.to_thread(self.classifier.predict, question)
        if tag == OTHER or probability < self.threshold or not any(self.tag_of(hit) == tag for hit in hits):
            return tuple(hits)
        return by_score(hits, [probability * (self.tag_of(hit) == tag) for hit in hits], self.name)


def load_tag_classifier(folder: Path, device: str = DEVICE) -> Classifier:
    """Return the classifier in a trained folder, of either kind. Raises NotAClassifier."""
    if (folder / "config.json").is_file() and not (folder / MODEL_FILE).is_file():
        return SequenceClassifier.load(folder, KIND, device)
    return TextClassifier.load(folder, KIND)


def part_of(url: str, prefix: str = "") -> str:
    """Return the first folder of `url` after `prefix` (after its host if that is ""), or ""."""
    if not url.startswith(prefix):
        return ""
    path = url.removeprefix(prefix) if prefix else urlsplit(url).path
    folder, slash, _ = path.lstrip("/").partition("/")
    return folder if slash else ""
