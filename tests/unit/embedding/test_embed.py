"""Vectors of any model are complete, in order and of length 1."""

import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.embedding.embedder import Embedder, EmbeddingFailed, normalised
from pipelines.embedding.load import UnknownBackend, load_embedder, load_tokenizer
from pipelines.embedding.tokens import (
    ModelNotFound,
    ModelUnsupported,
    TokenCounter,
    model_folder,
    untruncated_tokenizer,
)
from pipelines.embedding.torch import available_device
from pipelines.text.cleaning import clean_for_tokenizer

TEXTS = ["Ray Serve scales replicas.", "An actor is stateful. " * 30, "short", "Une tâche à distance", "短い文"]


@pytest.fixture(scope="module")
def minilm() -> Embedder:
    return load_embedder("all-MiniLM-L6-v2", device="cpu", backend="torch")


@pytest.fixture(scope="module", params=["all-MiniLM-L6-v2", "hash:64"])
def embedder(request: pytest.FixtureRequest, minilm: Embedder) -> Embedder:
    return minilm if request.param == minilm.model else load_embedder(request.param)


def test_vectors_are_unit_length_float32_in_the_given_order(embedder: Embedder) -> None:
    vectors = embedder.embed_chunks(TEXTS)
    assert vectors.dtype == np.float32
    assert vectors.shape == (len(TEXTS), embedder.dimension)
    assert vectors.flags.c_contiguous
    ones = pytest.approx(np.ones(len(TEXTS)), abs=1e-5)
    assert np.linalg.norm(vectors, axis=1) == ones
    alone = np.concatenate([embedder.embed_chunks([text]) for text in TEXTS])
    assert (vectors * alone).sum(axis=1) == ones
    assert embedder.embed_chunks([]).shape == (0, embedder.dimension)


def test_query_becomes_one_vector(embedder: Embedder) -> None:
    query = embedder.embed_query(TEXTS[0])
    assert query.shape == (embedder.dimension,)
    assert query @ embedder.embed_chunks(TEXTS[:1])[0] == pytest.approx(1, abs=1e-5)


def test_lone_surrogate_does_not_stop_the_batch(embedder: Embedder) -> None:
    assert np.isfinite(embedder.embed_chunks(["bad \ud800 text", "good"])).all()


def test_similar_texts_are_closer_than_different_ones(minilm: Embedder) -> None:
    query = minilm.embed_query("how do I add replicas?")
    scores = minilm.embed_chunks(["Scale a deployment to more replicas.", "Bananas are yellow."]) @ query
    assert scores[0] > scores[1] + 0.2


def test_hash_embedder_counts_the_embedded_texts() -> None:
    embedder = load_embedder("hash:8")
    embedder.embed_chunks(TEXTS)
    embedder.embed_query("one more")
    assert embedder.embedded == len(TEXTS) + 1  # type: ignore[attr-defined]


def test_token_counts_equal_those_of_the_model(minilm: Embedder) -> None:
    own = minilm._encoder.tokenizer(TEXTS, truncation=False)["input_ids"]  # type: ignore[attr-defined]
    assert minilm.counter.count_tokens(TEXTS) == [len(ids) for ids in own]
    assert (minilm.counter.max_tokens, minilm.dimension) == (256, 384)


@pytest.mark.parametrize(
    ("bad", "dimension", "words"),
    [*((value, 4, "the guilty one") for value in (np.nan, np.inf, 0.0)), (1.0, 3, r"expected \(3, 3\)")],
)
def test_bad_vector_names_its_text_and_a_wrong_dimension_is_refused(bad, dimension, words) -> None:
    vectors = np.ones((3, 4))
    vectors[1] = bad
    with pytest.raises(EmbeddingFailed, match=words):
        normalised(vectors, ["a", "the guilty one", "c"], dimension)


def test_missing_gpu_is_reported_and_the_cpu_used() -> None:
    with pytest.warns(RuntimeWarning, match="sees no CUDA"):
        assert available_device("cuda", cuda=False) == "cpu"
    assert available_device("auto", cuda=False) == "cpu"
    assert available_device("auto", cuda=True) == "cuda"
    assert available_device("cuda:1", cuda=True) == "cuda:1"


@pytest.mark.parametrize("name", ["hash:", "hash:none", "hash:0", "openai:"])
def test_meaningless_name_says_what_to_write(name: str) -> None:
    with pytest.raises(ModelNotFound, match="for example"):
        load_embedder(name)


def test_unknown_backend_is_refused() -> None:
    with pytest.raises(UnknownBackend, match="tensorrt"):
        load_embedder("hash:8", backend="tensorrt")  # type: ignore[arg-type]


def test_folder_without_tokenizer_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ModelUnsupported, match="save"):
        load_tokenizer(str(tmp_path))


def test_saved_model_is_identified_by_its_content(tmp_path: Path, minilm: Embedder) -> None:
    minilm._encoder.save(str(tmp_path / "a"))  # type: ignore[attr-defined]
    (tmp_path / "a").rename(tmp_path / "b")
    counter = load_tokenizer(str(tmp_path / "b"))
    assert (counter.max_tokens, counter.dimension) == (256, 384)
    assert counter.count_tokens(TEXTS) == minilm.counter.count_tokens(TEXTS)
    settings = tmp_path / "b" / "config.json"
    settings.write_text(settings.read_text() + "\n")
    assert load_tokenizer(str(tmp_path / "b")).identity != counter.identity


# Parts of texts at which a count could differ from the sum of the counts of the words.
PARTS = st.sampled_from([
    "a", "b", "é", "e\u0301", "ﬁ", "漢字", "\u200b", "\ufffd", "_", "-", ".", "[MASK]", "##s", "x=1", "İ", "long" * 60,
    " ", "\n\n", "\t", "\xa0", "\u2028", "\u3000", "\x0b", "\x0c", "\x1c", "\x1f", "\x85", "\ud800", "\u0301", "\u0345",
])  # fmt: skip


@cache
def counter_and_tokenizer() -> tuple[TokenCounter, Any]:
    return load_tokenizer("all-MiniLM-L6-v2"), untruncated_tokenizer(model_folder("all-MiniLM-L6-v2"))


@given(texts=st.lists(st.lists(PARTS, max_size=12).map("".join), max_size=4))
@settings(deadline=None, max_examples=300)
def test_count_by_words_equals_the_tokenizers_own(texts: list[str]) -> None:
    counter, tokenizer = counter_and_tokenizer()
    own = [len(tokenizer.encode(clean_for_tokenizer(text))) for text in texts]
    assert counter.count_tokens(texts) == counter.count_tokens(texts) == own


def test_counting_tokens_does_not_need_torch() -> None:
    code = (
        "import sys; from pipelines.embedding import load_tokenizer;"
        "load_tokenizer('all-MiniLM-L6-v2').count_tokens(['a']);"
        "from pipelines.embedding import load_embedder; load_embedder('hash:8').embed_query('a');"
        "assert not {'torch', 'sentence_transformers', 'transformers'} & set(sys.modules)"
    )
    root = Path(__file__).parents[3]
    subprocess.run([sys.executable, "-c", code], check=True, cwd=root)
