"""Defines packs: the atoms of a chunk and the lines it repeats, as plain text and as Markdown.

Independent of token budgets and models.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from pipelines.page.cut.atoms import BLANK_LINES, Atom, join_atoms
from pipelines.page.flow import GAP, FlatKind, Part, TextLine
from pipelines.page.markdown import write
from pipelines.page.plain import NEW_LINE, cut_spans, raw
from pipelines.page.tree import Span, Spans, text_spans

OMITTED = "…"  # the line between repeated lines and the rest of a chunk, except in tables


class Repeated(NamedTuple):
    """The lines that a pack of this kind repeats: introductory sentences, the lines of its scope, or an `overlap`.

    `head` is the table header in the scope, as spans.
    """

    kind: FlatKind = "prose"
    leads: Sequence[TextLine] = ()
    scope: Sequence[str] = ()
    head: Spans = ()
    overlap: str = ""
    weight: int = 0

    @property
    def text(self) -> str:
        """The repeated lines, as plain text."""
        leads = "".join(f"{line.text}\n" for line in self.leads)
        if leads and self.kind == "code":
            leads += "\n"
        lines = leads + "".join(f"{line}\n" for line in self.scope)
        return lines + f"{OMITTED}\n" if lines and self.kind != "table" else lines + self.overlap


class Pack(NamedTuple):
    """The atoms of a chunk and the lines that it repeats."""

    atoms: Sequence[Atom]
    repeated: Repeated = Repeated()

    @property
    def text(self) -> str:
        """The plain text of the chunk."""
        return self.repeated.text + join_atoms(self.atoms)

    @property
    def markdown(self) -> str:
        """The Markdown of the chunk; its plain text is `text`."""
        parts = _without_blank_ends(list(_parts(chain.from_iterable(atom.parts for atom in self.atoms))))
        parts[0] = _without_space_before(parts[0])
        parts[-1] = _without_space_after(parts[-1])
        return write(_with_repeated(parts, self.repeated))


def _parts(atoms: Iterable[Atom]) -> Iterator[Part]:
    """Yield the lines, listings and tables that the atoms belong to."""
    run: list[Atom] = []
    for atom in atoms:
        if run and (atom.gap or atom.kind != run[0].kind):
            yield _part(run)
            run = []
        run.append(atom)
    if run:
        yield _part(run)


def _part(run: Sequence[Atom]) -> Part:
    first, part = run[0], run[0].part
    spans = part.spans if len(run) == 1 else tuple(chain.from_iterable(atom.part.spans for atom in run))
    if first.kind == "table" and first.scope and first.has_header:
        size = len(raw(part.head))
        (_, spans) = cut_spans(spans, (min(size + 1, len(raw(spans))), len(raw(spans))))
        return part._replace(spans=spans)
    return part._replace(spans=spans, head=())


def _without_blank_ends(parts: list[Part]) -> list[Part]:
    """Return the parts of a chunk without blank parts at either end, which a cut may leave."""
    worded = [place for place, part in enumerate(parts) if part.text.strip()] or [0]
    return parts[worded[0] : worded[-1] + 1]


def _without_space_before(part: Part) -> Part:
    """Return the first part of a chunk without leading space; code and tables lose only blank lines."""
    text = raw(part.spans)
    if part.kind == "prose":
        part = part._replace(lead=part.lead.lstrip())
        start = 0 if part.lead else len(text) - len(text.lstrip())
    else:
        start = len(text) - len(BLANK_LINES.sub("", text))
    return part._replace(spans=cut_spans(part.spans, (start, len(text) - start))[1]) if start else part


def _without_space_after(part: Part) -> Part:
    text = raw(part.spans)
    size = len(text.rstrip())
    return part if size == len(text) else part._replace(spans=cut_spans(part.spans, (size,))[0])


def _with_repeated(parts: list[Part], repeated: Repeated) -> list[Part]:
    first, rest = parts[0], parts[1:]
    if repeated.overlap:
        *before, last = repeated.overlap.split("\n")
        lines = [Part("prose", text_spans(line), gap) for gap, line in _lines(before)]
        gap = GAP if before[-1:] == [""] else "\n"
        if last:
            first = first._replace(spans=(Span(last + first.lead), *first.spans), gap=gap, lead="", item=False)
        else:
            first = first._replace(gap=gap)
        return [*lines, first, *rest]
    if repeated.text and first.kind == "table":
        first = first._replace(head=repeated.head if repeated.scope else first.head, gap="\n")
    elif repeated.text and first.kind == "code" and first.gap and not repeated.scope:  # starts a new listing
        return [
            *_leads(repeated),
            Part("prose", text_spans(OMITTED), GAP, within=first.within),
            first._replace(gap="\n"),
            *rest,
        ]
    elif repeated.text and first.kind == "code":
        scope = chain.from_iterable((Span(line), NEW_LINE) for line in (*repeated.scope, OMITTED))
        first = first._replace(spans=(*scope, *first.spans), gap=GAP)
    elif repeated.text:
        first = first._replace(gap="\n")
    return [*_leads(repeated), first, *rest]


def _lines(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the nonempty lines with the gap before each."""
    gap = GAP
    for line in lines:
        if line:
            yield gap, line
        gap = "\n" if line else GAP


def _leads(repeated: Repeated) -> Iterator[Part]:
    gap = GAP
    for lead in repeated.leads:
        yield Part("prose", lead.spans, gap, within=lead.within, lead=lead.lead, item=lead.item, below=lead.below)
        gap = "\n"
    if repeated.leads and repeated.kind == "prose":  # the omitted text belongs to the same item or note
        yield Part("prose", text_spans(OMITTED), "\n", within=repeated.leads[-1].within)
