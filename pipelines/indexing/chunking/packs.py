"""Packs: the atoms of a chunk and what it repeats from before, as plain text and as Markdown.

Knows no budget and no model.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from pipelines.indexing.chunking.atoms import BLANK_LINES, Atom, join_atoms
from pipelines.markdown.text import Mark, Text, divide, join_texts, marks_of
from pipelines.markdown.writing import GAP, Part, write
from pipelines.records import BlockKind

OMITTED = "…"  # the line between what a chunk repeats and where it goes on, but in a table


class Repeated(NamedTuple):
    """What a pack of this kind repeats: the sentences that lead to it, the lines of its scope, or an `overlap`."""

    kind: BlockKind = "prose"
    leads: Sequence[str] = ()
    scope: Sequence[str] = ()
    overlap: str = ""
    weight: int = 0

    @property
    def text(self) -> str:
        """The lines before the pack, as plain text."""
        leads = "".join(f"{line}\n" for line in self.leads)
        if leads and self.kind == "code":
            leads += "\n"
        lines = leads + "".join(f"{line}\n" for line in self.scope)
        return lines + f"{OMITTED}\n" if lines and self.kind != "table" else lines + self.overlap


class Pack(NamedTuple):
    """The atoms of a chunk, and what it repeats."""

    atoms: Sequence[Atom]
    repeated: Repeated = Repeated()

    @property
    def text(self) -> str:
        """The plain text of the chunk."""
        return self.repeated.text + join_atoms(self.atoms)

    @property
    def markdown(self) -> str:
        """The Markdown of the chunk, whose plain text is `text`."""
        parts = _without_blank_ends(list(_parts(chain.from_iterable(atom.parts for atom in self.atoms))))
        if parts[0].text[:1].isspace():
            parts[0] = _stripped(parts[0])
        if parts[-1].text[-1:].isspace():
            parts[-1] = parts[-1]._replace(text=divide(parts[-1].text, [parts[-1].text.rstrip()])[0])
        return write(_with_repeated(parts, self.repeated))


def _parts(atoms: Iterable[Atom]) -> Iterator[Part]:
    """Yield the prose, the listings and the tables that atoms are parts of."""
    run: list[Atom] = []
    for atom in atoms:
        if run and not (atom.kind == run[0].kind and (atom.kind == "prose" or not atom.gap)):
            yield _part(run)
            run = []
        run.append(atom)
    if run:
        yield _part(run)


def _part(run: Sequence[Atom]) -> Part:
    first = run[0]
    text = first.text if len(run) == 1 else join_texts([piece for atom in run for piece in (atom.gap, atom.text)][1:])
    if first.kind == "table" and first.scope and first.has_header:
        (rows,) = divide(text, [text[len(first.scope[0]) :].removeprefix("\n")])
        return Part("table", rows, first.gap, first.scope[0], within=first.within)
    return Part(first.kind, text, first.gap, language=first.language, within=first.within)


def _without_blank_ends(parts: list[Part]) -> list[Part]:
    """Return the parts of a chunk from the first to the last that has words: a cut may leave spaces alone."""
    worded = [place for place, part in enumerate(parts) if part.text.strip()] or [0]
    return parts[worded[0] : worded[-1] + 1]


def _stripped(part: Part) -> Part:
    """Return the first part of a chunk: prose without spaces before it, anything else without empty lines."""
    text = part.text.lstrip() if part.kind == "prose" else BLANK_LINES.sub("", part.text)
    return part._replace(text=divide(part.text, [text])[0])


def _with_repeated(parts: list[Part], repeated: Repeated) -> list[Part]:
    first, rest = parts[0], parts[1:]
    if repeated.overlap:
        first = first._replace(text=join_texts([repeated.overlap, first.text]))
    elif repeated.text and first.kind == "table":
        first = first._replace(header=repeated.scope[0] if repeated.scope else first.header, gap="\n")
    elif repeated.text and first.kind == "code" and first.gap and not repeated.scope:  # a listing of its own
        return [*_leads(repeated), Part("prose", _omitted(first.within), GAP), first._replace(gap="\n"), *rest]
    elif repeated.text and first.kind == "code":
        first = first._replace(text="\n".join((*repeated.scope, OMITTED, first.text)), gap=GAP)
    elif repeated.text:
        first = first._replace(gap="\n")
    return [*_leads(repeated), first, *rest]


def _leads(repeated: Repeated) -> Iterator[Part]:
    leads = list(repeated.leads)
    if leads and repeated.kind == "prose":  # the sign of what is left out belongs to the item or note before it
        within = next((mark.within for mark in marks_of(leads[-1]) if mark.kind == "paragraph"), ())
        leads.append(_omitted(within))
    if leads:
        yield Part("prose", join_texts(leads, "\n"), GAP)


def _omitted(within: tuple[int, ...]) -> Text:
    return Text(OMITTED, [Mark(0, len(OMITTED), "paragraph", "", within)])
