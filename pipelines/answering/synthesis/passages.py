"""Cuts the text of a section into passages: what a reader would mark in the page.

A passage is up to five sentences and the code, list or table that follows them. Knows texts only: no hit, no question.
"""

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

MOST_SENTENCES = 5  # of a passage: what is read at a glance
ENOUGH_SENTENCES = 2  # a passage with fewer takes those after it in, up to MOST_WORDS
MOST_WORDS = 100
LONGEST_CODE_LINE = 120  # a longer line is prose that looks like code (a parameter's description)
LABEL_WORDS = 8  # a longer line without a sentence's end is prose

_ABBREVIATION = re.compile(r"(?:\b(?:e\.g|i\.e|etc|vs|cf|fig|no|approx|resp|incl|dr|mr|ms)|\b[A-Z])\.$", re.IGNORECASE)
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"')\]”’]*\s+(?=[\"'(\[`“‘]*[A-Z0-9`])")
_ENDS = re.compile(r"[.!?:。！？：][\"')\]”’`*]*$")
_WORD_SIGN = re.compile(r"\w")
_CLOSES = re.compile(r"[.!?。！？][\"')\]”’`*]*$")
_ITEM = re.compile(r"\s*(?:[-*•+]|\d{1,3}[.)]|[a-z][.)])\s+\S")
_ROW = re.compile(r"\S.*\s\|(?:\s|$)")
_PROMPT = re.compile(r"(?:>>>|\.\.\.|\$|#|[\w-]+[=\-(*]*[#>$]|In ?\[\d+\]:|PS [A-Z]:\\.*>|[A-Z]:\\.*>)\s+\S")
_CODE_LINE = re.compile(
    r"\s{2,}\S|>>>|\.\.\. |\$ |@\w|# |//|--|<\S|\w+: |(?:import|def|class|return|async|await|pip|ray|sudo)\s.*"
    r"|(?:from|for|if|with|while|elif|else|try|except)\b.*:?$"
    r"|.*\S {2,}# \S.*|.*[;{}\\,(\[]$|[\w.\[\]\"', ]+\s*[+-]?=\s*\S|[\w.]+\(.*|[)\]}]|(?:[A-Z]{2,}\b\s*){2}"
)
_SIGNATURE = re.compile(r"@?(?:\w+ )?[\w.]+ ?\(.*\)(?: (?:→|->) .+)?$")
# A sentence with such a beginning refers to the one before it.
_LEANING = re.compile(
    r"\(|[a-z][a-z]+ |(?:This|That|These|Those|It|They|Then|Now|Next|Here|However|But|And|So|Also|Otherwise|Instead"
    r"|Finally|By contrast|In contrast|For example)\b|.{0,40}\bon the other hand\b"
)
_ASIDE = re.compile(
    r"See |(?:For|To learn|Learn|Read) more|Refer to|\W*(?:Contributed|Patch) by|PEP \d|\[\w\] |(?:Table|Figure) \d"
    r"|(?:Public|Developer)API"
    r"|(?:Changed|New|Added|Deprecated|Removed) (?:in|since) (?:version )?\W?v?\d",
    re.IGNORECASE,
)
# A sentence that says what a text is about instead of saying it: "How pages become sections.", "This page describes …".
_ANNOUNCES = re.compile(
    r"(?:How|What|Where|When|Why|Which|Whether)\b[^?]*$"
    r"|(?:This|The following|In this|The next|Below)\s(?:\w+\s){0,2}?"
    r"(?:page|section|document|guide|chapter|tutorial|topic|part|article|reference|sections|pages|table|list)\b.{0,40}"
    r"\b(?:describe|explain|cover|show|list|discuss|introduce|outline|document|present|give|provide|contain|summari[sz]e"
    r"|guide|walk|go|learn|see|look)\w*\b",
    re.IGNORECASE,
)
# A sentence that sends readers elsewhere: "See …", "For information on tags, see …".
_POINTS = re.compile(
    r"(?:See|Refer to|Consult|Check out|Read)\s"
    r"|(?:For|To|If|As|More|Details|Information)\b[^.]*\b(?:see|refer to|consult|read)\s"
    r"|(?:(?:You|We) (?:can|could|may|might|should|will) (?:also )?)?(?:learn|read|find|discover)(?: out)? more\b"
    r"|\S+(?: \S+){0,3} (?:is|are) (?:described|documented|explained|discussed|covered) in\b",
    re.IGNORECASE,
)
_PLAIN = frozenset(
    """
    a an and are as be by can for from if in is it of on or that the this to which with you your
    """.split()  # noqa: SIM905
)


