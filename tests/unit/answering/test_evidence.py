"""A question that the index does not answer is recognized on any scale of the model's cosines."""

from collections.abc import Sequence

import numpy as np
import pytest
from kit.answering import WordEmbedder, make_hit

from pipelines.answering.grounding.answerable import is_likely
from pipelines.answering.retrieval.evidence import Evidence, Yardstick
from pipelines.answering.retrieval.retriever import Retriever
from pipelines.answering.retrieval.search import Search
from pipelines.embedding.load import load_embedder

HITS = [
    make_hit("https://d.test/csv", "Call read_csv to read a file of comma separated values into a dataset."),
    make_hit("https://d.test/index", "CREATE INDEX makes an index on a table, which makes queries of the table fast."),
    make_hit("https://d.test/actors", "An actor is a process that keeps its state between calls of its methods."),
]


class High:
    """A model with a constant component in its vectors, which makes every cosine high, as with some models."""

    def __init__(self) -> None:
        self._model = load_embedder("hash:256")

    def embed_query(self, text: str) -> np.ndarray:
        return self.embed_chunks([text])[0]

    def embed_chunks(self, texts: Sequence[str]) -> np.ndarray:
        vectors = np.asarray(self._model.embed_chunks(texts))
        return np.hstack([vectors, np.ones((len(vectors), 1))]) / np.sqrt(2.0)


def test_yardstick_makes_cosines_of_different_models_comparable() -> None:
    texts = ["How do I read a CSV file?", HITS[0].text]
    plain, high = load_embedder("hash:256"), High()
    cosines = [float(a @ b) for a, b in (plain.embed_chunks(texts), high.embed_chunks(texts))]
    scaled = [Yardstick.of(model).scale(cosine) for model, cosine in zip((plain, high), cosines, strict=True)]  # type: ignore[union-attr]
    assert cosines[1] - cosines[0] > 0.2 and scaled == pytest.approx([scaled[0]] * 2, abs=0.01)


def test_model_that_cannot_discriminate_has_no_scale() -> None:
    class Same(WordEmbedder):
        def embed_chunks(self, texts: Sequence[str]) -> np.ndarray:
            return np.ones((len(texts), 4)) / 2

    class Broken(WordEmbedder):
        def embed_chunks(self, texts: Sequence[str]) -> np.ndarray:
            raise RuntimeError("the model broke")

    same = Yardstick.of(Same())
    assert same is not None and same.scale(1.0) is None and Yardstick.of(Broken()) is None


@pytest.mark.parametrize(("evidence", "likely"), [
    (Evidence(4, 12_000, 1.5, 1.0), True), (Evidence(4, 12_000, 0.5, 0.3), False),
    (Evidence(1, 12_000, 3.0, 0.6), True), (Evidence(4, 12_000, 2.0), True), (Evidence(4, 12_000, 0.6), False),
    (Evidence(4, 12_000, None, 0.8), True), (Evidence(4, 12_000, None, 0.3), False),  # words cannot be compared
    (Evidence(3, 4, 0.0, 0.9), False),  # none of the words is in the index
    (Evidence(2, 4, 0.3, 0.65), True), (Evidence(2, 12_000, 0.3, 0.65), False),  # the best of four chunks
])  # fmt: skip
def test_near_chunk_with_the_words_is_likely_to_answer(evidence: Evidence, likely: bool) -> None:
    assert is_likely(evidence) == likely


def test_index_rates_the_evidence_of_its_hits(retriever: Retriever) -> None:
    near = retriever.retrieve(Search(("create an index on a table",))).evidence
    far = retriever.retrieve(Search(("bake a chocolate cake with a table spoon",))).evidence
    assert near is not None and far is not None and near.texts == far.texts
    assert near.words > 1 > far.words and (near.cosine or 0) > (far.cosine or 0)
    assert retriever.retrieve(Search(("create an index",))).evidence != retriever.retrieve(Search(("index",))).evidence


def test_words_do_not_count_if_the_pages_are_in_another_language(retriever: Retriever) -> None:
    evidence = retriever.retrieve(Search(("Wie erstelle ich einen Index auf der Tabelle?",))).evidence
    assert evidence is not None and evidence.words is None and evidence.cosine is not None
