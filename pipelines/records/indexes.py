"""Chunks, the index that contains them, and the hits that a search finds in it."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from pipelines.records.documents import SECTIONING_VERSION, digest

ChunkUnit = Literal["tokens", "characters"]
VectorType = Literal["auto", "vector", "halfvec"]
IndexState = Literal["building", "candidate", "live", "retired", "failed"]


@dataclass(frozen=True, slots=True)
class Chunk:
    """A bounded piece of a section, the unit that is embedded and retrieved.

    `text` is its Markdown and `plain` its plain text, both written from the page's tree (pipelines/page). All hashes
    and counts refer to the plain text. `id` depends on the url, the anchor, the plain text and the number of equal
    texts before it under that anchor, never on a position or a setting. `embed_hash` is the hash of exactly the text
    that the model reads, and the only key for reusing vectors. To store another value per chunk, add a field here and a
    column to CHUNK_COLUMNS in pipelines/store/chunks.py.
    """

    id: str
    url: str
    anchors: tuple[str, ...]
    title: str
    headings: tuple[str, ...]
    ordinal: int
    text: str
    text_hash: str
    embed_text: str
    embed_hash: str
    tokens: int
    plain: str = ""

    @property
    def anchor(self) -> str:
        """The finest anchor, "" for the page itself."""
        return self.anchors[-1] if self.anchors else ""


@dataclass(frozen=True, slots=True)
class EmbeddingModel:
    """An embedding model by name, with its prefixes for questions and chunks, and how it pools tokens into one vector.

    None means the value in the model's own files.
    """

    name: str
    query_prefix: str | None = None
    chunk_prefix: str | None = None
    pooling: str | None = None


@dataclass(frozen=True, slots=True)
class IndexSettings:
    """The settings of an index. Two indexes of the same pages with the same fingerprint contain the same chunks.

    `chunk_size` and `chunk_overlap` count `chunk_unit`; `chunk_size` 0 means as many tokens as the embedding model
    reads. `identity` identifies the model's vectors (for a local folder, by its content); it is "", and `dimension` 0,
    until the model has been loaded. `html` are the CSS selectors for the collection's pages. The prefixes and `pooling`
    are as in EmbeddingModel.
    """

    model: str = "all-MiniLM-L6-docs-v1"
    identity: str = ""
    dimension: int = 0
    chunk_size: int = 0
    chunk_overlap: int = 0
    chunk_unit: ChunkUnit = "tokens"
    vector_type: VectorType = "auto"
    sectioning: int = SECTIONING_VERSION
    html: Mapping[str, Any] = field(default_factory=dict, hash=False)
    query_prefix: str | None = None
    chunk_prefix: str | None = None
    pooling: str | None = None

    @property
    def embedding(self) -> EmbeddingModel:
        """The embedding model as the index uses it."""
        return EmbeddingModel(self.model, self.query_prefix, self.chunk_prefix, self.pooling)

    @property
    def fingerprint(self) -> str:
        """The hash of all settings that are set.

        Indexes from before a setting existed therefore keep their fingerprint.
        """
        given = {name: value for name, value in asdict(self).items() if value not in (None, {})}
        return digest(json.dumps(given, sort_keys=True))


@dataclass(frozen=True, slots=True)
class Index:
    """An index in the database; `revision` grows by one with every publish into it.

    `settings` belong to the build (with the chosen vector type), `fingerprint` to the requested settings. `rules` are
    the keys of the collection file that affect answers from its live index: `boosts`, `synonyms`, `pinned`.
    """

    id: int
    collection: str
    settings: IndexSettings
    state: IndexState
    revision: int
    fingerprint: str = ""
    rules: Mapping[str, Any] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class Hit:
    """A retrieved chunk with its score and the kind of that score.

    `ranks` and `scores` come from the legs (vector, bm25) that found the chunk. `sources` are all places with the same
    text, the hit's own first. `context` is the text joined with its neighbors in the section, "" if none were joined.
    `below` is the text of the subsections that follow, each under its heading. `plain` is the stored plain text; it is
    "" in a hit made of a text by hand, for which `pipelines.page.stored.plain_of` reads the Markdown.
    """

    chunk_id: str
    url: str
    anchors: tuple[str, ...] = ()
    title: str = ""
    headings: tuple[str, ...] = ()
    text: str = ""
    text_hash: str = ""
    score: float = 0.0
    score_kind: str = ""
    ranks: dict[str, int] = field(default_factory=dict)
    scores: dict[str, float] = field(default_factory=dict)
    sources: tuple[str, ...] = ()
    context: str = ""
    below: str = ""
    tags: tuple[str, ...] = ()
    version: str | None = None
    language: str = ""
    ordinal: int = 0
    plain: str = ""

    @property
    def source(self) -> str:
        """The source that an answer cites: `url#anchor`."""
        return f"{self.url}#{self.anchors[-1]}" if self.anchors else self.url

    @property
    def passage(self) -> str:
        """The text that an answer is made from, with its neighbors if they were joined."""
        return self.context or self.text


@dataclass(frozen=True, slots=True)
class Filters:
    """Restricts the chunks that may answer: with any of `tags`, of one version, one language, under one URL prefix."""

    tags: tuple[str, ...] = ()
    version: str | None = None
    language: str | None = None
    url_prefix: str | None = None

    def __bool__(self) -> bool:
        return bool(self.tags) or any(v is not None for v in (self.version, self.language, self.url_prefix))

    def keep(self, hit: Hit) -> bool:
        """Return whether a hit passes."""
        return (
            (not self.tags or not set(self.tags).isdisjoint(hit.tags))
            and self.version in (None, hit.version)
            and self.language in (None, hit.language)
            and hit.url.startswith(self.url_prefix or "")
        )
