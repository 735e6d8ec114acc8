"""All that flows through Raydex, declared once: pages, sections, chunks, indexes, hits, answers.

Plain frozen dataclasses and the few hashes that name things. Knows no database, no HTTP and no Ray.
"""

import hashlib
import json
from dataclasses import asdict, dataclass, field
from typing import Literal

# Raised whenever reading or sectioning would give other text or anchors for the same bytes:
# it is part of an index's fingerprint, so the next run rebuilds from the stored pages.
SECTIONING_VERSION = 2

PageState = Literal["ok", "failed", "gone", "skipped", "redirect", "duplicate"]
BlockKind = Literal["prose", "code", "table"]
ChunkUnit = Literal["tokens", "characters"]
VectorType = Literal["auto", "vector", "halfvec"]
IndexState = Literal["building", "candidate", "live", "retired", "failed"]
Role = Literal["system", "user", "assistant"]


def digest(*parts: str | bytes) -> str:
    """128 bits of SHA-256 over length-prefixed `parts`, as 32 hex characters."""
    sha = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        sha.update(len(data).to_bytes(8, "big"))
        sha.update(data)
    return sha.hexdigest()[:32]


def content_hash(body: bytes, content_type: str, charset: str | None) -> str:
    """What decides whether a page has changed: its bytes and how they are to be read."""
    return digest(body, content_type, charset or "")


@dataclass(frozen=True, slots=True)
class Page:
    """One fetched document: the URL it stands for and its raw bytes.

    `content_type` is the media type without parameters; `charset` is what the server declared, if it did.
    """

    url: str
    body: bytes
    content_type: str = "text/html"
    charset: str | None = None


@dataclass(frozen=True, slots=True)
class FetchedPage:
    """A page's fate in one run, as the crawler or the folder reader found it.

    `body` None with state "ok" means unchanged (304): what is stored stays. `links` are the absolute URLs
    the page points to, `canonical` its `rel=canonical` if it names another URL, `error` why a page is not "ok".
    """

    url: str
    state: PageState
    http_status: int | None = None
    etag: str | None = None
    body: bytes | None = None
    content_type: str = "text/html"
    charset: str | None = None
    links: tuple[str, ...] = ()
    canonical: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class KnownPage:
    """What earlier runs know about a URL. `etag` is None unless the stored body may be revalidated with it."""

    url: str
    state: PageState
    etag: str | None
    content_hash: str | None
    links: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """A run of text inside a section that is cut only where its kind allows it.

    `prose` is cut at sentences, `code` at lines (line breaks and indentation kept), `table` at rows
    (one row a line); `header` is the table's header row, repeated on each part of a cut table.
    """

    kind: BlockKind
    text: str
    header: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """The part of a page under one anchor, without the text of its subsections.

    `anchors` is the id path from outermost to finest (empty where the page offers none); `headings` the
    headings from the page's first to this section's own. The section's own heading is not in `blocks`.
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
    """A page that was read: its title, declared language ("" if none) and sections in page order."""

    url: str
    title: str
    language: str
    sections: tuple[Section, ...]


@dataclass(frozen=True, slots=True)
class Chunk:
    """A bounded piece of a section: what is embedded and retrieved.

    `id` depends on url, anchor, text and how-manieth such text under that anchor; never on a position or
    a setting. `embed_hash` names exactly what the model reads and is the only key of vector reuse.
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
    """What an index is made with. Two indexes with the same fingerprint hold the same chunks.

    `chunk_size` and `chunk_overlap` count `chunk_unit`; `chunk_size` 0 means as many tokens as the
    embedding model reads. `identity` names the model's vectors (a local folder's by its content); it is "",
    and `dimension` 0, until the model is known.
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
        return digest(json.dumps(asdict(self), sort_keys=True))


@dataclass(frozen=True, slots=True)
class Index:
    """An index as the database knows it; `revision` grows by one with every publish into it.

    `settings` say what was built (the vector type chosen, the dimension), `fingerprint` what was asked for.
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

    `ranks` and `scores` hold what each leg (vector, bm25) said, where it found the chunk; `sources` are
    all places where the same text stands, the hit's own first. `context` is the text with its neighbours in the
    section, "" where none were joined.
    """

    chunk_id: str
    url: str
    anchors: tuple[str, ...]
    title: str
    headings: tuple[str, ...]
    text: str
    text_hash: str
    score: float
    score_kind: str
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
        """`url#anchor`: what an answer cites."""
        return f"{self.url}#{self.anchors[-1]}" if self.anchors else self.url

    @property
    def passage(self) -> str:
        """What an answer is made from: the text, with its neighbours where they were joined."""
        return self.context or self.text


@dataclass(frozen=True, slots=True)
class Filters:
    """Which chunks may answer: having any of `tags`, of one version, one language, under one URL prefix."""

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
    """What language models were asked: tokens, calls and their price in US dollars."""

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


@dataclass(frozen=True, slots=True)
class Exchange:
    """One call of a language model: the prompt as sent and what came back."""

    model: str
    messages: tuple[Message, ...]
    completion: str


@dataclass(frozen=True, slots=True)
class Route:
    """Which agent a question goes to, and why."""

    agent: str
    why: str


@dataclass(frozen=True, slots=True)
class Citation:
    """A numbered source of an answer: `[n]` in its text points here.

    `supported` says whether the claims that cite it are borne out by it, `support` how well (0 to 1, the weakest
    claim). `scores` are what each leg said of its hit.
    """

    n: int
    source: str
    title: str
    snippet: str
    headings: tuple[str, ...] = ()
    scores: dict[str, float] = field(default_factory=dict)
    supported: bool = True
    support: float = 1.0


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer with its citations, the hits it was made from and how long each step took (seconds).

    `degraded` names the parts that failed on the way, `known` is False where it says that it does not know,
    `queries` are what was searched for. `exchanges` are the prompts that were sent, where they were asked for.
    """

    question: str
    text: str
    agent: str
    citations: tuple[Citation, ...]
    hits: tuple[Hit, ...]
    degraded: tuple[str, ...]
    timings: dict[str, float]
    index: int
    revision: int
    id: str = ""
    known: bool = True
    route: Route | None = None
    queries: tuple[str, ...] = ()
    usage: Usage = Usage()
    exchanges: tuple[Exchange, ...] = ()

    def __str__(self) -> str:
        sources = "\n".join(f"[{c.n}] {c.title}\n    {c.source}" for c in self.citations)
        return f"{self.text}\n\n{sources}" if sources else self.text
