"""Packs the atoms of a section into packs that fit a budget, with as few bad breaks as possible.

Dynamic programming over the break positions finds the cheapest packing. Independent of models: the caller passes a
function that weighs texts.
"""

import itertools
import math
import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from pipelines.page.cut.atoms import APART, INTRODUCED, ITEM, LINE, STATEMENT, WORD, Atom, join_atoms
from pipelines.page.cut.listings import Scopes
from pipelines.page.cut.packs import Pack, Repeated
from pipelines.page.flow import FlatKind, TextLine, introduces
from pipelines.page.plain import cut_spans, plain, raw, stripped

Weigh = Callable[[list[str]], list[int]]

A_CHUNK = 6  # the cost of a chunk: adding a chunk is preferred to splitting a paragraph
UNEVEN = 2  # the cost of an empty chunk among full ones; keeps the last chunk from being a single sentence
BARE = 10  # the cost of a chunk that has no room for its lead-in
HEADER = 2  # a table's header takes at most 1/HEADER of a chunk: rows mean little without it
REPEATED = 3  # other repeated lines take at most 1/REPEATED of a chunk
GRAINS = 32  # atoms that weigh at most 1/GRAINS of the budget together are joined, which bounds the search

# Places to cut an atom that is too long, best first. Words and then characters come after these.
_PARAGRAPH = re.compile(r"(?<=\n)(?=[ \t]*\n)")
_LINE = re.compile(r"(?<=\n)")
BOUNDARIES: dict[FlatKind, tuple[re.Pattern[str], ...]] = {"prose": (), "code": (_PARAGRAPH, _LINE), "table": (_LINE,)}
_SENTENCE = re.compile(r"(?<=[^\d][.!?:]\s)(?=\S)|(?<=[。！？])|\n")  # not after the number of an item
_WORD = re.compile(r"\S+\s*")
_CLAUSE = re.compile(r"[^\s,;:、，；：]+[,;:、，；：]?")


def split_words(text: str, budget: int, weigh: Weigh) -> list[str]:
    """Split `text` into parts of at most `budget`: between words, else after punctuation, else anywhere."""
    weigh(_WORD.findall(text) + _CLAUSE.findall(text))  # weigh all at once: the splitter weighs one at a time
    from langchain_text_splitters import RecursiveCharacterTextSplitter  # takes 0.4 s, and few texts need it

    splitter = RecursiveCharacterTextSplitter(
        separators=[r"\s+", r"[,;:、，；：]", ""],
        is_separator_regex=True,
        keep_separator="end",
        strip_whitespace=False,
        chunk_size=budget,
        chunk_overlap=0,
        length_function=cache(lambda part: weigh([part])[0]),
    )
    return splitter.split_text(text)


