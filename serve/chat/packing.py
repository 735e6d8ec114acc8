"""Packs blocks of text into pieces within a platform's limit; a code block is never left open."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

FENCE = "```"
_FENCES = 2 * len(f"{FENCE}\n")
# Tokens that must not be cut: links and escaped characters. Then spaces, words, single characters.
# A word that is too long is cut before an escaped character, not inside it.
_TOKEN = re.compile(r"<[^<>]*>|&\w{2,4};|\n+|[^\S\n]+|[^\s<&]+|.", re.DOTALL)
_CHARACTER = re.compile(r"&\w{2,4};|.", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Fragment:
    """Marked-up text that should stay in one piece; for code, the escaped lines without their fence.

    `gap` is the separator before it, after another fragment.
    """

    text: str
    code: bool = False
    gap: str = "\n\n"
    heading: bool = False

    def __str__(self) -> str:
        return f"{FENCE}\n{self.text}\n{FENCE}" if self.code else self.text


def pack(fragments: Iterable[Fragment], most: int) -> list[str]:
    """Return texts of up to `most` characters; a fragment is split only if it is longer."""
    pieces: list[str] = []
    for fragment in _with_headings(fragments, most):
        text = str(fragment)
        if pieces and len(pieces[-1]) + len(fragment.gap) + len(text) <= most:
            pieces[-1] += fragment.gap + text
        elif text.strip():
            pieces += [text] if len(text) <= most else split(fragment, most)
    return pieces


def _with_headings(fragments: Iterable[Fragment], most: int) -> Iterator[Fragment]:
    """Yield each heading together with the following fragment, if both fit into a piece."""
    waiting: Fragment | None = None
    for fragment in fragments:
        if waiting is None:
            joined = fragment
        elif len(text := f"{waiting}{fragment.gap}{fragment}") <= most:
            joined = Fragment(text, gap=waiting.gap, heading=fragment.heading)
        else:
            yield waiting
            joined = fragment
        waiting = joined if joined.heading else None
        if waiting is None:
            yield joined
    if waiting:
        yield waiting


def split(fragment: Fragment, most: int) -> list[str]:
    """Return a long fragment as several texts: code at line ends, each with a fence; other text between words."""
    if fragment.code:
        parts = _cut(fragment.text.splitlines(True), most - _FENCES)
        return [str(Fragment(part.strip("\n"), code=True)) for part in parts]
    return [part.strip() for part in _cut(_TOKEN.findall(fragment.text), most)]


def _cut(tokens: Iterable[str], most: int) -> Iterator[str]:
    """Join tokens into texts of at most `most` characters; a longer token is cut between characters."""
    text = ""
    for token in tokens:
        for part in [token] if len(token) <= most else _cut(_CHARACTER.findall(token), most):
            if len(text) + len(part) > most:
                yield text
                text = ""
            text += part
    if text.strip():
        yield text