class Kind(Enum):
    """The kind of a block of a section's text."""

    PROSE = "prose"
    CODE = "code"
    LIST = "list"
    TABLE = "table"
    LABEL = "label"  # a line that is no sentence: a tab's name, the word "Note", a signature


@dataclass(frozen=True, slots=True)
class TextBlock:
    """A part of a section's text between blank lines; code keeps its own blank lines."""

    kind: Kind
    text: str


@dataclass(frozen=True, slots=True)
class Passage:
    """Consecutive blocks of a section: prose, with what it introduces. `place` is its number in the section."""

    place: int
    blocks: tuple[TextBlock, ...]

    @property
    def text(self) -> str:
        return "\n\n".join(block.text for block in self.blocks)

    @property
    def prose(self) -> str:
        """The sentences without code, lists and tables."""
        return "\n\n".join(block.text for block in self.blocks if block.kind is Kind.PROSE)

    @property
    def substance(self) -> str:
        """The text without the sentences that send readers elsewhere, and without the titles of further sections."""
        before = (TextBlock(Kind.LABEL, ""), *self.blocks)
        kept = [block for last, block in zip(before, self.blocks, strict=False) if not _is_outline(last, block)]
        texts = (_without_pointers(block.text) if block.kind is Kind.PROSE else block.text for block in kept)
        return "\n\n".join(texts)

    @property
    def attached(self) -> tuple[TextBlock, ...]:
        """The code, lists and tables."""
        return tuple(block for block in self.blocks if block.kind in (Kind.CODE, Kind.LIST, Kind.TABLE))


# ---------------------------------------------------------------------------------------------- blocks


def split_blocks(text: str) -> list[TextBlock]:
    """Return the blocks of a section's text in order."""
    blocks: list[TextBlock] = []
    for part in re.split(r"\n[^\S\n]*\n\s*?(?=[^\S\n]*\S)", text.strip("\n")):
        block = TextBlock(_kind(part), part.rstrip())
        if blocks and block.kind is blocks[-1].kind and block.kind in (Kind.CODE, Kind.LIST):
            block = TextBlock(block.kind, f"{blocks.pop().text}\n\n{block.text}")
        if _WORD_SIGN.search(block.text):  # what else is left is ornament: the glyphs of tabs, a rule
            blocks.append(block)
    return blocks


def _kind(part: str) -> Kind:
    lines = [line for line in part.splitlines() if line.strip()]
    if lines and _ITEM.match(lines[0]) and sum(bool(_ITEM.match(line)) for line in lines) * 2 >= len(lines):
        return Kind.LIST
    if len(lines) > 1 and _ROW.match(lines[0]) and sum(bool(_ROW.match(line)) for line in lines) * 2 >= len(lines):
        return Kind.TABLE
    if lines and all(_SIGNATURE.match(line) for line in lines):
        return Kind.LABEL
    if is_code(part) or (len(lines) > 1 and not _is_written(lines)):
        return Kind.CODE
    if len(lines) == 1 and not _ENDS.search(part) and len(part.split()) <= LABEL_WORDS:
        return Kind.LABEL
    return Kind.PROSE


def is_code(block: str) -> bool:
    """Return whether most lines of a block look like code or program output."""
    lines = [line for line in block.splitlines() if line.strip()]
    if not lines:
        return False
    if _PROMPT.match(lines[0]):
        return True
    if _is_sentence(block):
        return False
    return sum(bool(_CODE_LINE.match(line)) and len(line) <= LONGEST_CODE_LINE for line in lines) * 2 > len(lines)


