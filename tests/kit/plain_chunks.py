"""Provides chunks as plain text, for tests of chunk boundaries."""

from dataclasses import replace

from pipelines.page.cut.chunker import Chunker
from pipelines.page.stored import plain_text
from pipelines.page.tree import Document
from pipelines.records import Chunk


class PlainChunker(Chunker):
    """A chunker that returns plain text, and checks that the Markdown of each chunk converts to it."""

    def __call__(self, document: Document) -> list[Chunk]:
        """Return a document's chunks with their plain text."""
        plain = [replace(chunk, text=plain_text(chunk.text)) for chunk in super().__call__(document)]
        for chunk in plain:
            text = chunk.text.lstrip()  # code at the start of a chunk keeps its indentation, which may not be embedded
            before = chunk.embed_text.removesuffix(text)
            assert before + text == chunk.embed_text and not before.rpartition("\n")[2].strip()
        return plain
