"""Describes a section's blocks by kind and text, to compare with parsed blocks and to build input for the chunker."""

from dataclasses import dataclass

from pipelines.page.cut.outline import FlatSection
from pipelines.page.flow import FlatBlock, flat_blocks
from pipelines.page.tree import Code, Node, Paragraph, Section, Table, text_spans


@dataclass(frozen=True)
class Block:
    """A passage of prose (paragraphs), code or a table (rows of cells below its header), as plain text."""

    kind: str
    text: str
    header: str = ""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FlatBlock | Block):
            return NotImplemented
        return (self.kind, self.text, self.header) == (other.kind, other.text, other.header)

    def __hash__(self) -> int:
        return hash((self.kind, self.text, self.header))

    def nodes(self) -> list[Node]:
        """Return the tree's blocks with this text."""
        if self.kind == "code":
            return [Code(self.text)]
        if self.kind == "table":
            return [Table(_row(self.header) if self.header else (), [_row(line) for line in self.text.split("\n")])]
        return [Paragraph(text_spans(text)) for text in self.text.split("\n\n") if text]


def _row(line: str) -> tuple:
    return tuple(text_spans(cell) for cell in line.split(" | "))


def nodes_of(*blocks: Block) -> list[Node]:
    """Return the tree's blocks with these texts."""
    return [node for block in blocks for node in block.nodes()]


def under(block: FlatBlock) -> tuple[str, ...]:
    """Return the texts of the paragraphs that contain a block."""
    return tuple(line.text for line in block.under)


def blocks_of(section: Section | FlatSection) -> tuple[FlatBlock, ...]:
    """Return a section's blocks as a flat list."""
    return section.blocks if isinstance(section, FlatSection) else flat_blocks(section.content)
