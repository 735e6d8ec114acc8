"""Splits the text of a section into passages, the units that a reader would highlight.

A passage is up to five sentences and the code, list, table or note that follows them. This module works only on texts;
it knows nothing about hits or questions.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from pipelines.page.blocks import LINE_BREAK, BlockKind, MarkdownBlock, read_blocks
from pipelines.page.stored import plain_text
from pipelines.text.phrases import read_phrases

MOST_SENTENCES = 5  # per passage: readable at a glance
ENOUGH_SENTENCES = 2  # a passage with fewer is extended by the ones after it, up to MOST_WORDS
MOST_WORDS = 100
LONGEST = 5_000  # characters of a sentence, which is cut there
LONGEST_WORD = 40  # characters of an abbreviation with its prefix
# Lines of a section from which passages are made. Five chunks of 8,000 tokens have 3,000; each line may be a paragraph.
MOST_LINES = 4_000
MOST_BARE = 20  # the most consecutive passages without content that are quoted with the text that they introduce
TITLE_WORDS = 8  # a longer list item is more than a title
FEW_WORDS = 3  # outside links: "More: [ports](…), [HTTPS](…)." has one

_SENTENCE_END = re.compile(r"(?<=[.!?])[\"')\]”’]*\s+(?=[\"'(\[`“‘]*[A-Z0-9`])")
_NUMBERED = re.compile(r"\s*(\d{1,9})[.)](?:\s|$)")
_ASKS = re.compile(r"\*\*[^*\n]+[?？]\*\*")  # the heading of a subsection that is a question
_CLOSES = re.compile(r"[.!?。！？][\"')\]”’`*]*$")
SAID = (BlockKind.PROSE, BlockKind.NOTE)  # the kinds that consist of sentences

_PHRASES = read_phrases(__name__)


@dataclass(frozen=True)
class Passage:
    """Consecutive blocks of a section: prose and the blocks that it introduces. `place` is its index in the section."""

    place: int
    blocks: tuple[MarkdownBlock, ...]

    @property
    def text(self) -> str:
        """The Markdown of its blocks."""
        return "\n\n".join(block.text for block in self.blocks)

    @cached_property
    def plain(self) -> str:
        """The plain text, for comparison with words and vectors."""
        return "\n\n".join(block.plain for block in self.blocks)

    @cached_property
    def prose(self) -> str:
        """The sentences as plain text, without labels, code, lists and tables."""
        return "\n\n".join(block.plain for block in self.blocks if block.kind in SAID and not _is_label(block))

    @cached_property
    def substance(self) -> str:
        """The plain text, without sentences that send readers elsewhere and without titles of other sections."""
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
        """Whether any of it is code, also inside a list or a note."""
        return any(block.has_code for block in self.blocks)


# ---------------------------------------------------------------------------------------------- sentences


def sentences(block: str) -> Iterator[str]:
    """Yield the complete sentences of a block of prose, without a truncated beginning or end."""
    return (sentence for sentence in split_sentences(block) if _is_whole(sentence))


def split_sentences(block: str) -> Iterator[str]:
    """Yield the sentences of a block of prose; a code span is never split."""
    parts: list[str] = []
    length = ticks = 0
    for part in _SENTENCE_END.split(" ".join(block.split())):
        parts.append(part)
        length, ticks = length + len(part), ticks + part.count("`")
        # An abbreviation follows a space: it is inside this part, or this part begins with it.
        if length > LONGEST or (ticks % 2 == 0 and not _PHRASES["abbreviation"].search(part[-LONGEST_WORD:])):
            yield " ".join(parts)
            parts, length, ticks = [], 0, 0
    if parts:
        yield " ".join(parts)


def _is_outline(last: MarkdownBlock | None, block: MarkdownBlock) -> bool:
    """Return whether a list after a complete sentence consists of titles."""
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
    """Return the passages of a section's first MOST_LINES lines in order."""
    groups: list[list[MarkdownBlock]] = []
    for block in _short_blocks("\n".join(markdown.split("\n", MOST_LINES)[:MOST_LINES])):
        if groups and _belongs(groups[-1], block, first=len(groups) == 1):
            groups[-1].append(block)
        else:
            groups.append([block])
    return [Passage(place, tuple(blocks)) for place, blocks in enumerate(groups)]


def _short_blocks(markdown: str) -> Iterator[MarkdownBlock]:
    """Yield the blocks of a text, with long prose in parts of a few sentences, and without glyphs of tabs."""
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
    """Return whether a block is a term with its definition below it."""
    first, _, rest = block.plain.partition("\n")
    return block.kind is BlockKind.PROSE and bool(rest.strip()) and first.endswith(":")


def _is_open(block: MarkdownBlock) -> bool:
    """Return whether a block is prose that only begins something: a lead-in, a label, the name of a tab, a heading."""
    return block.kind is BlockKind.PROSE and not (_CLOSES.search(block.plain) and not _ASKS.fullmatch(block.text))


def _is_line(block: MarkdownBlock) -> bool:
    """Return whether a block is a single line that is no sentence and no lead-in, such as "Source: csv.py"."""
    return _is_open(block) and "\n" not in block.plain and not block.plain.endswith(":")


