"""Collects the sections that a model finds, numbered in order of arrival, each shown once.

This module works with hits and texts; it knows nothing about models or searches.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain, zip_longest

from pipelines.answering.hit_finder import READ, WHOLE
from pipelines.answering.retrieval.neighbours import EXTRA
from pipelines.answering.synthesis.prompts import Piece
from pipelines.llm.window import greatest
from pipelines.records import Hit

LEAST_WORDS = 40  # the fewest words of a section that is cut to fit; fewer would say nothing
MOST_TITLES = 40  # titles of a page's sections that don't fit
CUT = " …"


class Gathered:
    """Numbered sections; `count` counts the tokens of a text, and `lists` has the results of each search in order."""

    def __init__(self, found: Sequence[Hit], count: Callable[[str], int]) -> None:
        self._count = count
        self._hits: list[Hit] = []
        self._shown: set[int] = set()
        self.lists: list[list[int]] = []
        self.add(found)

    def __len__(self) -> int:
        return len(self._hits)

    def __getitem__(self, n: int) -> Hit:
        """Return section number `n`, from 1."""
        return self._hits[n - 1]

    def add(self, found: Sequence[Hit]) -> list[int]:
        """Add found sections and return their numbers; a known section keeps its number and its longer text."""
        numbers = list(dict.fromkeys(map(self._number, found)))
        self.lists.append(numbers)
        return numbers

    def first(self) -> list[Piece]:
        """Return the sections as first shown: only their found chunks."""
        return [Piece.of(n, hit, hit.text) for n, hit in enumerate(self._hits, 1)]

    @property
    def seen(self) -> int:
        """The number of sections that a model has seen."""
        return len(self._shown)

    def mark_shown(self, numbers: Sequence[int]) -> None:
        """Record that a model has seen these sections."""
        self._shown.update(numbers)

    def show(self, numbers: Sequence[int], room: int) -> str:
        """Return found sections in at most `room` tokens; sections shown before appear only by title."""
        shown: list[str] = []
        for n in numbers:
            if n in self._shown:
                shown.append(f"{Piece.of(n, self[n], '')}(shown above)")
            elif piece := self._cut(n, self[n].text, room - self._count("\n\n".join(shown))):
                shown.append(piece)
                self._shown.add(n)
        return "\n\n".join(shown)

    def show_page(self, numbers: Sequence[int], start: int, room: int) -> str:
        """Return a page from its section number `start` in at most `room` tokens; other sections only by title."""
        at = numbers.index(start)
        begun, rest, left = list[str](), [*numbers[at:]], room * 3 // 4
        while rest and (piece := self._cut(rest[0], self[rest[0]].passage, left - self._count("\n\n".join(begun)))):
            begun.append(piece)
            self._shown.add(rest.pop(0))
            if piece.endswith(CUT):
                break
        titles = [str(Piece.of(n, self[n], "")).strip() for n in [*numbers[:at], *rest]]

        def listed(most: int) -> str:
            return "\n\n".join([*begun, "\n".join(["Further sections of the page:", *titles[:most]])])

        most = greatest(min(len(titles), MOST_TITLES), lambda most: self._count(listed(most)) <= room)
        return listed(most) if most else "\n\n".join(begun)

    def ordered(self, chosen: Sequence[int]) -> list[Hit]:
        """Return all sections for the answer: the chosen ones first, the others as extra ones.

        Without a choice, they alternate between the searches, with the best of each search first.
        """
        turns = filter(None, chain.from_iterable(zip_longest(*self.lists)))
        first = [n for n in dict.fromkeys(chosen) if 0 < n <= len(self)]
        others = [n for n in dict.fromkeys(turns) if n not in first]
        kept = [self[n] for n in others]
        return [*(self[n] for n in first), *(replace(hit, score_kind=EXTRA) if first else hit for hit in kept)]

    def number_of(self, hit: Hit) -> int:
        """Return the number of a hit's section, or 0 if it was not gathered."""
        return next((n for n, known in enumerate(self._hits, 1) if _same_section(known, hit)), 0)

    def _number(self, hit: Hit) -> int:
        n = self.number_of(hit)
        if not n:
            self._hits.append(hit)
            return len(self._hits)
        if len(hit.passage) > len(self[n].passage):
            self._hits[n - 1] = replace(self[n], context=hit.passage)
        return n

    def _cut(self, n: int, text: str, room: int) -> str:
        """Return section `n` with as much of `text` as fits; "" if that is too little to be useful."""
        words = text.split(" ")

        def fits(most: int) -> bool:
            return self._count(str(Piece.of(n, self[n], " ".join(words[:most])))) <= room

        if fits(len(words)):
            return str(Piece.of(n, self[n], text))
        most = greatest(len(words), fits)
        return str(Piece.of(n, self[n], " ".join(words[:most]))) + CUT if most >= LEAST_WORDS else ""


def _same_section(one: Hit, other: Hit) -> bool:
    """Return whether both hits are from one section, and one is within the chunks around the other."""
    same = (one.source, one.headings) == (other.source, other.headings)
    whole = READ in (one.score_kind, other.score_kind)
    return same and (whole or abs(one.ordinal - other.ordinal) <= WHOLE)
