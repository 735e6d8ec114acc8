"""A model uses its family's prefixes and pooling. Its own files or a collection's settings win."""

import json
import shutil
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from pipelines.embedding.families import _FAMILIES, _PATTERNS, family_of
from pipelines.embedding.load import complete_model, load_embedder, load_tokenizer, prefixes_missing_from
from pipelines.embedding.tokens import TokenCounter, hub_name, model_folder
from pipelines.indexing.collection import IndexChoices
from pipelines.indexing.settings import ReindexOptions, index_settings
from pipelines.page.cut.chunker import Chunker
from pipelines.page.tree import Document, Section
from pipelines.records import EmbeddingModel, IndexSettings
from tests.kit.blocks import Block, nodes_of

MODEL = "all-MiniLM-L6-v2"
E5 = ("query: ", "passage: ")
BGE = ("Represent this sentence for searching relevant passages: ", "")
TASK = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"


@pytest.fixture
def make_folder(tmp_path: Path):
    """Return a factory for folders with the packaged model's files, except some, and with given prompt settings."""

    def make(name: str, prompts: dict[str, str] | None = None, leave_out: tuple[str, ...] = ()) -> Path:
        folder = tmp_path / name
        shutil.copytree(model_folder(MODEL), folder, ignore=shutil.ignore_patterns(*leave_out))
        (folder / "config_sentence_transformers.json").write_text(json.dumps({"prompts": prompts or {}}))
        return folder

    return make


def prefixes(counter: TokenCounter) -> tuple[str, str]:
    return counter.query_prefix, counter.chunk_prefix


@pytest.mark.parametrize(
    ("name", "expected", "tokens"),
    [
        ("intfloat/multilingual-e5-small", E5, 512),
        ("jeffh/intfloat-multilingual-e5-large:f16", E5, 512),
        ("e5-mistral-7b-instruct", (f"{TASK} ", ""), 8191),
        ("intfloat/multilingual-e5-large-instruct", (f"{TASK} ", ""), 512),
        ("Alibaba-NLP/gte-Qwen2-1.5B-instruct", (f"{TASK} ", ""), 8191),
        ("qwen3-embedding:0.6b", (TASK, ""), 8191),
        ("nomic-embed-text:latest", ("search_query: ", "search_document: "), 2048),
        ("nomic-ai/nomic-embed-text-v2-moe", ("search_query: ", "search_document: "), 512),
        ("mxbai-embed-large", BGE, 512),
        ("BAAI/bge-small-en-v1.5", BGE, 512),
        ("BAAI/bge-base-zh-v1.5", ("为这个句子生成表示以用于检索相关文章：", ""), 512),
        ("snowflake-arctic-embed:33m", BGE, 512),
        ("Snowflake/snowflake-arctic-embed-l-v2.0", ("query: ", ""), 8191),
        ("embeddinggemma", ("task: search result | query: ", "title: none | text: "), 2048),
        *((name, ("", ""), 8191) for name in ("bge-m3", "gte-large", "all-minilm", "text-embedding-3-small", "base")),
    ],
)
def test_model_of_an_endpoint_is_recognized_by_its_name(name: str, expected: tuple[str, str], tokens: int) -> None:
    counter = load_tokenizer(f"openai:{name}")
    assert prefixes(counter) == expected
    assert (counter.max_tokens, counter.identity) == (tokens, f"openai:{name}")


def test_every_family_in_the_table_has_names_and_needs() -> None:
    assert list(_PATTERNS) == list(_FAMILIES)


def test_folder_is_recognized_by_its_name_or_its_base_model(make_folder) -> None:
    assert prefixes(load_tokenizer(str(make_folder("multilingual-e5-small")))) == E5
    folder = make_folder("ours")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"_name_or_path": "intfloat/e5-base-v2"}))
    assert prefixes(load_tokenizer(f"int8:{folder}")) == E5


def test_prompts_in_a_folder_win_and_empty_prompts_do_not_count(make_folder) -> None:
    own = make_folder("e5-small", {"query": "ask: "})
    assert prefixes(load_tokenizer(str(own))) == ("ask: ", "")
    both = make_folder("e5-large", {"query": "ask: ", "passage": "tell: "})
    assert prefixes(load_tokenizer(str(both))) == ("ask: ", "tell: ")
    assert prefixes(load_tokenizer(str(make_folder("e5-base", {"query": "", "document": ""})))) == E5


def test_prefix_is_embedded_and_counted_by_the_model(make_folder) -> None:
    folder = str(make_folder("e5-small"))
    used, plain = (load_embedder(model, device="cpu") for model in (folder, EmbeddingModel(folder)))
    assert prefixes(plain.counter) == ("", "")
    assert used.embed_query("x") @ plain.embed_query("query: x") == pytest.approx(1, abs=1e-5)
    assert used.embed_chunks(["x"])[0] @ plain.embed_chunks(["passage: x"])[0] == pytest.approx(1, abs=1e-5)
    assert used.counter.count_tokens(["x"]) == plain.counter.count_tokens(["passage: x"])


