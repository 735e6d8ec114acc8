"""Citations as Markdown footnotes: marks in a text that comes in pieces, and their sources below it.

Knows citations; nothing of who asked for footnotes.
"""

import re
from collections.abc import Sequence

from pipelines.records import Citation
from pipelines.store import clean


class Footnotes:
    """Turns `[1]` into `[^1]`, Markdown's mark of a footnote, in a text that comes in pieces; code is left alone.

    The pieces that come out are, put together, the same however the text was cut.
    """

    _TOKEN = re.compile(r"(`+)|\[(\d{1,4})\]|(\n\s*\n)")
    _MAY_GROW = re.compile(r"(?:`+|\[\d{0,4}|\n\s*)\Z")

    def __init__(self) -> None:
        self._held = ""
        self._ticks = 0  # length of the run of backticks that the code began with, 0 outside code

    def feed(self, text: str) -> str:
        """What can be said now; the beginning of a possible mark is held back."""
        text = self._held + text
        cut = self._MAY_GROW.search(text)
        end = cut.start() if cut else len(text)
        self._held = text[end:]
        return self._TOKEN.sub(self._mark, text[:end])

    def close(self) -> str:
        """What was held back."""
        held, self._held = self._held, ""
        return self._TOKEN.sub(self._mark, held)

    def _mark(self, found: re.Match[str]) -> str:
        ticks, number, blank = found.groups()
        if ticks:
            self._ticks = len(ticks) if not self._ticks else 0 if self._ticks == len(ticks) else self._ticks
        elif blank and self._ticks < 3:
            self._ticks = 0  # code in a line does not go on after a blank one
        return f"[^{number}]" if number and not self._ticks else found[0]


def definitions(citations: Sequence[Citation]) -> str:
    """The footnotes that the marks refer to, as the end of a text; nothing where nothing is cited."""
    lines = [f"[^{c.n}]: [{_escaped(c.title or c.source)}](<{_target(c.source)}>)" for c in citations]
    return "\n\n" + "\n".join(lines) if lines else ""


def _escaped(title: str) -> str:
    return re.sub(r"([\\\[\]`*_<>])", r"\\\1", " ".join(clean(title).split()))


def _target(source: str) -> str:
    return clean(source).translate({ord("<"): "%3C", ord(">"): "%3E", ord("\n"): "%0A", ord(" "): "%20"})