def _is_written(lines: Sequence[str]) -> bool:
    """Return whether lines are prose: a term with its definition, or mostly sentences."""
    return lines[0].endswith(":") or sum(bool(_ENDS.search(line)) for line in lines) * 2 >= len(lines)


def _is_sentence(block: str) -> bool:
    """Return whether a block has no line breaks inside, ends as a sentence and has the words that prose is full of."""
    words = block.split()
    plain = sum(word.lower() in _PLAIN for word in words)
    return "\n" not in block.strip() and bool(_ENDS.search(block)) and plain * 8 >= len(words) >= 4


def split_items(text: str) -> list[str]:
    """Return the items of a list, each with the lines below it that belong to it."""
    items: list[str] = []
    for line in text.splitlines():
        if items and (not _ITEM.match(line) or _indent(line) > _indent(items[0])):
            items[-1] += f"\n{line}"
        else:
            items.append(line)
    return items


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


# ---------------------------------------------------------------------------------------------- sentences


def sentences(block: str) -> Iterator[str]:
    """Yield the whole sentences of a block of prose, without a beginning or an end that was cut off."""
    return (sentence for sentence in split_sentences(block) if _is_whole(sentence))


def split_sentences(block: str) -> Iterator[str]:
    """Yield the sentences of a block of prose."""
    sentence = ""
    for part in _SENTENCE_END.split(" ".join(block.split())):
        sentence = f"{sentence} {part}" if sentence else part
        if not _ABBREVIATION.search(sentence):
            yield sentence
            sentence = ""
    if sentence:
        yield sentence


def _is_outline(last: TextBlock, block: TextBlock) -> bool:
    """Return whether a list, behind a whole sentence, is one of titles."""
    titles = all(len(item.split()) <= LABEL_WORDS + 1 and not _ENDS.search(item) for item in split_items(block.text))
    return block.kind is Kind.LIST and last.kind is Kind.PROSE and bool(_CLOSES.search(last.text)) and titles


def _without_pointers(prose: str) -> str:
    return " ".join(sentence for sentence in split_sentences(prose) if not _POINTS.match(sentence))


def _is_whole(sentence: str) -> bool:
    words = sentence.split()
    first = words[0].lstrip("\"'([`“‘") if words else ""
    begins = first[:1].isupper() or first[:1].isdigit() or bool(re.search(r"\w[._(]|[a-z][A-Z]|-\w", first))
    return begins and 4 <= len(words) <= 80 and sentence.rstrip("\"')]`")[-1:] in (".", "!", "?", ":")


# ---------------------------------------------------------------------------------------------- passages


def split_passages(text: str) -> list[Passage]:
    """Return the passages of a section's text in order."""
    groups: list[list[TextBlock]] = []
    label: list[TextBlock] = []
    blocks = list(_short_blocks(text))
    for block, following in itertools.zip_longest(blocks, blocks[1:]):
        if block.kind is Kind.LABEL and groups and _introduces(groups[-1]):
            is_tab = following is not None and following.kind is Kind.CODE
            groups[-1].append(block if is_tab else TextBlock(Kind.CODE, block.text))
            continue
        if block.kind is Kind.LABEL:
            if label:  # two in a row: the first ends what is before it
                groups = [*groups[:-1], [*(groups[-1] if groups else []), *label]]
            label = [block]
            continue
        if groups and _belongs(groups[-1], block, bool(label)):
            groups[-1] += [*label, block]
        else:
            groups.append([*label, block])
        label = []
    if label:
        groups.append(label)
    return [Passage(place, tuple(blocks)) for place, blocks in enumerate(groups)]