def test_plain_folder_is_pooled_like_its_family(make_folder) -> None:
    without = ("modules.json", "1_Pooling", "2_Normalize")
    mean, first = (str(make_folder(name, leave_out=without)) for name in ("plain", "bge-small-en"))
    counter = load_tokenizer(first)
    assert (counter.pooling, counter.identity) == ("cls", f"{load_tokenizer(EmbeddingModel(first)).identity}:cls")
    one, other = (load_embedder(model, device="cpu") for model in (first, mean))
    tokens = one._encoder.encode("x y z", output_value="token_embeddings").cpu().numpy()  # type: ignore[attr-defined]
    expected = tokens[0] / np.linalg.norm(tokens[0])
    assert one.embed_chunks(["x y z"])[0] @ expected == pytest.approx(1, abs=1e-5)
    assert other.embed_chunks(["x y z"])[0] @ expected < 0.99


# Fingerprints of indexes built before prefixes could be set. Other values would rebuild them.
@pytest.mark.parametrize(
    ("settings", "fingerprint"),
    [
        (IndexSettings(MODEL, sectioning=7), "3fe7ac2d2068b426363d3f4299aea380"),
        (IndexSettings(f"int8:{MODEL}", f"int8:{MODEL}", 384, sectioning=7), "83b489a086104b46d40749353fa9e937"),
    ],
)
def test_older_index_keeps_its_fingerprint(settings: IndexSettings, fingerprint: str) -> None:
    assert settings.fingerprint == fingerprint


def test_models_without_a_family_and_folders_with_prompts_are_unchanged(make_folder) -> None:
    prompted = str(make_folder("e5-small", {"query": "query: ", "passage": "passage: "}))
    for model in (MODEL, f"int8:{MODEL}", prompted, "hash:64"):
        settings = index_settings(IndexChoices(model=model), ReindexOptions())
        assert settings.embedding == EmbeddingModel(model)
        assert load_tokenizer(model).identity == settings.identity
        assert ":cls" not in settings.identity


@pytest.mark.parametrize(("model", "kind"), [("hash:4001", "auto"), ("hash:2001", "vector")])
def test_too_many_dimensions_for_an_index_are_refused_before_reading(
    model: str, kind: Literal["auto", "vector"]
) -> None:
    with pytest.raises(ValueError, match=f"model {model!r} has"):
        index_settings(IndexChoices(model=model, vector_type=kind), ReindexOptions())


def hashes(settings: IndexSettings) -> set[str]:
    section = Section("https://d.test/", (), ("Usage",), nodes_of(Block("prose", "Call `run()` to begin.")))
    chunker = Chunker(load_tokenizer(settings.embedding))
    return {chunk.embed_hash for chunk in chunker(Document("https://d.test/", "Docs", "en", (section,)))}


def test_collection_prefixes_are_used_and_a_new_chunk_prefix_reembeds() -> None:
    plain, asked, both = (
        index_settings(IndexChoices(model="hash:64", query_prefix=query, chunk_prefix=chunk), ReindexOptions())
        for query, chunk in [(None, None), ("ask: ", None), ("ask: ", "read: ")]
    )
    assert prefixes(load_tokenizer(both.embedding)) == ("ask: ", "read: ")
    assert len({settings.fingerprint for settings in (plain, asked, both)}) == 3
    assert hashes(plain) == hashes(asked) != hashes(both)
    unprefixed = complete_model(EmbeddingModel("openai:e5-small", "", ""))
    assert prefixes(load_tokenizer(unprefixed)) == ("", "")


def test_unknown_or_unused_prefixes_are_reported_as_missing(make_folder) -> None:
    assert "needs prefixes that are not known" in prefixes_missing_from(EmbeddingModel("openai:some-7b-instruct"))
    assert "without its prefixes 'query: '" in prefixes_missing_from(EmbeddingModel("openai:e5-small"))
    told = EmbeddingModel(str(make_folder("b-instruct", {"query": "ask: "})))
    for model in (EmbeddingModel(MODEL), EmbeddingModel("openai:x-instruct", "", ""), told, EmbeddingModel("hash:8")):
        assert prefixes_missing_from(model) == ""


def test_bare_name_means_its_owner_on_the_hub() -> None:
    assert hub_name("multilingual-e5-small") == "intfloat/multilingual-e5-small"
    assert hub_name("all-mpnet-base-v2") == "sentence-transformers/all-mpnet-base-v2"
    assert family_of("nothing-known").owner == ""
