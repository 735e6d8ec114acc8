"""Cuts the sections of a document into chunks that fit into the embedding model's input.

It uses only the model's token counts. Independent of HTML.
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from pipelines.embedding.tokens import TokenCounter
from pipelines.page.cut.atoms import to_atoms
from pipelines.page.cut.outline import with_outlines
from pipelines.page.cut.packing import Packer, split_words
from pipelines.page.cut.packs import Pack
from pipelines.page.cut.weights import WordWeights, count_characters
from pipelines.page.flow import GAP
from pipelines.page.tree import Document, Section
from pipelines.records import Chunk, ChunkUnit, IndexSettings, digest
from pipelines.text.counts import counted

# The heading path may take at most a third of the model's input, which keeps the text the larger part.
HEADINGS_SHARE = 3

# Fewer tokens leave no room for a heading, special tokens and a single character that takes a dozen tokens.
SMALLEST_SIZE = 32

SHRINK = 0.8  # factor for each retry, because the token counts of parts do not add up to the count of the whole


DEFAULTS = IndexSettings()


class InvalidChunkSize(ValueError):
    """The chunk size or overlap is invalid, or does not fit the embedding model."""


class _Draft(NamedTuple):
    """A part of a section under its heading path; it may still be too long for a chunk."""

    section: Section
    path: str
    pack: Pack
    text: str

    @property
    def embed_text(self) -> str:
        return f"{self.path}\n{self.text}" if self.path else self.text


class Chunker:
    """Cuts documents into chunks of at most `size` tokens, including the heading path and special tokens.

    A `size` of 0 means the model's limit. With `unit` "characters", `size` limits the characters of the text without
    headings, and the model's token limit applies too. `overlap`, in the same unit, is how much prose from the end of a
    chunk the next chunk of the section repeats. Raises InvalidChunkSize.
    """

    def __init__(
        self,
        counter: TokenCounter,
        size: int = DEFAULTS.chunk_size,
        overlap: int = DEFAULTS.chunk_overlap,
        unit: ChunkUnit = DEFAULTS.chunk_unit,
    ) -> None:
        _check(size, overlap, unit, counter.max_tokens)
        self._counter = counter
        self._limit = size if size and unit == "tokens" else counter.max_tokens
        self._characters = size if unit == "characters" else 0
        self._overlap = overlap
        self._bare = counter.count_tokens([""])[0]  # special tokens and prefix
        if self._bare * 2 > self._limit:
            raise InvalidChunkSize(
                f"chunk_size {self._limit}: the prefix and special tokens of the model take {self._bare} of it; "
                "set a larger one"
            )
        self._weigh = WordWeights(self._tokens)
        self._gap = self._tokens([GAP])[0]

    def __call__(self, document: Document) -> list[Chunk]:
        """Return the chunks of a document in page order. A section without text has no chunks."""
        flat = with_outlines(document.sections)
        paths = self._paths(document.title, [section for section, _ in flat])
        drafts = [
            _draft(section, path, Pack(to_atoms(blocks))) for (section, blocks), path in zip(flat, paths, strict=True)
        ]
        seen: Counter[tuple[str, str]] = Counter()
        chunks: list[Chunk] = []
        for draft, tokens in self._settle([draft for draft in drafts if draft.text]):
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
            text=draft.pack.markdown,
            text_hash=digest(" ".join(text.split())),
            embed_text=embed_text,
            embed_hash=digest(self._counter.identity, self._counter.chunk_prefix + embed_text),
            tokens=tokens,
            plain=text,
        )

    # -- heading paths

    def _paths(self, title: str, sections: Sequence[Section]) -> list[str]:
        names = [_names(title, section.headings) for section in sections]
        room = (self._limit - self._bare) // HEADINGS_SHARE
        weights = self._weigh([" > ".join(path) for path in names])
        return [
            " > ".join(path if weight <= room else self._shorten(path, room))
            for path, weight in zip(names, weights, strict=True)
        ]

    def _shorten(self, names: list[str], room: int) -> list[str]:
        """Return the last of `names` that fit into `room` tokens, or the first words of a name that is too long."""
        for start in range(1, len(names)):
            if self._weigh([" > ".join(names[start:])])[0] <= room:
                return names[start:]
        return [split_words(names[-1], room, self._weigh)[0].strip()]

    # -- splitting

    def _settle(self, drafts: list[_Draft], attempt: int = 0) -> list[tuple[_Draft, int]]:
        """Split drafts that are too long until all fit. Return each with its exact token count."""
        likely = [draft for draft in drafts if self._seems_to_fit(draft)]
        counts = self._counter.count_tokens([draft.embed_text for draft in likely])
        fitting = {id(draft): n for draft, n in zip(likely, counts, strict=True) if n <= self._limit}
        settled: list[tuple[_Draft, int]] = []
        for draft in drafts:
            if id(draft) in fitting:
                settled.append((draft, fitting[id(draft)]))
            else:
                settled.extend(self._settle(self._split(draft, attempt), attempt + 1))
        return settled

    def _seems_to_fit(self, draft: _Draft) -> bool:
        """Return whether `draft` fits, as estimated from word weights. A single character always fits."""
        if self._characters and len(draft.text) > self._characters:
            return False
        return len(draft.text) == 1 or self._weigh([draft.embed_text])[0] + self._bare <= self._limit

    def _split(self, draft: _Draft, attempt: int) -> list[_Draft]:
        """Return shorter drafts. Token counts are not exactly additive, so each attempt uses a smaller budget."""
        if self._characters and not attempt:
            packer = Packer(self._characters, self._overlap, len(GAP), count_characters)
        else:
            room = self._limit - self._bare - self._weigh([draft.path])[0] - 1
            overlap = 0 if self._characters else self._overlap
            packer = Packer(max(1, int(room * SHRINK**attempt)), overlap, self._gap, self._weigh)
        drafts = [_draft(draft.section, draft.path, pack) for pack in packer(draft.pack.atoms)]
        return [draft for draft in drafts if draft.text]

    def _tokens(self, texts: list[str]) -> list[int]:
        return [tokens - self._bare for tokens in self._counter.count_tokens(texts)]


def _check(size: int, overlap: int, unit: ChunkUnit, max_tokens: int) -> None:
    if unit not in ("tokens", "characters"):
        raise InvalidChunkSize(f"chunk_unit {unit!r}: choose tokens or characters")
    if size < 0 or overlap < 0:
        raise InvalidChunkSize(f"chunk_size {size}, chunk_overlap {overlap}: neither can be negative")
    tokens = size if size and unit == "tokens" else max_tokens
    if tokens > max_tokens:
        raise InvalidChunkSize(
            f"chunk_size {size}: the embedding model reads {counted(max_tokens, 'token')} and would drop the rest; "
            f"set at most {max_tokens}, or 0 for the longest that it can read"
        )
    if min(tokens, size or tokens) < SMALLEST_SIZE:
        raise InvalidChunkSize(f"chunk_size {size}: set at least {SMALLEST_SIZE} {unit}, or 0 for the model's limit")
    if overlap >= (size or tokens):
        raise InvalidChunkSize(f"chunk_overlap {overlap}: must be less than the chunk_size, {size or tokens} {unit}")


def _draft(section: Section, path: str, pack: Pack) -> _Draft:
    return _Draft(section, path, pack, pack.text)


def _names(title: str, headings: Sequence[str]) -> list[str]:
    """Return the title and headings, each on one line, without consecutive duplicates."""
    names = [" ".join(name.split()) for name in (title, *headings)]
    return [name for name, before in zip(names, ["", *names], strict=False) if name and name != before]
