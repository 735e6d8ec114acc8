"""Packs the blocks of a section so that each pack stays within a budget.

Only a block that is too long by itself is cut, at the best place that its kind offers. Knows no model: a function of
the caller weighs texts.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby

from langchain_text_splitters import RecursiveCharacterTextSplitter

from pipelines.records import Block, BlockKind

Weigh = Callable[[list[str]], list[int]]

GAP = "\n\n"  # between blocks of a pack

# Where a block that is too long may be cut, best place first; after these come words, then characters.
_PARAGRAPH = re.compile(r"(?<=\n)(?=[ \t]*\n)")
_LINE = re.compile(r"(?<=\n)")
_SENTENCE = re.compile(r"(?<=[.!?]\s)(?=\S)|(?<=[。！？])")
BOUNDARIES: dict[BlockKind, tuple[re.Pattern[str], ...]] = {
    "prose": (_PARAGRAPH, _LINE, _SENTENCE),
    "code": (_PARAGRAPH, _LINE),
    "table": (_LINE,),
}
_WORD = re.compile(r"\S+\s*")
_CLAUSE = re.compile(r"[^\s,;:、，；：]+[,;:、，；：]?")
_BLANK_LINES = re.compile(r"\A(?:[^\S\n]*\n)+")


@dataclass(frozen=True, slots=True)
class Atom:
    """A text that is not cut further; `block` is its block's place in the section. Within a block there are no gaps."""

    block: int
    kind: BlockKind
    text: str
    header: str = ""


Pack = tuple[Atom, ...]


def pack_whole(blocks: Sequence[Block]) -> Pack:
    """Return the blocks uncut, a table with its header as first line."""
    return tuple(
        Atom(place, block.kind, _with_header(block.text, block.header), block.header)
        for place, block in enumerate(blocks)
    )


def pack_text(pack: Pack) -> str:
    """Return the text of a pack: code with its line breaks and indentation, a part of a table under its header."""
    runs = groupby(pack, key=lambda atom: atom.block)
    return GAP.join(filter(None, (_join(list(run)) for _, run in runs)))


def split_words(text: str, budget: int, weigh: Weigh) -> list[str]:
    """Split `text` into parts of at most `budget`: between words, else after punctuation, else anywhere."""
    weigh(_WORD.findall(text) + _CLAUSE.findall(text))  # all at once: the splitter would weigh one at a time
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
    """Packs atoms into packs of at most `budget`: the sum of their weights and of the gaps between blocks.

    `overlap` is how much of a pack's last prose, in whole words, the next pack repeats if it continues with prose.
    """

    budget: int
    overlap: int
    gap: int
    weigh: Weigh

    def __call__(self, atoms: Pack) -> list[Pack]:
        packs: list[Pack] = []
        pack: Pack = ()
        used = 0
        for atom, weight in self._cut_to_fit(atoms):
            cost = self._cost(pack, atom, weight)
            if pack and used + cost > self.budget:
                packs.append(pack)
                pack, used = self._carry(pack, atom, weight)
                cost = self._cost(pack, atom, weight)
            pack, used = (*pack, atom), used + cost
        return [*packs, pack] if pack else packs

    def _cost(self, pack: Pack, atom: Atom, weight: int) -> int:
        if pack and pack[-1].block == atom.block:
            return weight
        header = 0 if _has_header(atom.text, atom.header) else self.weigh([atom.header])[0]
        return weight + header + (self.gap if pack else 0)

    def _carry(self, pack: Pack, following: Atom, weight: int) -> tuple[Pack, int]:
        """Return the tail of `pack` that the next pack repeats, and its weight; nothing if it would not fit."""
        last = pack[-1]
        if not self.overlap or last.kind != "prose" or following.kind != "prose":
            return (), 0
        tail = self._tail("".join(atom.text for atom in pack if atom.block == last.block))
        carried = (replace(last, text=tail),)
        used = self.weigh([tail])[0]
        fits = tail and used + self._cost(carried, following, weight) <= self.budget
        return (carried, used) if fits else ((), 0)

    def _tail(self, text: str) -> str:
        """Return the last words of `text` that weigh at most `overlap` together."""
        words = _WORD.findall(text)[-self.overlap :]
        start, used = len(words), 0
        for weight in reversed(self.weigh(words)):
            used += weight
            if used > self.overlap:
                break
            start -= 1
        return "".join(words[start:])

    def _cut_to_fit(self, atoms: Pack) -> list[tuple[Atom, int]]:
        """Return the atoms with their weights; an atom over the budget is cut."""
        fitting: list[tuple[Atom, int]] = []
        for atom, weight in zip(atoms, self.weigh([atom.text for atom in atoms]), strict=True):
            fitting.extend([(atom, weight)] if weight <= self.budget else self._cut(atom))
        return fitting

    def _cut(self, atom: Atom) -> list[tuple[Atom, int]]:
        header = self.weigh([atom.header])[0]
        if header > self.budget // 3:  # repeated in each part, it would leave too little room for rows
            atom, header = replace(atom, header=""), 0
        parts = self._parts(atom.text, BOUNDARIES[atom.kind], self.budget - header)
        return [(replace(atom, text=text), weight) for text, weight in parts]

    def _parts(self, text: str, boundaries: tuple[re.Pattern[str], ...], room: int) -> list[tuple[str, int]]:
        """Split `text` into parts of at most `room` with their weights; joined they are `text` again."""
        if not boundaries:
            texts = split_words(text, room, self.weigh)
            return list(zip(texts, self.weigh(texts), strict=True))
        texts = [part for part in boundaries[0].split(text) if part]
        parts: list[tuple[str, int]] = []
        for part, weight in zip(texts, self.weigh(texts), strict=True):
            parts.extend([(part, weight)] if weight <= room else self._parts(part, boundaries[1:], room))
        return parts


def _join(run: list[Atom]) -> str:
    """Join the atoms of one block, without blank lines at either end; the first line of code keeps its indentation."""
    body = "".join(atom.text for atom in run)
    if run[0].kind == "prose":
        return body.strip()
    return _with_header(_BLANK_LINES.sub("", body).rstrip(), run[0].header)


def _with_header(text: str, header: str) -> str:
    return text if not text or _has_header(text, header) else f"{header}\n{text}"


def _has_header(text: str, header: str) -> bool:
    return not header or text == header or text.startswith(header + "\n")
