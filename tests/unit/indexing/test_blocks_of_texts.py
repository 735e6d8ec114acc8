"""Texts that wait for the encoder come in blocks of limited size."""

from pipelines.indexing.building.local import in_blocks
from pipelines.indexing.building.steps import BLOCK_BYTES, Text, Work


def test_texts_of_large_pages_come_in_several_blocks() -> None:
    longest = BLOCK_BYTES // 10
    texts = [Text(str(n), "x" * (longest - n), 1, Work()) for n in range(100)]
    blocks = list(in_blocks(texts))
    assert [text for block in blocks for text in block] == texts
    assert max(sum(len(text.embed_text) for text in block) for block in blocks) <= BLOCK_BYTES + longest
    assert len(blocks) in (10, 11)


def test_few_texts_are_one_block_and_none_are_no_block() -> None:
    texts = [Text(str(n), "A text.", 1, Work()) for n in range(100)]
    assert list(in_blocks(texts)) == [texts]
    assert list(in_blocks([])) == []
