"""No text of a real documentation page is lost or silently cut: 120 pages of Ray's docs, from archive to tokens."""

import os
import tarfile
from collections.abc import Iterator
from itertools import islice, pairwise
from pathlib import Path

import pytest

from pipelines.embedding.load import load_tokenizer
from pipelines.embedding.tokens import model_folder
from pipelines.indexing.reading.read import read_page
from pipelines.page.tree import Document
from pipelines.records import Chunk, Page
from tests.kit.blocks import blocks_of
from tests.kit.plain_chunks import PlainChunker

MODEL = "all-MiniLM-L6-docs-v1"
DATA = Path(os.environ.get("RAYDEX_DATA") or Path(__file__).parents[4] / "shared" / "data")
ARCHIVE = DATA / "ray-docs-html.tar.xz"

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not ARCHIVE.is_file(), reason=f"needs {ARCHIVE} (set RAYDEX_DATA)")]


def real_pages() -> Iterator[Page]:
    """Return every 6th guide or API page with a substantial text."""
    with tarfile.open(ARCHIVE) as archive:
        for place, member in enumerate(archive):
            if place % 6 == 0 and member.name.endswith(".html") and "_modules" not in member.name:
                file = archive.extractfile(member)
                assert file is not None
                yield Page(f"https://docs.ray.io/{member.name}", file.read())


@pytest.fixture(scope="module")
def documents() -> list[Document]:
    return [read_page(page) for page in islice(real_pages(), 120)]


@pytest.fixture(scope="module")
def chunks(documents: list[Document]) -> list[Chunk]:
    chunker = PlainChunker(load_tokenizer(MODEL))
    return [chunk for document in documents for chunk in chunker(document)]


@pytest.mark.exhaustive
def test_model_reads_every_chunk_to_its_end(chunks: list[Chunk]) -> None:
    from transformers import BertTokenizer  # the class that AutoTokenizer returns, without torch

    tokenizer = BertTokenizer.from_pretrained(model_folder(MODEL))
    read = tokenizer([chunk.embed_text for chunk in chunks], truncation=False)["input_ids"]
    assert [len(ids) for ids in read] == [chunk.tokens for chunk in chunks]
    assert len(chunks) > 300
    assert max(len(ids) for ids in read) <= 256


def test_every_character_of_a_section_is_in_a_chunk(documents: list[Document], chunks: list[Chunk]) -> None:
    for document in documents:
        # Each chunk's text without its repeated lead-in.
        own = [chunk.text.partition("\n…\n")[2] or chunk.text for chunk in chunks if chunk.url == document.url]
        mine = "".join("".join(text.split()) for text in own)
        for section in document.sections:
            for block in blocks_of(section):
                for line in block.text.splitlines():
                    assert "".join(line.split()) in mine, (document.url, line)


def test_long_sections_fill_their_chunks(chunks: list[Chunk]) -> None:
    followed = [
        chunk.tokens
        for chunk, following in pairwise(chunks)
        if (chunk.url, chunk.anchor) == (following.url, following.anchor)
    ]
    assert sum(followed) / len(followed) > 256 * 0.6


def test_chunks_keep_the_study_limits_of_700_characters_with_50_overlap(documents: list[Document]) -> None:
    chunker = PlainChunker(load_tokenizer(MODEL), 700, 50, "characters")
    chunks = [chunk for document in documents for chunk in chunker(document)]
    assert max(len(chunk.text) for chunk in chunks) <= 700
    assert max(chunk.tokens for chunk in chunks) <= 256


def test_ids_are_unique_and_reproducible(documents: list[Document], chunks: list[Chunk]) -> None:
    assert len({chunk.id for chunk in chunks}) == len(chunks)
    chunker = PlainChunker(load_tokenizer(MODEL))
    assert [chunk for document in documents for chunk in chunker(document)] == chunks
