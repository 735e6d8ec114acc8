"""Cuts the text of a section into passages: what a reader would mark in the page.

A passage is up to five sentences and the code, list, table or note that follows them. Knows texts only: no hit, no
question.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from pipelines.page.blocks import LINE_BREAK, BlockKind, MarkdownBlock, read_blocks
from pipelines.page.stored import plain_text
from pipelines.text.phrases import read_phrases

MOST_SENTENCES = 5  # of a passage: what is read at a glance
ENOUGH_SENTENCES = 2  # a passage with fewer takes those after it in, up to MOST_WORDS
MOST_WORDS = 100
LONGEST, LONGEST_WORD = (
    5_000,
    40,
)  # characters of a sentence, which ends there; of an abbreviation with what precedes it
MOST_BARE = 20  # passages in a row that say nothing, which are taken in with what they introduce
TITLE_WORDS = 8  # a longer item is more than a title
FEW_WORDS = 3  # beside links: "More: [ports](…), [HTTPS](…)." has one

_SENTENCE_END = re.compile(r"(?<=[.!?])[\"')\]”’]*\s+(?=[\"'(\[`“‘]*[A-Z0-9`])")
_NUMBERED = re.compile(r"\s*(\d{1,9})[.)](?:\s|$)")
_CLOSES = re.compile(r"[.!?。！？][\"')\]”’`*]*$")
SAID = (BlockKind.PROSE, BlockKind.NOTE)  # what is made of sentences

_PHRASES = read_phrases(__name__)


@dataclass(frozen=True)
class Passage:
    """Consecutive blocks of a section: prose, with what it introduces. `place` is its number in the section."""

    place: int
    blocks: tuple[MarkdownBlock, ...]

    @property
    def text(self) -> str:
        """The Markdown of its blocks."""
        return "\n\n".join(block.text for block in self.blocks)

    @cached_property
    def plain(self) -> str:
        """The text as it is compared with words and vectors."""
        return "\n\n".join(block.plain for block in self.blocks)

    @cached_property
    def prose(self) -> str:
        """The sentences, plain, without labels, code, lists and tables."""
        return "\n\n".join(block.plain for block in self.blocks if block.kind in SAID and not _is_label(block))

    @cached_property
    def substance(self) -> str:
        """The plain text without the sentences that send readers elsewhere and the titles of other sections."""
        before = (None, *self.blocks)
        kept = [block for last, block in zip(before, self.blocks, strict=False) if not _is_outline(last, block)]
        return "\n\n".join(
            _without_pointers(block.plain) if block.kind is BlockKind.PROSE else block.plain for block in kept
        )

    @property
    def attached(self) -> tuple[MarkdownBlock, ...]:
        """The code, lists and tables."""
        return tuple(block for block in self.blocks if block.kind not in SAID)

    @property
    def has_code(self) -> bool:
        """Whether some of it is code, in a list or a note too."""
        return any(block.has_code for block in self.blocks)


# ---------------------------------------------------------------------------------------------- sentences


def sentences(block: str) -> Iterator[str]:
    """Yield the whole sentences of a block of prose, without a beginning or an end that was cut off."""
    return (sentence for sentence in split_sentences(block) if _is_whole(sentence))


def split_sentences(block: str) -> Iterator[str]:
    """Yield the sentences of a block of prose, none with half of the code in a line."""
    parts: list[str] = []
    length = ticks = 0
    for part in _SENTENCE_END.split(" ".join(block.split())):
        parts.append(part)
        length, ticks = length + len(part), ticks + part.count("`")
        # An abbreviation is behind a space: it is in this part, or this part begins with it.
        if length > LONGEST or (ticks % 2 == 0 and not _PHRASES["abbreviation"].search(part[-LONGEST_WORD:])):
            yield " ".join(parts)
            parts, length, ticks = [], 0, 0
    if parts:
        yield " ".join(parts)


def _is_outline(last: MarkdownBlock | None, block: MarkdownBlock) -> bool:
    """Return whether a list, behind a whole sentence, is one of titles."""
    return last is not None and last.kind is BlockKind.PROSE and not _is_open(last) and _has_titles(block)


def _has_titles(block: MarkdownBlock) -> bool:
    items = map(plain_text, block.items)
    titles = all(len(item.split()) <= TITLE_WORDS + 1 and not _CLOSES.search(item) for item in items)
    return block.kind is BlockKind.LIST and titles


def _without_pointers(prose: str) -> str:
    return " ".join(sentence for sentence in split_sentences(prose) if not _PHRASES["points"].match(sentence))


def _is_whole(sentence: str) -> bool:
    words = sentence.split()
    first = words[0].lstrip("\"'([`“‘") if words else ""
    begins = first[:1].isupper() or first[:1].isdigit() or bool(re.search(r"\w[._(]|[a-z][A-Z]|-\w", first))
    return begins and 4 <= len(words) <= 80 and sentence.rstrip("\"')]`")[-1:] in (".", "!", "?", ":")


# ---------------------------------------------------------------------------------------------- passages


def split_passages(markdown: str) -> list[Passage]:
    """Return the passages of a section's text in order."""
    groups: list[list[MarkdownBlock]] = []
    for block in _short_blocks(markdown):
        if groups and _belongs(groups[-1], block, first=len(groups) == 1):
            groups[-1].append(block)
        else:
            groups.append([block])
    return [Passage(place, tuple(blocks)) for place, blocks in enumerate(groups)]


