"""The values that flow through Raydex: pages, sections, chunks, indexes, hits, answers.

Plain frozen dataclasses, and the hashes that name them. Knows no database, no HTTP and no Ray.
"""

import functools
import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from pydantic import TypeAdapter

# Raise it whenever reading, sectioning or chunking gives other text or anchors for the same bytes: it is part of an
# index's fingerprint, so the next run rebuilds from the stored pages.
SECTIONING_VERSION = 6

BlockKind = Literal["prose", "code", "table"]
ChunkUnit = Literal["tokens", "characters"]
VectorType = Literal["auto", "vector", "halfvec"]
IndexState = Literal["building", "candidate", "live", "retired", "failed"]
Role = Literal["system", "user", "assistant"]


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


@dataclass(frozen=True, slots=True)
class Chunk:
    """A bounded piece of a section, the unit that is embedded and retrieved.

    `text` is Markdown (pipelines/markdown); all hashes and counts are of its plain text. `id` depends on the url, the
    anchor, the plain text and the count of equal ones before it under that anchor, never on a position or a setting.
    `embed_hash` is the hash of exactly what the model reads, the only key for reusing vectors.
    To store one more thing of a chunk, add a field here and a column to CHUNK_COLUMNS in pipelines/store/chunks.py.
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

    @property
    def anchor(self) -> str:
        """The finest anchor, "" for the page itself."""
        return self.anchors[-1] if self.anchors else ""


@dataclass(frozen=True, slots=True)
class IndexSettings:
    """The settings of an index. Two indexes of the same pages and with the same fingerprint hold the same chunks.

    `chunk_size` and `chunk_overlap` count `chunk_unit`; `chunk_size` 0 means as many tokens as the embedding model
    reads. `identity` names the model's vectors (a local folder's by its content); it is "", and `dimension` 0, until
    the model has been loaded.
    """

    model: str = "all-MiniLM-L6-v2"
    identity: str = ""
    dimension: int = 0
    chunk_size: int = 0
    chunk_overlap: int = 0
    chunk_unit: ChunkUnit = "tokens"
    vector_type: VectorType = "auto"
    sectioning: int = SECTIONING_VERSION

    @property
    def fingerprint(self) -> str:
        """The hash of all settings."""
        return digest(json.dumps(asdict(self), sort_keys=True))


@dataclass(frozen=True, slots=True)
class Index:
    """An index in the database; `revision` grows by one with every publish into it.

    `settings` are those of the build (with the vector type that was chosen), `fingerprint` is of the requested ones.
    """

    id: int
    collection: str
    settings: IndexSettings
    state: IndexState
    revision: int
    fingerprint: str = ""


@dataclass(frozen=True, slots=True)
class Hit:
    """A retrieved chunk with its score and the kind of that score.

    `ranks` and `scores` are those of the legs (vector, bm25) that found the chunk; `sources` are all places with the
    same text, the hit's own first. `context` is the text joined with its neighbours in the section, "" if none were
    joined.
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
    tags: tuple[str, ...] = ()
    version: str | None = None
    language: str = ""
    ordinal: int = 0

    @property
    def source(self) -> str:
        """The source that an answer cites: `url#anchor`."""
        return f"{self.url}#{self.anchors[-1]}" if self.anchors else self.url

    @property
    def passage(self) -> str:
        """The text that an answer is made from, with its neighbours if they were joined."""
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


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation."""

    role: Role
    content: str


@dataclass(frozen=True, slots=True)
class Usage:
    """The use of language models: tokens, calls and their price in US dollars."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    calls: int = 0
    cost: float = 0.0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.calls + other.calls,
            self.cost + other.cost,
        )


# Why a completion ended, in OpenAI's words: it was whole, or else "length" or "content_filter".
FINISHED = "stop"


@dataclass(frozen=True, slots=True)
class Exchange:
    """One call of a language model: the prompt as sent, the completion, and why that ended (see FINISHED)."""

    model: str
    messages: tuple[Message, ...]
    completion: str
    finish_reason: str = FINISHED


@dataclass(frozen=True, slots=True)
class Route:
    """The agent that a question goes to, and why."""

    agent: str
    why: str


# Who put a citation's number into the answer: the language model, Raydex, or the person who wrote the answer.
CitedBy = Literal["model", "attributed", "person"]
MODEL: CitedBy = "model"
ATTRIBUTED: CitedBy = "attributed"
PERSON: CitedBy = "person"

