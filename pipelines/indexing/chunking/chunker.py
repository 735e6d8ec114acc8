"""A document's sections become chunks that the embedding model reads whole.

Of the model it knows the token counts and nothing else; it knows no HTML.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from pipelines.indexing.chunking.packing import GAP, Pack, Packer, text_of, whole, words_within
from pipelines.indexing.chunking.weights import WordWeights, characters
from pipelines.records import Chunk, ChunkUnit, Document, Section, digest

# The heading path may take a third of what the model reads, so that text is always the greater part.
HEADINGS_SHARE = 3

# Fewer tokens leave no room for a heading, special tokens and one sign that a model reads as a dozen tokens.
SMALLEST_SIZE = 32

SHRINK = 0.8  # budget of each further attempt, where a model's token counts of parts do not add up to the whole's


class ChunkSizeRefused(ValueError):
    """Chunk size and overlap that contradict each other or the embedding model."""


class TokenLimits(Protocol):
    """What the chunker asks of an embedding model; `pipelines.embedding.tokens.TokenCounter` answers it."""

    @property
    def identity(self) -> str: ...
    @property
    def max_tokens(self) -> int: ...
    @property
    def chunk_prefix(self) -> str: ...
    def count_tokens(self, texts: Sequence[str]) -> list[int]: ...


@dataclass(frozen=True, slots=True)
class _Draft:
    """A chunk before it is known to fit: a part of a section under its heading path."""

    section: Section
    path: str
    pack: Pack
    text: str

    @property
    def embed_text(self) -> str:
        return f"{self.path}\n{self.text}" if self.path else self.text


class Chunker:
    """Cuts documents into chunks of at most `size` tokens (heading path and special tokens included).

    `size` 0 is as much as the model reads. With `unit` "characters", `size` counts the characters of the text
    alone, and the model's token limit holds on top. `overlap`, in the same unit, repeats the last words of
    prose in the next chunk of its section. Raises ChunkSizeRefused.
    """

    def __init__(self, counter: TokenLimits, size: int = 0, overlap: int = 0, unit: ChunkUnit = "tokens") -> None:
        _check(size, overlap, unit, counter.max_tokens)
        self._counter = counter
        self._limit = size if size and unit == "tokens" else counter.max_tokens
        self._characters = size if unit == "characters" else 0
        self._overlap = overlap
        self._bare = counter.count_tokens([""])[0]  # special tokens and prefix
        if self._bare * 2 > self._limit:
            raise ChunkSizeRefused(
                f"chunk size {self._limit}: prefix and special tokens of the model alone take {self._bare}; "
                "set a larger chunk_size"
            )
        self._weigh = WordWeights(self._tokens)
        self._gap = self._tokens([GAP])[0]

    def __call__(self, document: Document) -> list[Chunk]:
        """The chunks of a document in page order; a section without text has none."""
        paths = self._paths(document)
        drafts = [
            _draft(section, path, whole(section.blocks)) for section, path in zip(document.sections, paths, strict=True)
        ]
        seen: Counter[tuple[str, str]] = Counter()
        chunks: list[Chunk] = []
        for draft, tokens in self._settled([draft for draft in drafts if draft.text]):
            key = (draft.section.anchor, draft.text)
            chunks.append(self._chunk(document, draft, tokens, len(chunks), seen[key]))
            seen[key] += 1
        return chunks

    def _chunk(self, document: Document, draft: _Draft, tokens: int, ordinal: int, twin: int) -> Chunk:
        section, text, embed_text = draft.section, draft.text, draft.embed_text
        return Chunk(
            id=digest(section.url, section.anchor, text, str(twin)),
            url=section.url,
            anchors=section.anchors,
            title=document.title,
            headings=section.headings,
            ordinal=ordinal,
            text=text,
            text_hash=digest(" ".join(text.split())),
            embed_text=embed_text,
            embed_hash=digest(self._counter.identity, self._counter.chunk_prefix + embed_text),
            tokens=tokens,
        )

    # -- heading paths

    def _paths(self, document: Document) -> list[str]:
        names = [_names(document.title, section.headings) for section in document.sections]
        room = (self._limit - self._bare) // HEADINGS_SHARE
        weights = self._weigh([" > ".join(path) for path in names])
        return [
            " > ".join(path if weight <= room else self._shortened(path, room))
            for path, weight in zip(names, weights, strict=True)
        ]

    def _shortened(self, names: list[str], room: int) -> list[str]:
        """The last of `names` that fit into `room` tokens; of a single one too long, its first words."""
        for start in range(1, len(names)):
            if self._weigh([" > ".join(names[start:])])[0] <= room:
                return names[start:]
        return [words_within(names[-1], room, self._weigh)[0].strip()]

    # -- cutting and packing

    def _settled(self, drafts: list[_Draft], attempt: int = 0) -> list[tuple[_Draft, int]]:
        """The drafts, those too long cut until they fit, each with its exact count of tokens."""
        likely = [draft for draft in drafts if self._likely(draft)]
        counts = self._counter.count_tokens([draft.embed_text for draft in likely])
        fitting = {id(draft): n for draft, n in zip(likely, counts, strict=True) if n <= self._limit}
        settled: list[tuple[_Draft, int]] = []
        for draft in drafts:
            if id(draft) in fitting:
                settled.append((draft, fitting[id(draft)]))
            else:
                settled.extend(self._settled(self._split(draft, attempt), attempt + 1))
        return settled

    def _likely(self, draft: _Draft) -> bool:
        """Whether `draft` fits as far as can be told without the tokenizer; a single character has to."""
        if self._characters and len(draft.text) > self._characters:
            return False
        return len(draft.text) == 1 or self._weigh([draft.embed_text])[0] + self._bare <= self._limit

    def _split(self, draft: _Draft, attempt: int) -> list[_Draft]:
        """Shorter drafts. Not every model's token counts of parts add up exactly: each attempt aims lower."""
        if self._characters and not attempt:
            packer = Packer(self._characters, self._overlap, len(GAP), characters)
        else:
            room = self._limit - self._bare - self._weigh([draft.path])[0] - 1
            overlap = 0 if self._characters else self._overlap
            packer = Packer(max(1, int(room * SHRINK**attempt)), overlap, self._gap, self._weigh)
        drafts = [_draft(draft.section, draft.path, pack) for pack in packer(draft.pack)]
        return [draft for draft in drafts if draft.text]

    def _tokens(self, texts: list[str]) -> list[int]:
        return [tokens - self._bare for tokens in self._counter.count_tokens(texts)]


