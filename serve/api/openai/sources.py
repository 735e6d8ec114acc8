"""Writes an answer's sources into its text, for clients that show the text alone.

As Markdown footnotes, or as a list that a terminal and any Markdown viewer show.
"""

import re
from collections.abc import Sequence
from typing import Literal

from pipelines.answering.writing.stages.text import Number, Piece, TextReader, shown
from pipelines.records import Citation
from pipelines.text.cleaning import clean_for_storage

# Where the sources of a chat completion stand: in its key `raydex` alone, or below its text too.
SourcesPlace = Literal["key", "footnotes", "append"]


BY_PERSON = "\n\n*This answer was written by a person.*"


class SourceWriter:
    """Writes the sources into one text, which comes in pieces; this one leaves the text as it is."""

    def feed(self, text: str) -> str:
        """Return the text that is certain."""
        return text

    def close(self) -> str:
        """Return the text that was held back."""
        return ""

    def list_sources(self, citations: Sequence[Citation]) -> str:
        """Return what stands below the text; "" if nothing is cited."""
        return ""


class SourceList(SourceWriter):
    """Appends a list of the sources, each a link."""

    def list_sources(self, citations: Sequence[Citation]) -> str:
        lines = [f"- [{c.n}] {_link(c)}" for c in citations]
        return "\n\nSources:\n\n" + "\n".join(lines) if lines else ""


class Footnotes(SourceWriter):
    """Turns `[1]` into `[^1]`, Markdown's footnote mark; code is left alone.

    However the text was cut, the pieces that come out join to the same text.
    """

    def __init__(self) -> None:
        self._reader = TextReader()

    def feed(self, text: str) -> str:
        """Return the text that is certain; the beginning of a possible mark is held back."""
        return shown(map(_as_footnote, self._reader.feed(text)))

    def close(self) -> str:
        """Return the text that was held back."""
        return shown(map(_as_footnote, self._reader.close()))

    def list_sources(self, citations: Sequence[Citation]) -> str:
        """Return the footnotes' definitions."""
        lines = [f"[^{c.n}]: {_link(c)}" for c in citations]
        return "\n\n" + "\n".join(lines) if lines else ""


def _as_footnote(piece: Piece) -> Piece:
    return f"[^{piece[1:-1]}]" if isinstance(piece, Number) else piece


def _link(citation: Citation) -> str:
    return f"[{_escape(citation.title or citation.source)}](<{_target(citation.source)}>)"


def _escape(title: str) -> str:
    return re.sub(r"([\\\[\]`*_<>])", r"\\\1", " ".join(clean_for_storage(title).split()))


def _target(source: str) -> str:
    return clean_for_storage(source).translate({ord("<"): "%3C", ord(">"): "%3E", ord("\n"): "%0A", ord(" "): "%20"})


WRITERS: dict[SourcesPlace, type[SourceWriter]] = {"key": SourceWriter, "footnotes": Footnotes, "append": SourceList}
