"""Divides the flat blocks of a section into atoms, and says what a break before each of them costs.

The costs are those of a typesetter who keeps a heading with its text ("keep with next"; Knuth and Plass, "Breaking
Paragraphs into Lines", 1981, call them penalties). Knows no budget and no model.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from pipelines.page.flow import GAP, BlockKind, FlatBlock, Part, TextLine, introduces
from pipelines.page.plain import NEW_LINE, cut_spans, lines_of, plain, raw
from pipelines.page.tree import Spans

# What a break costs; a further chunk costs A_CHUNK (packing.py). Their order is the one in which a reader of random
# chunks of three sites missed what stood in the chunk before. INTRODUCED is more than a further chunk and two other
# breaks cost together, so that what is introduced is never torn off where both fit into a chunk.
APART = 0  # between paragraphs
ITEM = 1  # between items of a list, rows of a table, listing lines after a blank one
STATEMENT = 4  # between lines of a listing
RELATED = 5  # between code and its output, between the paragraphs of a note
LINE = 6  # within a statement of a listing
SENTENCE = 8  # within a paragraph
SHOWN = 12  # between a whole sentence and the code or table after it: its paragraph is torn before it
INTRODUCED = 60  # after a lead-in, a label, a term, a signature
WORD = 80  # within a sentence or a line

_SENTENCE_END = re.compile(r"[.!?。！？](?:(?<=[。！？])|\s(?=[^\sa-z]))")
_ITEM = re.compile(r"\s*(?:[-*•]|\w{1,4}[.)])\s")
_GOES_ON = re.compile(r"\s*[a-z]+,? [a-z]")  # a sentence, after the code in its middle; no signature
_CAPTION = re.compile(r"\s*\w+ \d[\d.–-]*: ")  # "Listing 7-13: ", below the listing
BLANK_LINES = re.compile(r"\A(?:[^\S\n]*\n)+")


class Atom(NamedTuple):
    """A part that is kept whole if it fits into a chunk, and its plain text.

    `cost` is that of a break before it. A chunk that begins with it may repeat first the paragraphs that it is `under`,
    and the lines of its `scope`: the head of a table, what a part of a listing stands in. `joined` are the atoms that
    it was made of.
    """

    part: Part
    text: str
    cost: int = APART
    under: tuple[TextLine, ...] = ()
    scope: tuple[str, ...] = ()
    joined: tuple["Atom", ...] = ()

    @property
    def kind(self) -> BlockKind:
        """What it is."""
        return self.part.kind

    @property
    def gap(self) -> str:
        """What stands between it and the atom before it."""
        return self.part.gap

    @property
    def parts(self) -> "tuple[Atom, ...]":
        """The atoms that it was made of."""
        return self.joined or (self,)

    @property
    def has_header(self) -> bool:
        """Whether it is a table or the first part of one."""
        return self.kind == "table" and self.text.startswith("".join(self.scope))


def to_atoms(blocks: Sequence[FlatBlock]) -> list[Atom]:
    """Return the atoms of a section: sentences, whole listings and whole tables."""
    atoms: list[Atom] = []
    before: FlatBlock | None = None
    for block in blocks:
        found = list(_prose_atoms(block) if block.kind == "prose" else _whole_atom(block))
        if before is not None and found:
            cost = _break_cost(before, block, first=len(atoms) == 1)
            part = found[0].part._replace(gap="\n" if block.tight else GAP)
            found[0] = found[0]._replace(part=part, cost=cost)
        atoms += found
        before = block if found else before
    return atoms


def join_atoms(atoms: Sequence[Atom]) -> str:
    """Return the text of `atoms`, without blank lines at either end; the first line of code keeps its indentation."""
    if not atoms:
        return ""
    text = atoms[0].text + "".join(atom.gap + atom.text for atom in atoms[1:])
    return text.strip() if atoms[0].kind == "prose" else BLANK_LINES.sub("", text).rstrip()


def _whole_atom(block: FlatBlock) -> Iterator[Atom]:
    text, header = raw(block.spans), block.header
    start = len(text) - len(BLANK_LINES.sub("", text))
    spans = block.spans
    if start or text[-1:].isspace():
        spans = cut_spans(spans, (start, len(text.rstrip()) - start))[1] if text.strip() else ()
    if not spans and not header:
        return
    shown = plain(spans)
    if header and shown != header and not shown.startswith(header + "\n"):
        spans = (*block.head, NEW_LINE, *spans) if spans else block.head
        shown = plain(spans).rstrip()
    scope = (header,) if header else ()
    part = Part(block.kind, spans, GAP, block.head, block.language, block.within)
    yield Atom(part, shown, under=block.under, scope=scope)


def _prose_atoms(block: FlatBlock) -> Iterator[Atom]:
    cost, before, under = APART, "", block.under
    for line in block.lines:
        gap, lead, item, below = "\n" if line.tight else GAP, line.lead, line.item, line.below
        for spans in lines_of(line.spans):
            if not (text := raw(spans).rstrip()):
                continue
            if before:
                cost = _line_cost(before, lead + text, gap, grouped=bool(under))
            before = lead + text
            for sentence in _sentences(spans, text):
                part = Part("prose", sentence, gap, within=line.within, lead=lead, item=item, below=below)
                yield Atom(part, part.text, cost, under)
                gap, cost, lead, item, below = "", SENTENCE, "", False, False
            gap = "\n"


def _sentences(spans: Spans, text: str) -> list[Spans]:
    """Return the sentences of a line, each with the space after it."""
    ends = [stop.end() for stop in _SENTENCE_END.finditer(text)]
    if not ends and len(text) == len(raw(spans)):
        return [spans]
    sizes = [end - start for start, end in pairwise([0, *ends, len(text)])]
    return [part for part in cut_spans(spans, sizes) if part]


def _line_cost(before: str, line: str, gap: str, *, grouped: bool) -> int:
    """Return the cost of a break between two lines or paragraphs of one block."""
    listed = bool(_ITEM.match(before))
    if before.rstrip().endswith(":") or (gap == GAP and introduces(before) and not listed):
        return INTRODUCED
    if gap == "\n" or (listed and _ITEM.match(line)):
        return ITEM
    return RELATED if grouped or (_ITEM.match(line) and not listed) else APART


def _break_cost(before: FlatBlock, block: FlatBlock, *, first: bool) -> int:
    """Return the cost of a break between two blocks; `first` says that only one atom stands before it."""
    goes_on = block.under[: len(before.under)] == before.under  # within the same item, note or entry
    last = before.text.rstrip().rpartition("\n")[2]
    if before.kind == "prose" and block.under and before.text.endswith(block.under[-1].text):
        return INTRODUCED
    if before.kind == "prose" and goes_on and introduces(last) and (last.endswith(":") or not _ITEM.match(last)):
        return INTRODUCED
    if before.kind == "code" and block.kind == "prose" and (first or _follows(block.text)):
        return INTRODUCED  # a signature has its description
    if before.kind == "prose" and block.kind != "prose" and goes_on:
        return SHOWN
    if goes_on and (before.under or block.kind != "prose"):
        return RELATED
    return ITEM if before.under[:1] == block.under[:1] != () else APART


def _follows(text: str) -> bool:
    """Return whether `text` belongs to the listing above: as its caption, or as the rest of a sentence."""
    return bool(_CAPTION.match(text) or _GOES_ON.match(text))