@dataclass(frozen=True)
class Packer:
    """Packs atoms into packs of at most `budget`, counting atoms, gaps and repeated lines.

    A pack that begins within a list, a note, a table or a listing repeats the lines that introduce it, if they are
    short. Other prose repeats up to `overlap` of the preceding prose, in whole words.
    """

    budget: int
    overlap: int
    gap: int
    weigh: Weigh

    def __call__(self, atoms: Sequence[Atom]) -> list[Pack]:
        atoms, weights = self._cut_to_fit(atoms)
        heads = self._heads(atoms)
        starts = self._starts(atoms, weights, heads)
        packs: list[Pack] = []
        end = len(atoms)
        while end:
            start = starts[end]
            used = sum(weights[start:end]) - self._gap(atoms[start])
            fits = used + heads[start].weight <= self.budget
            packs.append(Pack(atoms[start:end], heads[start] if fits else Repeated()))
            end = start
        return packs[::-1]

    def _starts(self, atoms: Sequence[Atom], weights: list[int], heads: list[Repeated]) -> list[int]:
        """Return, for each end from 0 to the number of atoms, where its last pack begins. Ties go to the shortest pack.

        Atoms with different `under` are never joined, so a pack can have as many atoms as the budget has tokens. The
        search tries the fullest pack first and stops early: shorter packs are less even, so few of them can cost less.
        """
        budget = self.budget
        gaps = [self._gap(atom) for atom in atoms]
        rooms = [budget - head.weight for head in heads]  # budget for atoms after the repeated lines
        totals = list(itertools.accumulate(weights, initial=0))
        begun: list[float] = []  # by first atom of a pack: the cost of all packs before it plus its own break
        lows: list[int] = []  # first atoms whose `begun` is less than all later ones
        cost, starts, fullest = 0.0, [0], 0
        for end, atom in enumerate(atoms, 1):
            begun.append(cost + A_CHUNK + (atom.cost if end > 1 else APART))
            while lows and begun[lows[-1]] >= begun[-1]:
                lows.pop()
            lows.append(end - 1)
            while fullest < end - 1 and totals[end] - totals[fullest] - gaps[fullest] > budget:
                fullest += 1
            cost, best, low = math.inf, 0, bisect_left(lows, fullest)
            for start in range(fullest, end):
                low += lows[low] < start
                filled = totals[end] - totals[start] - gaps[start]
                uneven = UNEVEN * (1 - filled / budget) ** 2
                if begun[lows[low]] + uneven > cost:
                    break  # shorter packs are at least as uneven
                bare = BARE if filled > rooms[start] else 0
                if (way := begun[start] + bare + uneven) <= cost:
                    cost, best = way, start
            starts.append(best)
        return starts

    def _gap(self, atom: Atom) -> int:
        return self.gap if atom.gap else 0

    # -- repeated lines

    def _heads(self, atoms: Sequence[Atom]) -> list[Repeated]:
        known: dict[tuple[object, ...], Repeated] = {}
        heads = [Repeated()]
        for place, atom in enumerate(atoms[1:], 1):
            key = (id(atom.under), atom.scope, atom.kind, atom.has_header)
            if key not in known:
                known[key] = self._head(atom)
            heads.append(known[key] if known[key].text or not self.overlap else self._overlap(atoms, place))
        return heads[: len(atoms)]

    def _head(self, atom: Atom) -> Repeated:
        """Return the lines that introduce `atom`, as many as fit; the nearest ones have priority."""
        left = self.budget // REPEATED
        most = self.budget // HEADER if atom.kind == "table" else left
        scope = [] if atom.has_header else atom.scope[len(atom.scope) - self._short(atom.scope, most) :]
        left -= sum(self.weigh(list(scope)))
        leads = [_gist(paragraph) for paragraph in atom.under]
        kept = self._short([lead.text for lead in leads], left)
        return self._weighed(Repeated(atom.kind, leads[len(leads) - kept :], scope, atom.part.head if scope else ()))

    def _weighed(self, head: Repeated) -> Repeated:
        return head._replace(weight=self.weigh([head.text])[0] + self.gap)

    def _short(self, lines: Sequence[str], room: int) -> int:
        """Return how many of the last `lines` fit into `room` together."""
        kept = 0
        for weight in self.weigh(list(lines[::-1])):
            room -= weight + self.gap
            if room < 0:
                break
            kept += 1
        return kept

    def _overlap(self, atoms: Sequence[Atom], place: int) -> Repeated:
        """Return the last words of the prose before the prose at `place`."""
        before, start = atoms[place].kind == "prose", place
        while before and start and place - start < self.overlap and atoms[start - 1].kind == "prose":
            start -= 1
        words = _WORD.findall(join_atoms(atoms[start:place]))[-self.overlap :]
        used = 0
        for count, weight in enumerate(reversed(self.weigh(words))):
            used += weight
            if used > self.overlap:
                words = words[len(words) - count :]
                break
        return self._weighed(Repeated(overlap="".join(words) + (atoms[place].gap or " ") if words else ""))

    # -- cutting

    def _cut_to_fit(self, atoms: Sequence[Atom]) -> tuple[list[Atom], list[int]]:
        """Return atoms that fit the budget, with their weights including gaps. Light atoms are joined."""
        fitting: list[Atom] = []
        weights: list[int] = []
        for atom, weight in zip(atoms, self.weigh([atom.text for atom in atoms]), strict=True):
            cut = [(atom, weight)] if weight <= self.budget else self._cut(atom)
            for part, bare in cut:
                heavy = bare + self._gap(part)
                if fitting and self._joins(fitting[-1], part) and weights[-1] + heavy <= self.budget // GRAINS:
                    last, joined = fitting[-1], (*fitting[-1].parts, *part.parts)
                    fitting[-1] = last._replace(text=f"{last.text}{part.gap}{part.text}", joined=joined)
                    weights[-1] += heavy
                else:
                    fitting.append(part)
                    weights.append(heavy)
        return fitting, weights

    def _joins(self, before: Atom, atom: Atom) -> bool:
        return (before.kind, before.under, before.scope) == (atom.kind, atom.under, atom.scope)

    def _cut(self, atom: Atom) -> list[tuple[Atom, int]]:
        """Cut an atom that is too long at the best places for its kind."""
        found: list[Atom] = []
        scopes, before, lead = Scopes(atom.text, atom.scope), "", atom.part.lead
        for spans in cut_spans(atom.part.spans, self._sizes(atom)):
            text = lead + plain(spans)
            part = atom._replace(part=atom.part._replace(spans=spans), text=text)
            if found:
                scope = scopes.scope_of(text) if atom.kind == "code" else atom.scope
                cost = _cut_cost(atom, before, text, scopes)
                rest = part.part._replace(gap="", lead="", item=False, below=False)
                part = part._replace(part=rest, cost=cost, scope=scope)
            scopes.read(text)
            found.append(part)
            before, lead = text, ""
        return list(zip(found, self.weigh([part.text for part in found]), strict=True))

    def _sizes(self, atom: Atom) -> list[int]:
        """Return the lengths to cut an atom's spans into; the first length excludes the item's marker."""
        lead = atom.part.lead
        texts = self._parts(lead + raw(atom.part.spans), BOUNDARIES[atom.kind])
        sizes = list(map(len, texts))
        while len(sizes) > 1 and sizes[0] <= len(lead):  # the budget is smaller than the marker
            sizes[:2] = [sizes[0] + sizes[1]]
        return [sizes[0] - len(lead), *sizes[1:]]

    def _parts(self, text: str, boundaries: tuple[re.Pattern[str], ...]) -> list[str]:
        """Split `text` into parts that fit. Joined, the parts give `text`."""
        if not boundaries:
            return split_words(text, self.budget, self.weigh)
        texts = [part for part in boundaries[0].split(text) if part]
        parts: list[str] = []
        for part, weight in zip(texts, self.weigh(texts), strict=True):
            parts.extend([part] if weight <= self.budget else self._parts(part, boundaries[1:]))
        return parts


def _cut_cost(atom: Atom, before: str, text: str, scopes: Scopes) -> int:
    """Return the cost of a break between two parts of `atom`."""
    if not before.endswith("\n"):
        return WORD
    if atom.kind == "table":
        return INTRODUCED if (before.rstrip("\n"),) == atom.scope else ITEM
    if scopes.continues(text):
        return LINE
    depth = len(scopes.scope_of(text))
    after_blank_line = text.lstrip(" \t").startswith("\n")
    return min(depth + (ITEM if after_blank_line else STATEMENT), LINE)


def _gist(paragraph: TextLine) -> TextLine:
    """Return the last sentence of a paragraph that introduces something, else the first, which names its subject."""
    text = raw(paragraph.spans)
    ends = [0, *(place.start() for place in _SENTENCE.finditer(text)), len(text)]
    start, end = ends[-2:] if introduces(paragraph.text) else ends[:2]
    spans = stripped(cut_spans(paragraph.spans, (start, end - start))[1])
    if start:
        return TextLine(plain(spans), spans, within=paragraph.within)
    lead = paragraph.lead.lstrip()
    return paragraph._replace(text=lead + plain(spans), spans=spans, lead=lead)
