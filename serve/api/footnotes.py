"""Turns the citation marks of a streamed text into Markdown footnotes."""

import re
from collections.abc import Sequence

from pipelines.characters import clean_for_storage
from pipelines.records import Citation


class Footnotes:
    """Turns `[1]` into `[^1]`, Markdown's footnote mark, in a text that comes in pieces; code is left alone.

    However the text was cut, the pieces that come out join to the same text.
    """

    _TOKEN = re.compile(r"(`+)|\[(\d{1,4})\]|(\n\s*\n)")
    _MAY_GROW = re.compile(r"(?:`+|\[\d{0,4}|\n\s*)\Z")

    def __init__(self) -> None:
        self._held = ""
        self._ticks = 0  # length of the run of backticks that opened the code, 0 outside code

    def feed(self, text: str) -> str:
        """Return the text that is certain; the beginning of a possible mark is held back."""
        text = self._held + text
        cut = self._MAY_GROW.search(text)
        end = cut.start() if cut else len(text)
        self._held = text[end:]
        return self._TOKEN.sub(self._replace, text[:end])

    def close(self) -> str:
        """Return the text that was held back."""
        held, self._held = self._held, ""
        return self._TOKEN.sub(self._replace, held)

    def _replace(self, match: re.Match[str]) -> str:
        ticks, number, blank = match.groups()
        if ticks:
            self._ticks = len(ticks) if not self._ticks else 0 if self._ticks == len(ticks) else self._ticks
        elif blank and self._ticks < 3:
            self._ticks = 0  # inline code ends at a blank line
        return f"[^{number}]" if number and not self._ticks else match[0]


def format_footnotes(citations: Sequence[Citation]) -> str:
    """Return the footnotes' definitions, to be added to the text; "" if nothing is cited."""
    lines = [f"[^{c.n}]: [{_escape(c.title or c.source)}](<{_target(c.source)}>)" for c in citations]
    return "\n\n" + "\n".join(lines) if lines else ""


def _escape(title: str) -> str:
    return re.sub(r"([\\\[\]`*_<>])", r"\\\1", " ".join(clean_for_storage(title).split()))


def _target(source: str) -> str:
    return clean_for_storage(source).translate({ord("<"): "%3C", ord(">"): "%3E", ord("\n"): "%0A", ord(" "): "%20"})
