"""Divides the flat blocks of a section into atoms, and computes the cost of a break before each.

The costs follow typesetting, which keeps a heading with its text ("keep with next"). Knuth and Plass, "Breaking
Paragraphs into Lines" (1981), call them penalties. Independent of token budgets and models.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from pipelines.page.flow import GAP, FlatBlock, FlatKind, Part, TextLine, introduces
from pipelines.page.plain import NEW_LINE, cut_spans, lines_of, plain, raw
from pipelines.page.tree import Spans

# Costs of a break; an additional chunk costs A_CHUNK (packing.py). The order comes from reading random chunks of three
# sites: the more a reader missed the previous chunk, the higher the cost. INTRODUCED is more than an additional chunk
# and two other breaks together, so an introduction stays with its text if both fit into a chunk.
APART = 0  # between paragraphs
ITEM = 1  # between items of a list, rows of a table, listing lines after a blank one
STATEMENT = 4  # between lines of a listing
RELATED = 5  # between code and its output, or between the paragraphs of a note
LINE = 6  # within a statement of a listing
SENTENCE = 8  # within a paragraph
SHOWN = 12  # between a whole sentence and the code or table after it; splitting the paragraph earlier is cheaper
INTRODUCED = 60  # after a lead-in, a label, a term, a signature
WORD = 80  # within a sentence or a line

_SENTENCE_END = re.compile(r"[.!?。！？](?:(?<=[。！？])|\s(?=[^\sa-z]))")
_ITEM = re.compile(r"\s*(?:[-*•]|\w{1,4}[.)])\s")
_CONTINUATION = re.compile(r"\s*[a-z]+,? [a-z]")  # the rest of a sentence after code in its middle; not a signature
_CAPTION = re.compile(r"\s*\w+ \d[\d.–-]*: ")  # "Listing 7-13: ", a caption below the listing
BLANK_LINES = re.compile(r"\A(?:[^\S\n]*\n)+")


class Atom(NamedTuple):
    """A part that stays whole if it fits into a chunk, with its plain text.

    `cost` is the cost of a break before the atom. A chunk that begins with this atom may first repeat the paragraphs in
    `under` and the lines of its `scope`: the header of a table, or the lines that enclose a part of a listing. `joined`
    are the atoms that this one was made of.
    """

    part: Part
    text: str
    cost: int = APART
    under: tuple[TextLine, ...] = ()
    scope: tuple[str, ...] = ()
    joined: tuple["Atom", ...] = ()

    @property
    def kind(self) -> FlatKind:
        """The kind of the block."""
        return self.part.kind

    @property
    def gap(self) -> str:
        """The separator between this atom and the previous one."""
        return self.part.gap

    @property
    def parts(self) -> "tuple[Atom, ...]":
        """The atoms that this one was made of, or the atom itself."""
        return self.joined or (self,)

    @property
    def has_header(self) -> bool:
        """Whether this is a table, or the part of a table with its header."""
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
    """Return the text of `atoms` without blank lines at either end. The first line of code keeps its indentation."""
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
    """Return the cost of a break between two blocks. `first` means that only one atom precedes it."""
    same_group = block.under[: len(before.under)] == before.under  # in the same item, note or entry
    last = before.text.rstrip().rpartition("\n")[2]
    if before.kind == "prose" and block.under and before.text.endswith(block.under[-1].text):
        return INTRODUCED
    if before.kind == "prose" and same_group and introduces(last) and (last.endswith(":") or not _ITEM.match(last)):
        return INTRODUCED
    if before.kind == "code" and block.kind == "prose" and (first or _follows(block.text)):
        return INTRODUCED  # a signature stays with its description
    if before.kind == "prose" and block.kind != "prose" and same_group:
        return SHOWN
    if same_group and (before.under or block.kind != "prose"):
        return RELATED
    return ITEM if before.under[:1] == block.under[:1] != () else APART


def _follows(text: str) -> bool:
    """Return whether `text` belongs to the listing above it: its caption, or the rest of a sentence."""
    return bool(_CAPTION.match(text) or _CONTINUATION.match(text))