def _is_label(block: MarkdownBlock) -> bool:
    return _is_line(block) and len(block.plain.split()) <= TITLE_WORDS


def _belongs(group: Sequence[MarkdownBlock], block: MarkdownBlock, *, first: bool) -> bool:
    """Return whether a block continues a passage: it is introduced by prose, or is a sentence next to another."""
    last = group[-1]
    if _is_open(last) and not is_definition(last):
        return True
    if BlockKind.NOTE in (last.kind, block.kind):
        return False
    if block.kind is not BlockKind.PROSE:
        return last.kind is not block.kind or block.kind is BlockKind.CODE  # code may show the output of code
    if last.kind is BlockKind.CODE:  # a signature is followed by its description
        return first and len(group) == 1
    if last.kind is not BlockKind.PROSE or is_definition(block) or is_definition(last) or _is_line(block):
        return False
    before = sum(count_sentences(one.plain) for one in group if one.kind is BlockKind.PROSE)
    own = count_sentences(block.plain)
    return min(before, own) == 1 and before + own <= MOST_SENTENCES


def count_sentences(prose: str) -> int:
    """Return the number of sentences in a block of prose."""
    return sum(1 for _ in split_sentences(prose))


def widen(passages: Sequence[Passage], at: int) -> list[Passage]:
    """Return the passage `at` with adjacent ones that a reader would highlight with it.

    The previous passage is included if this one refers to it or has no prose; later ones are included up to a few
    sentences. A definition is not extended.
    """
    first = last = at
    if at and (not passages[at].prose or leans(passages[at])) and not is_definition(passages[at - 1].blocks[-1]):
        first -= 1
    bare = is_bare(passages[first : last + 1])
    while bare and last + 1 < min(len(passages), first + MOST_BARE) and not is_aside(passages[last + 1]):
        last += 1
        bare = is_bare(passages[last : last + 1])  # each is checked only once: a page may consist of images
    while not bare and last + 1 < len(passages) and _has_room(passages[first : last + 1], passages[last + 1]):
        last += 1
    return list(passages[first : last + 1])


def numbers(block: MarkdownBlock) -> tuple[int, int] | None:
    """Return the numbers of the first and last item of an ordered list, None for other blocks."""
    begin = _NUMBERED.match(block.items[0]) if block.kind is BlockKind.LIST and block.items else None
    return (int(begin[1]), int(begin[1]) + len(block.items) - 1) if begin else None


def whole_steps(passages: Sequence[Passage], at: int) -> list[Passage]:
    """Return the passage `at` and all passages with steps of the same ordered list."""
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
    """Return whether a passage is off the subject: about other pages, versions or authors."""
    return bool(_PHRASES["aside"].match(passage.plain))


def says_more(passage: Passage) -> bool:
    """Return whether a passage is worth quoting with a short section: no aside, and not only titles of sections."""
    return not is_aside(passage) and not all(map(_has_titles, passage.blocks))


def is_bare(passages: Sequence[Passage]) -> bool:
    """Return whether passages have no content: only labels, lead-ins and announcements, with nothing after them.

    A list without a lead-in doesn't count either: it has the titles of the sections to come.
    """
    return not any(
        (_says(passage.prose) and not _only_links(passage)) or _introduces_more(passage) for passage in passages
    )


def _only_links(passage: Passage) -> bool:
    """Return whether a passage has hardly any words outside its links, because it sends readers elsewhere."""
    beside, links = re.subn(r"\[[^\[\]]*\]\([^()\s]+\)", " ", passage.text)
    return links > 0 and len(re.findall(r"\w+", beside)) <= FEW_WORDS


def _introduces_more(passage: Passage) -> bool:
    titles_alone = all(block.kind is BlockKind.LIST for block in passage.attached)
    return bool(passage.attached) and not (titles_alone and _CLOSES.search(passage.prose))


def _says(prose: str) -> bool:
    sentences_of_it = (one for one in split_sentences(prose) if _CLOSES.search(one))
    return any(not _PHRASES["announces"].match(one) and not _PHRASES["points"].match(one) for one in sentences_of_it)


def leans(passage: Passage) -> bool:
    """Return whether the beginning of a passage refers to the sentence before it."""
    return bool(_PHRASES["leaning"].match(passage.prose)) and passage.blocks[0].kind is BlockKind.PROSE


def _has_room(chosen: Sequence[Passage], following: Passage) -> bool:
    """Return whether `following` may be highlighted too: the chosen ones are short, and it continues their subject."""
    definition = is_definition(following.blocks[0]) or is_definition(chosen[-1].blocks[0])
    if definition or is_aside(following) or not following.prose:
        return False
    said = sum(bool(_CLOSES.search(part)) for passage in chosen for part in split_sentences(passage.prose))
    wanted = said < ENOUGH_SENTENCES or (leans(following) and said < MOST_SENTENCES)
    return wanted and sum(len(passage.prose.split()) for passage in [*chosen, following]) <= MOST_WORDS