def _check(size: int, overlap: int, unit: ChunkUnit, max_tokens: int) -> None:
    if unit not in ("tokens", "characters"):
        raise ChunkSizeRefused(f"chunk_unit {unit!r}: choose tokens or characters")
    if size < 0 or overlap < 0:
        raise ChunkSizeRefused(f"chunk_size {size}, chunk_overlap {overlap}: neither can be negative")
    tokens = size if size and unit == "tokens" else max_tokens
    if tokens > max_tokens:
        raise ChunkSizeRefused(
            f"chunk_size {size}: the embedding model reads {max_tokens} tokens and would drop the rest; "
            f"set at most {max_tokens}, or 0 for as much as it reads"
        )
    if min(tokens, size or tokens) < SMALLEST_SIZE:
        raise ChunkSizeRefused(f"chunk_size {size}: set at least {SMALLEST_SIZE} {unit}, or 0 for the model's limit")
    if overlap >= (size or tokens):
        raise ChunkSizeRefused(f"chunk_overlap {overlap}: must be less than the chunk_size, {size or tokens} {unit}")


def _draft(section: Section, path: str, pack: Pack) -> _Draft:
    return _Draft(section, path, pack, text_of(pack))


def _names(title: str, headings: Sequence[str]) -> list[str]:
    """Title and headings on one line each, none twice in a row."""
    names = [" ".join(name.split()) for name in (title, *headings)]
    return [name for name, before in zip(names, ["", *names], strict=False) if name and name != before]
