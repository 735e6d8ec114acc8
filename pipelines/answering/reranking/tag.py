"""Reranks hits by the part of the site that a trained classifier predicts for the question."""

import asyncio
from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

from pipelines.answering.reranking.base import Reranking, by_score
from pipelines.answering.routing.classifier import TextClassifier
from pipelines.records import Hit

OTHER = "other"  # the label of questions and pages that are of no part of the site


class TagReranker:
    """A classifier says which part of the site a question is about; its hits come first, otherwise as they were.

    Only from the probability `threshold` on, and never for the label "other". The score of a hit of that part is the
    probability, of another 0. `tag_of` says which part a hit is of; by default the first folder of its URL after
    the `prefix` in the classifier's metadata (its host, where there is none).
    """

    name = "tag"

    def __init__(
        self, classifier: TextClassifier, threshold: float = 0.7, *, tag_of: Callable[[Hit], str] | None = None
    ) -> None:
        self.classifier, self.threshold = classifier, threshold
        prefix = str(classifier.metadata.get("prefix", ""))
        self.tag_of = tag_of or (lambda hit: part_of(hit.url, prefix))

    async def rerank(self, question: str, hits: Sequence[Hit]) -> Reranking:
        """All hits, those of the predicted part in front. Never fails."""
        tag, probability = await asyncio.to_thread(self.classifier.predict, question)
        if tag == OTHER or probability < self.threshold:
            return Reranking(tuple(hits))
        return Reranking(by_score(hits, [probability * (self.tag_of(hit) == tag) for hit in hits], self.name))


def part_of(url: str, prefix: str = "") -> str:
    """The first folder of `url` after `prefix` (after its host if that is ""); "" where there is none."""
    if not url.startswith(prefix):
        return ""
    path = url.removeprefix(prefix) if prefix else urlsplit(url).path
    folder, slash, _ = path.lstrip("/").partition("/")
    return folder if slash else ""