# Who wrote an answer's text: a person, a language model, or the documentation itself, which it quotes.
WrittenBy = Literal["person", "model", "quotes"]
VERIFIED = "verified"  # the agent's name of an answer that a person wrote
WITHOUT_MODEL = ("extractive", "smalltalk")  # the agents that ask no language model


def written_by(agent: str) -> WrittenBy:
    """Return who wrote the text of an answer of `agent`."""
    return "person" if agent == VERIFIED else "quotes" if agent in WITHOUT_MODEL else "model"


# How far a reader can rely on an answer; grounding/confidence.py defines it.
Confidence = Literal["high", "some", "low"]
HIGH: Confidence = "high"
SOME: Confidence = "some"
LOW: Confidence = "low"


@dataclass(frozen=True, slots=True)
class Citation:
    """A numbered source of an answer: `[n]` in its text refers to it.

    `supported` tells whether the source supports the claims that cite it, `support` how well (0 to 1, of the weakest
    claim); of a quoted source, whether it answers the question. `scores` are the scores of each leg for its hit. `by`
    is MODEL if the language model gave the number anywhere, PERSON in an answer of a person, else ATTRIBUTED.
    """

    n: int
    source: str
    title: str = ""
    snippet: str = ""
    headings: tuple[str, ...] = ()
    scores: dict[str, float] = field(default_factory=dict)
    supported: bool = True
    support: float = 1.0
    by: CitedBy = MODEL


@dataclass(frozen=True, slots=True)
class Claims:
    """How many claims an answer makes, how many of them cite a passage, and how many a passage that supports them.

    `unsupported` are the texts of the others, in their order.
    """

    total: int = 0
    cited: int = 0
    supported: int = 0
    unsupported: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer with its citations, the hits it was made from and the seconds that each step took.

    `degraded` names the parts that failed; `known` is False if the answer is that the sources hold none; `queries` are
    the queries of the search; `exchanges` are the prompts that were sent, if they were requested; `finish_reason` is
    FINISHED unless the model was cut off. `claims` counts what it states, `confidence` is how far it can be relied on.
    `collection` is the one that answered, also where the question named none. An answer is stored as `to_dict` gives
    it: a new field needs a default, which answers of before have.
    """

    question: str
    text: str
    agent: str = ""
    citations: tuple[Citation, ...] = ()
    hits: tuple[Hit, ...] = ()
    degraded: tuple[str, ...] = ()
    timings: dict[str, float] = field(default_factory=dict)
    index: int = 0
    revision: int = 0
    id: str = ""
    known: bool = True
    route: Route | None = None
    queries: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    usage: Usage = Usage()
    exchanges: tuple[Exchange, ...] = ()
    finish_reason: str = FINISHED
    claims: Claims = Claims()
    confidence: Confidence = LOW
    collection: str = ""

    @property
    def written_by(self) -> WrittenBy:
        """Who wrote the text."""
        return written_by(self.agent)

    @property
    def cited(self) -> tuple[str, ...]:
        """The ids of the chunks that it cites: of each source the n-th hit, or the first hit with that source."""
        found = (self._hit_of(citation) for citation in self.citations)
        return tuple(hit.chunk_id for hit in found if hit)

    def _hit_of(self, citation: Citation) -> Hit | None:
        nth = self.hits[citation.n - 1 : citation.n] if citation.n > 0 else ()
        return next((hit for hit in (*nth, *self.hits) if citation.source in (hit.source, *hit.sources)), None)

    def to_dict(self) -> dict[str, Any]:
        """Return all of it in JSON's types."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Answer":
        """Return the answer that `to_dict` gave; what is null or missing has its default. Raises ValidationError."""
        return _answers().validate_python(_without_nulls(values))

    def __str__(self) -> str:
        sources = "\n".join(f"[{c.n}] {c.title}\n    {c.source}" for c in self.citations)
        return f"{self.text}\n\n{sources}" if sources else self.text


@functools.cache
def _answers() -> TypeAdapter[Answer]:
    return TypeAdapter(Answer)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _without_nulls(inner) for name, inner in value.items() if inner is not None}
    return [_without_nulls(inner) for inner in value] if isinstance(value, list | tuple) else value