def _short_blocks(text: str) -> Iterator[TextBlock]:
    """Yield the blocks of a text, long prose in parts of a few sentences."""
    for block in split_blocks(text):
        if block.kind is not Kind.PROSE or is_definition(block):
            yield block
            continue
        all_sentences = list(split_sentences(block.text))
        parts = -(-len(all_sentences) // MOST_SENTENCES)
        size = -(-len(all_sentences) // max(parts, 1))
        for start in range(0, len(all_sentences), max(size, 1)):
            yield TextBlock(Kind.PROSE, " ".join(all_sentences[start : start + size]))


def is_definition(block: TextBlock) -> bool:
    """Return whether a block is a term with its definition below."""
    first, _, rest = block.text.partition("\n")
    return block.kind is Kind.PROSE and bool(rest.strip()) and first.endswith(":")


def _introduces(group: Sequence[TextBlock]) -> bool:
    """Return whether a passage ends in a lead-in: prose that does not end as a sentence, with nothing below it yet."""
    return group[-1].kind is Kind.PROSE and not _CLOSES.search(group[-1].text)


def _belongs(group: Sequence[TextBlock], block: TextBlock, labelled: bool) -> bool:
    """Return whether a block continues a passage: what prose introduces, or a sentence beside another."""
    last = group[-1]
    if block.kind is not Kind.PROSE:
        return last.kind in (Kind.PROSE, Kind.LABEL) or (not labelled and last.kind is not block.kind)
    if labelled or last.kind is not Kind.PROSE or is_definition(block) or is_definition(last):
        return False
    before = sum(count_sentences(one.text) for one in group if one.kind is Kind.PROSE)
    own = count_sentences(block.text)
    return min(before, own) == 1 and before + own <= MOST_SENTENCES


def count_sentences(prose: str) -> int:
    """Return the number of sentences of a block of prose."""
    return sum(1 for _ in split_sentences(prose))


def widen(passages: Sequence[Passage], at: int) -> list[Passage]:
    """Return the passage `at` with those beside it that a reader would mark with it.

    The one before, if it refers to that or has no prose; those after, up to a few sentences. A definition stays alone.
    """
    first = last = at
    if at and _needs_the_one_before(passages[at]) and not is_definition(passages[at - 1].blocks[-1]):
        first -= 1
    while last + 1 < len(passages) and _has_room(passages[first : last + 1], passages[last + 1]):
        last += 1
    return list(passages[first : last + 1])


def _needs_the_one_before(passage: Passage) -> bool:
    return not passage.prose or leans(passage)


def is_aside(passage: Passage) -> bool:
    """Return whether a passage says something beside the subject: other pages, versions, who made it."""
    return bool(_ASIDE.match(passage.text))


def is_bare(passages: Sequence[Passage]) -> bool:
    """Return whether passages say nothing themselves: labels, lead-ins and announcements, with nothing below them.

    A list that no lead-in introduces is nothing: the titles of the sections to come.
    """
    return not any(_says(passage.prose) or _introduces_more(passage) for passage in passages)


def _introduces_more(passage: Passage) -> bool:
    titles_alone = all(block.kind is Kind.LIST for block in passage.attached)
    return bool(passage.attached) and not (titles_alone and _CLOSES.search(passage.prose))


def _says(prose: str) -> bool:
    sentences_of_it = (one for one in split_sentences(prose) if _CLOSES.search(one))
    return any(not _ANNOUNCES.match(one) and not _POINTS.match(one) for one in sentences_of_it)


def leans(passage: Passage) -> bool:
    """Return whether a passage begins as one that refers to the sentence before it."""
    return bool(_LEANING.match(passage.prose)) and passage.blocks[0].kind is Kind.PROSE


def _has_room(chosen: Sequence[Passage], following: Passage) -> bool:
    """Return whether `following` may be marked too: the chosen ones are short, and it goes on with their subject."""
    if is_bare(chosen):
        return not is_aside(following)
    definition = is_definition(following.blocks[0]) or is_definition(chosen[-1].blocks[0])
    if definition or is_aside(following) or not following.prose:
        return False
    said = sum(_count_closed(passage.prose) for passage in chosen)
    wanted = said < ENOUGH_SENTENCES or (leans(following) and said < MOST_SENTENCES)
    return wanted and sum(len(passage.prose.split()) for passage in [*chosen, following]) <= MOST_WORDS


def _count_closed(prose: str) -> int:
    """Return the number of sentences that say something themselves: a lead-in does not."""
    return sum(bool(_CLOSES.search(sentence)) for sentence in split_sentences(prose))
