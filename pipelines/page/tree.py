"""Defines the tree of a page: sections, the blocks in them, and the spans of text in a block.

Every reader builds this tree. Cutting divides it into chunks, and Markdown and plain text are written from it.
Independent of formats and models.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

Style = Literal["", "sup", "sub", "strike", "math", "image", "cell"]


class Span(NamedTuple):
    """A run of text of one kind: plain, `code`, a link to `target`, or text with a `style`.

    `sup` is superscript, `sub` subscript, `strike` struck-out text, `math` a TeX formula, `image` the name of an image
    or icon, and `cell` the separator between two cells of a row. A line feed in the text is a line break.
    """

    text: str
    code: bool = False
    target: str = ""
    style: Style = ""


Spans: TypeAlias = tuple[Span, ...]
Row: TypeAlias = tuple[Spans, ...]


@dataclass(slots=True)
class Paragraph:
    """A paragraph of running text."""

    spans: Spans


@dataclass(slots=True)
class Code:
    """A listing with its line breaks and indentation; `language` is "" if unknown."""

    text: str
    language: str = ""


@dataclass(slots=True)
class Table:
    """A header, which may be empty, and rows. A table that has only a header gets it as its only row."""

    head: Row = ()
    rows: list[Row] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not self.rows:
            self.head, self.rows = (), [self.head]


@dataclass(slots=True)
class Box:
    """A block that contains other blocks."""

    blocks: "list[Node]" = field(default_factory=list)


@dataclass(slots=True)
class Group(Box):
    """Blocks that belong together without a visible marker: a row of a layout, the parts of a card."""


@dataclass(slots=True)
class Note(Box):
    """A note, a warning or a quotation, set off from the text around it."""


@dataclass(slots=True)
class Tab(Box):
    """The content of a tab, below its label."""

    label: str = ""


@dataclass(slots=True)
class List(Box):
    """A list of items."""


@dataclass(slots=True)
class Item(Box):
    """An item of a list with its marker: "- ", "3. ", "iv. "."""

    marker: str = "- "


@dataclass(slots=True)
class Definitions(Box):
    """A list of terms with their definitions."""


@dataclass(slots=True)
class Term(Box):
    """One or more terms, and the blocks that define them."""

    terms: list[Spans] = field(default_factory=list)


Node: TypeAlias = Paragraph | Code | Table | Box


@dataclass(frozen=True, slots=True)
class Section:
    """The part of a page under one anchor, without the text of its subsections.

    `anchors` is the id path from outermost to finest, empty if the page has none. `headings` is the heading path from
    the page's first heading to the section's own, which is not in `content`.
    """

    url: str
    anchors: tuple[str, ...]
    headings: tuple[str, ...]
    content: Sequence[Node]

    @property
    def anchor(self) -> str:
        """The finest anchor, "" for the page itself."""
        return self.anchors[-1] if self.anchors else ""


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed page: its title, declared language ("" if none) and sections in page order.

    `label` is the title in the browser tab, which usually includes the site's name; "" if there is none.
    """

    url: str
    title: str
    language: str
    sections: tuple[Section, ...]
    label: str = ""


def leaves_of(nodes: Sequence[Node]) -> Iterator[Paragraph | Code | Table]:
    """Yield the blocks that contain no other blocks, in order. Terms are yielded as paragraphs."""
    around = [iter(nodes)]  # the blocks of the open boxes
    while around:
        for node in around[-1]:
            if not isinstance(node, Box):
                yield node
                continue
            if isinstance(node, Term):
                yield from map(Paragraph, node.terms)
            around.append(iter(node.blocks))
            break
        else:
            around.pop()


def size_of(*contents: Sequence[Node]) -> int:
    """Return the approximate number of characters in the given blocks."""
    return sum(map(_leaf_size, (leaf for nodes in contents for leaf in leaves_of(nodes))))


def _leaf_size(leaf: Paragraph | Code | Table) -> int:
    if isinstance(leaf, Code):
        return len(leaf.text)
    cells = [leaf.spans] if isinstance(leaf, Paragraph) else [cell for row in (leaf.head, *leaf.rows) for cell in row]
    return sum(len(span.text) for cell in cells for span in cell)


def text_spans(text: str) -> Spans:
    """Return a plain string as spans; an empty string gives no spans."""
    return (Span(text),) if text else ()
