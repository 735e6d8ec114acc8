"""Writes an answer's sources into its text, for clients that show only the text.

The sources become Markdown footnotes, or a list that a terminal and any Markdown viewer can show.
"""

import re
from collections.abc import Sequence
from typing import Literal

from pipelines.answering.writing.stages.text import Number, Piece, TextReader, shown
from pipelines.records import Citation
from pipelines.text.cleaning import clean_for_storage

# The place of a chat completion's sources: only in its key `raydex`, or also below its text.
SourcesPlace = Literal["key", "footnotes", "append"]


BY_PERSON = "\n\n*This answer was written by a person.*"


class SourceWriter:
    """Writes the sources into a text that arrives in pieces; this base class leaves the text unchanged."""

    def feed(self, text: str) -> str:
        """Return the text that is certain so far."""
        return text

    def close(self) -> str:
        """Return the text that was held back."""
        return ""

    def list_sources(self, citations: Sequence[Citation]) -> str:
        """Return the text to append; "" if nothing is cited."""
        return ""


class SourceList(SourceWriter):
    """Appends a list of the sources, each a link."""

    def list_sources(self, citations: Sequence[Citation]) -> str:
        lines = [f"- [{c.n}] {_link(c)}" for c in citations]
        return "\n\nSources:\n\n" + "\n".join(lines) if lines else ""


class Footnotes(SourceWriter):
    """Turns `[1]` into `[^1]`, Markdown's footnote marker; code is left alone.

    The output does not depend on how the text was split into pieces.
    """

    def __init__(self) -> None:
        self._reader = TextReader()

    def feed(self, text: str) -> str:
        """Return the text that is certain so far; the beginning of a possible marker is held back."""
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
