"""Reranks hits by the part of the site that a trained classifier predicts for the question."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar
from urllib.parse import urlsplit

from pipelines.answering.reranking.base import RerankerOptions, Reranking, by_score
from pipelines.answering.routing.classifier import TextClassifier
from pipelines.records import Hit

OTHER = "other"  # the label of questions and pages of no part of the site
THRESHOLD = 0.7  # for a classifier whose card has none


class TagReranker:
    """A classifier predicts the part of the site that a question is about; hits of that part come first.

    Only from the probability `threshold` on, and never for the label "other". The score of a hit of that part is the
    probability, of any other hit 0. `tag_of` returns the part of a hit: by default the first folder of its URL after
    the `prefix` in the classifier's metadata (after its host, if there is none).
    """

    name = "tag"
    needs: ClassVar[tuple[str, ...]] = ("model",)

    def __init__(
        self, classifier: TextClassifier, threshold: float = THRESHOLD, *, tag_of: Callable[[Hit], str] | None = None
    ) -> None:
        self.classifier, self.threshold = classifier, threshold
        prefix = str(classifier.metadata.get("prefix", ""))
        self.tag_of = tag_of or (lambda hit: part_of(hit.url, prefix))

    @classmethod
    def from_options(cls, options: RerankerOptions) -> "TagReranker":
        classifier = TextClassifier.load(Path(options.model), "tag")
        return cls(classifier, classifier.threshold(THRESHOLD) if options.threshold is None else options.threshold)

    async def rerank(self, question: str, hits: Sequence[Hit]) -> Reranking:
        """Return all hits, those of the predicted part first. Never fails."""
        tag, probability = await asyncio.to_thread(self.classifier.predict, question)
        if tag == OTHER or probability < self.threshold:
            return Reranking(tuple(hits))
        return Reranking(by_score(hits, [probability * (self.tag_of(hit) == tag) for hit in hits], self.name))


def part_of(url: str, prefix: str = "") -> str:
    """Return the first folder of `url` after `prefix` (after its host if that is ""); "" where there is none."""
    if not url.startswith(prefix):
        return ""
    path = url.removeprefix(prefix) if prefix else urlsplit(url).path
    folder, slash, _ = path.lstrip("/").partition("/")
    return folder if slash else ""
