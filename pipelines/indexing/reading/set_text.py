"""Parses text that is typeset in lines, like man pages: headings, paragraphs, entries, examples.

The text is prose although it is in a `<pre>` or indented. Independent of HTML and sections.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from textwrap import dedent
from typing import NamedTuple

from pipelines.indexing.reading.text import as_paragraph

_NARROWEST, _FILLED = (
    60,
    0.8,
)  # least text width in characters, and the share of the width that lines of a paragraph fill
_LETTERS = 0.7  # share of words in a paragraph that have only letters
_BULLETS = ("o", "•", "·", "*", "-", "+")
# Minimum share of all words in paragraphs (the rest are names, signatures and examples), and minimum words in one.
_PROSE, _LONG = 0.4, 12
_TITLE = 9  # words
_MARKS, _STOPS = ("*", "|", "$", ">"), (".", ":", ",", ";", "!", "?")  # at the start and the end of other lines


class SetText(NamedTuple):
    """A part of a text: a `heading`, a part that keeps its line breaks (`lined`), or a paragraph.

    A paragraph may be the description of a `term`. `line` is the number of its first line in the text, from 0.
    """

    text: str
    term: str = ""
    heading: bool = False
    lined: bool = False
    line: int = 0

    @property
    def title(self) -> str:
        """The first line of a part that keeps its lines, as a title: no sentence, and no name at the right margin."""
        lines = (line for line in self.text.split("\n") if any(map(str.isalnum, line)))
        words = re.split(r" {3,}", next(lines, "").strip())[0] if self.lined else ""
        is_title = words[:1] not in _MARKS and words[-1:] not in _STOPS and len(words.split()) <= _TITLE
        return words if is_title else ""


def parts_of(text: str) -> list[SetText]:
    """Return the parts of a text if it is prose; none if it is code."""
    lines = [line.rstrip() for line in text.expandtabs().split("\n")]
    lengths, parts = sorted(map(len, filter(None, lines))), list[SetText]()
    width = lengths[len(lengths) * 3 // 4] if lengths else 0  # lines of examples may be longer
    known = frozenset(re.findall(r"\w+", text))
    for line, part in _divided("\n".join(lines).strip("\n")):
        first, _, rest = part.partition("\n")
        is_heading = first.isupper() and first[0] != " " and "  " not in first
        parts += [SetText(first, heading=True, line=line)] if is_heading else []
        if part := rest if is_heading else part:
            parts.append(_part(part.split("\n"), width, known)._replace(line=line + is_heading))
    prose = [part.text.split() for part in parts if not (part.lined or part.heading)]
    is_prose = any(len(words) >= _LONG and _is_sentence(" ".join(words)) for words in prose)
    return parts if is_prose and sum(map(len, prose)) > _PROSE * len(text.split()) else []


def _divided(text: str) -> Iterator[tuple[int, str]]:
    """Yield the parts of a text between blank lines and at bullets, with the numbers of their first lines."""
    line = begun = 0
    for gap in re.finditer(r"\n{2,}|\n(?= *[-*•] +\S)|\Z", text):
        yield line, text[begun : gap.start()]
        line += text.count("\n", begun, gap.end())
        begun = gap.end()


def _part(lines: list[str], width: int, known: Collection[str]) -> SetText:
    """Return a paragraph, with the hanging text before it as its term (unless that is a bullet), or lines to keep.

    A word hyphenated at the end of a line is joined without its hyphen if the joined word is among the `known`.
    """

    def joined(word: re.Match[str]) -> str:
        return word[1] + word[2] if word[1] + word[2] in known else f"{word[1]}-{word[2]}"

    term, body = _divide(lines)
    text = re.sub(r"(?<=\w)\u2010\n *", "", "\n".join(body))  # man hyphenates words this way
    words = as_paragraph(re.sub(r"\b(\w+)-\n *(\w+)", joined, text))
    has_columns = any(re.search(r"\S {3,}\S", line) for line in body)
    is_whole = _fills(lines[-len(body) :], width) if len(body) > 1 else term or _is_sentence(words)
    if has_columns or not is_whole or not _reads(words):
        return SetText(dedent("\n".join(lines)), lined=True)
    return SetText(f"• {words}") if term in _BULLETS else SetText(words, term)


def _divide(lines: Sequence[str]) -> tuple[str, Sequence[str]]:
    """Return the hanging term before a paragraph ("" if none) and the lines of the paragraph."""
    first, *rest = lines
    gap = re.match(r" *+(?:[-+*•] ++|\S(?>(?: ?[^ \n])*)  ++)(?=\S)", first)
    column = _indent(rest[0]) if rest else gap.end() if gap else 0
    if column <= _indent(first):
        return "", lines
    if first[column - 1 : column].strip():  # the term is wider than the indentation
        return first.strip(), rest
    return re.sub(r"^[-+*•] +", "", first[:column].strip()), [*filter(None, [first[column:]]), *rest]


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _reads(words: str) -> bool:
    return sum(word.strip(".,;:!?()'\"‘’“”-").isalpha() for word in words.split()) > _LETTERS * len(words.split())


def _fills(lines: Sequence[str], width: int) -> bool:
    """Return whether all lines but the last are about as long as the text is wide."""
    return all(len(line) >= _FILLED * max(width, _NARROWEST) for line in lines[:-1])


def _is_sentence(words: str) -> bool:
    return (words[0].isupper() or words[0].isdigit()) and words.endswith((".", ":"))