def _short_blocks(markdown: str) -> Iterator[MarkdownBlock]:
    """Yield the blocks of a text, long prose in parts of a few sentences, without ornament: the glyphs of tabs."""
    for block in read_blocks(markdown):
        if block.kind is not BlockKind.PROSE or is_definition(block):
            yield block
        elif any(map(str.isalnum, block.text)):
            yield from _short_prose(block)


def _short_prose(block: MarkdownBlock) -> Iterator[MarkdownBlock]:
    all_sentences = list(split_sentences(block.text.replace(LINE_BREAK, "\n")))
    parts = -(-len(all_sentences) // MOST_SENTENCES)
    if parts < 2:
        yield block
        return
    size = -(-len(all_sentences) // parts)
    for start in range(0, len(all_sentences), size):
        yield replace(block, text=" ".join(all_sentences[start : start + size]))


def is_definition(block: MarkdownBlock) -> bool:
    """Return whether a block is a term with its definition below."""
    first, _, rest = block.plain.partition("\n")
    return block.kind is BlockKind.PROSE and bool(rest.strip()) and first.endswith(":")


def _is_open(block: MarkdownBlock) -> bool:
    """Return whether a block is prose that does not end as a sentence: a lead-in, a label, the name of a tab."""
    return block.kind is BlockKind.PROSE and not _CLOSES.search(block.plain)


def _is_line(block: MarkdownBlock) -> bool:
    """Return whether a block is a line that is no sentence and introduces none, such as "Source: csv.py"."""
    return _is_open(block) and "\n" not in block.plain and not block.plain.endswith(":")


def _is_label(block: MarkdownBlock) -> bool:
    return _is_line(block) and len(block.plain.split()) <= TITLE_WORDS


def _belongs(group: Sequence[MarkdownBlock], block: MarkdownBlock, *, first: bool) -> bool:
    """Return whether a block continues a passage: what prose introduces, or a sentence beside another."""
    last = group[-1]
    if _is_open(last) and not is_definition(last):
        return True
    if BlockKind.NOTE in (last.kind, block.kind):
        return False
    if block.kind is not BlockKind.PROSE:
        return last.kind is not block.kind or block.kind is BlockKind.CODE  # which shows what comes of it
    if last.kind is BlockKind.CODE:  # a signature has its description
        return first and len(group) == 1
    if last.kind is not BlockKind.PROSE or is_definition(block) or is_definition(last) or _is_line(block):
        return False
    before = sum(count_sentences(one.plain) for one in group if one.kind is BlockKind.PROSE)
    own = count_sentences(block.plain)
    return min(before, own) == 1 and before + own <= MOST_SENTENCES


def count_sentences(prose: str) -> int:
    """Return the number of sentences of a block of prose."""
    return sum(1 for _ in split_sentences(prose))


def widen(passages: Sequence[Passage], at: int) -> list[Passage]:
    """Return the passage `at` with those beside it that a reader would mark with it.

    The one before, if it refers to that or has no prose; those after, up to a few sentences. A definition stays alone.
    """
    first = last = at
    if at and (not passages[at].prose or leans(passages[at])) and not is_definition(passages[at - 1].blocks[-1]):
        first -= 1
    bare = is_bare(passages[first : last + 1])
    while bare and last + 1 < min(len(passages), first + MOST_BARE) and not is_aside(passages[last + 1]):
        last += 1
        bare = is_bare(passages[last : last + 1])  # each is looked at once: a page may have nothing but images
    while not bare and last + 1 < len(passages) and _has_room(passages[first : last + 1], passages[last + 1]):
        last += 1
    return list(passages[first : last + 1])


def numbers(block: MarkdownBlock) -> tuple[int, int] | None:
    """Return the numbers of the first and the last item of an ordered list, None for another block."""
    begin = _NUMBERED.match(block.items[0]) if block.kind is BlockKind.LIST and block.items else None
    return (int(begin[1]), int(begin[1]) + len(block.items) - 1) if begin else None


def whole_steps(passages: Sequence[Passage], at: int) -> list[Passage]:
    """Return the passage `at` and all passages that hold steps of the same ordered list."""
    lists = [[found for block in passage.blocks if (found := numbers(block))] for passage in passages]
    first = last = at
    while lists[first] and lists[first][0][0] > 1:
        before = next((n for n in range(first - 1, -1, -1) if lists[n]), None)
        if before is None or lists[before][-1][1] != lists[first][0][0] - 1:
            break
        first = before
    while lists[last]:
        after = next((n for n in range(last + 1, len(passages)) if lists[n]), None)
        if after is None or lists[after][0][0] != lists[last][-1][1] + 1:
            break
        last = after
    return list(passages[first : last + 1])


def is_aside(passage: Passage) -> bool:
    """Return whether a passage says something beside the subject: other pages, versions, who made it."""
    return bool(_PHRASES["aside"].match(passage.plain))


def says_more(passage: Passage) -> bool:
    """Return whether a passage belongs to a short section that is quoted whole: no aside, no titles of others."""
    return not is_aside(passage) and not all(map(_has_titles, passage.blocks))


def is_bare(passages: Sequence[Passage]) -> bool:
    """Return whether passages say nothing themselves: labels, lead-ins and announcements, with nothing below them.

    A list that no lead-in introduces is nothing: the titles of the sections to come.
    """
    return not any(
        (_says(passage.prose) and not _only_links(passage)) or _introduces_more(passage) for passage in passages
    )


def _only_links(passage: Passage) -> bool:
    """Return whether a passage has hardly a word beside its links: it sends readers elsewhere."""
    beside, links = re.subn(r"\[[^\[\]]*\]\([^()\s]+\)", " ", passage.text)
    return links > 0 and len(re.findall(r"\w+", beside)) <= FEW_WORDS


def _introduces_more(passage: Passage) -> bool:
    titles_alone = all(block.kind is BlockKind.LIST for block in passage.attached)
    return bool(passage.attached) and not (titles_alone and _CLOSES.search(passage.prose))


def _says(prose: str) -> bool:
    sentences_of_it = (one for one in split_sentences(prose) if _CLOSES.search(one))
    return any(not _PHRASES["announces"].match(one) and not _PHRASES["points"].match(one) for one in sentences_of_it)


def leans(passage: Passage) -> bool:
    """Return whether a passage begins as one that refers to the sentence before it."""
    return bool(_PHRASES["leaning"].match(passage.prose)) and passage.blocks[0].kind is BlockKind.PROSE


def _has_room(chosen: Sequence[Passage], following: Passage) -> bool:
    """Return whether `following` may be marked too: the chosen ones are short, and it goes on with their subject."""
    definition = is_definition(following.blocks[0]) or is_definition(chosen[-1].blocks[0])
    if definition or is_aside(following) or not following.prose:
        return False
    said = sum(bool(_CLOSES.search(part)) for passage in chosen for part in split_sentences(passage.prose))
    wanted = said < ENOUGH_SENTENCES or (leans(following) and said < MOST_SENTENCES)
    return wanted and sum(len(passage.prose.split()) for passage in [*chosen, following]) <= MOST_WORDS
