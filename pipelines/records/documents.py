"""Pages as they are fetched and read, and the hashes that name texts."""

import hashlib
from dataclasses import dataclass, field
from typing import Literal

# Raise it whenever reading, sectioning or chunking gives other text or anchors for the same bytes: it is part of an
# index's fingerprint, so the next run rebuilds from the stored pages.
SECTIONING_VERSION = 13

BlockKind = Literal["prose", "code", "table"]


def digest(*parts: str | bytes) -> str:
    """Return 128 bits of SHA-256 over length-prefixed `parts`, as 32 hex characters."""
    sha = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        sha.update(len(data).to_bytes(8, "big"))
        sha.update(data)
    return sha.hexdigest()[:32]


def content_hash(body: bytes, content_type: str, charset: str | None) -> str:
    """Return the hash that tells whether a page has changed: of its bytes and of how to read them."""
    return digest(body, content_type, charset or "")


@dataclass(frozen=True, slots=True)
class Page:
    """One fetched document: its URL and its raw bytes.

    `content_type` is the media type without parameters, `charset` the one that the server declared, if any.
    """

    url: str
    body: bytes
    content_type: str = "text/html"
    charset: str | None = None


@dataclass(frozen=True, slots=True)
class Block:
    """A passage of a section that is split only where its kind allows it.

    `prose` is split at sentences, `code` at lines (line breaks and indentation stay), `table` at rows
    (one row per line); `header` is the table's header row, repeated on each part of a split table. `under` are the
    paragraphs that the block belongs to, outermost first: the sentence that introduces its list, code or table, the
    first paragraph of its item, the label of its note, its term. `tight` prose begins on the line after them. Code in a
    known `language` and a table stand `within` lists and notes, as the marks of a prose text say of its paragraphs
    (pipelines/markdown). All of this says how blocks hang together and look, and makes none different.
    """

    kind: BlockKind
    text: str
    header: str = ""
    under: tuple[str, ...] = field(default=(), compare=False)
    tight: bool = field(default=False, compare=False)
    language: str = field(default="", compare=False)
    within: tuple[int, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class Section:
    """The part of a page under one anchor, without the text of its subsections.

    `anchors` is the id path from outermost to finest (empty if the page has none), `headings` are the headings from
    the page's first to the section's own. The section's own heading is not in `blocks`.
    """

    url: str
    anchors: tuple[str, ...]
    headings: tuple[str, ...]
    blocks: tuple[Block, ...]

    @property
    def anchor(self) -> str:
        """The finest anchor, "" for the page itself."""
        return self.anchors[-1] if self.anchors else ""


@dataclass(frozen=True, slots=True)
class Document:
    """A page as it was read: title, declared language ("" if none) and sections in page order.

    `label` is what a browser's tab shows ("" if nothing): with the site's name, mostly.
    """

    url: str
    title: str
    language: str
    sections: tuple[Section, ...]
    label: str = ""
