"""Finds the parts of a claim that can be looked up exactly, and reports the ones in no passage.

They are code, commands, flags, names, numbers and versions. This module looks only at texts;
benchmarks/results/claim-checks.md has the figures.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from pipelines.answering.grounding.words import words_of
from pipelines.text.phrases import read_names, read_table

_TABLE = read_table(__name__)
_NAMES = read_names(__name__)
CAPITAL_NOUNS = frozenset(_TABLE["capital_nouns"])
_COMMON, _SHELL, _CAPITALS = _NAMES["common"], _NAMES["shell"], _NAMES["capitals"]
_DIGITS = {word: str(n) for row in _TABLE["numbers"].values() for n, word in enumerate(row.split())}
_UNITS = {word: row.split()[0] for row in _TABLE["units"] for word in row.split()}

_NO_COMMANDS = _SHELL | _COMMON

_TICKS = re.compile("`+")
_FLAG = re.compile(r"(?<![\w\-–—])[-–—]{1,2}([A-Za-z][\w-]*)")
_LONG_FLAG = re.compile(r"(?<![\w-])--[A-Za-z][\w-]*")
_NAME = re.compile(r"(?<!\w)[A-Za-z_]\w*(?:(?:\.|::|/|-)\w+)*")
_HEX = re.compile(r"(?<!\w)0[xX][0-9a-fA-F]+(?!\w)")
_SEPARATOR = re.compile(r"\.|::|/|-")
_COMPOUND = re.compile(r"[a-z0-9]_[a-z0-9]|[a-z][A-Z]|[A-Z]_[A-Z]")
_CALL = re.compile(r"(?:[@.]([A-Za-z_]\w*))|\b([A-Za-z_]\w*)\s?\(")
_DEFINED = re.compile(r"\b(?:def|class|function|func|fn|let|const|var)\s+([A-Za-z_]\w*)")
_KEY = re.compile(r"(?:\A|\n)[ \t]*(?:-[ \t]+)?([A-Za-z_][\w-]*):(?=[ \t\n]|\Z)")
_COMMAND = re.compile(r"(?:\A|\n)[ \t]*(?:\$ )?(?:sudo )?([a-z][a-z0-9_-]*) ([a-z][a-z0-9-]*)(?=[ \n]|\Z)")
# Placeholders for the reader to fill in: `<node>`, `{id}`, `$NODE`, and quoted values.
_FILLED = re.compile(r"<[^<>\n]{0,80}>|\$?\{[^{}\n]{0,80}\}|\$\w+|\"[^\"\n]{0,200}\"|'[^'\n]{0,200}'")
_OWN = re.compile(r"(?:my|your|some|example|foo|bar|path)(?![a-z])", re.I)
_COMMENT = re.compile(r"(?:\A|(?<=\s))(?:#|//)[^\n]*")
_NUMBER = re.compile(r"(?<![\w.,-])v?(\d{1,3}(?:,\d{3})+|\d+)((?:\.\d+)*)(?:\s?(%|[^\W\d_]+))?")
_PROPER = re.compile(r"(?<=[^\s.!?:;\"'(*`–—-] )([A-Z][\w]*[a-z]\w*|[A-Z]{2,}\w*)\b")
_ASCII_WORD = re.compile(r"\w+")
LONGEST_NAME = 12  # parts of a name; a longer string is no name


@dataclass(frozen=True, slots=True)
class Exact:
    """The parts of a text that can be looked up.

    They are the names of flags; other names with their parts; words and their stems; numbers; and pairs of words.
    `units` has each number that has a unit, with that unit.
    """

    flags: frozenset[str]
    names: frozenset[str]
    words: frozenset[str]
    stems: frozenset[str]
    numbers: frozenset[str]
    units: frozenset[tuple[str, str]]
    pairs: frozenset[tuple[str, str]]

    @classmethod
    def of(cls, text: str) -> "Exact":
        """Return the parts of `text`, which is a passage or a question."""
        words = [word.casefold() for word in _ASCII_WORD.findall(text)]
        numbers = list(_numbers(text))
        said = [_DIGITS[word] for word in words if word in _DIGITS]
        hyphened = [word.casefold() for word in re.findall(r"[\w-]+", text)]
        return cls(
            frozenset(name.casefold() for name in _FLAG.findall(text)),
            frozenset(part for name in _NAME.findall(text) for part in _parts(name)),
            frozenset(words),
            words_of(text),
            frozenset([*(number for number, _ in numbers), *said, *re.findall(r"\d+", text)]),
            frozenset((number, unit) for number, unit in numbers if unit),
            frozenset([*pairwise(words), *pairwise(hyphened)]),
        )


@dataclass(frozen=True, slots=True)
class Token:
    """A part of a claim that can be looked up: `text` as in the claim, and its `kind`."""

    text: str
    kind: str  # flag, name, word, called, key, command, number, proper
    unit: str = ""

    def is_in(self, source: Exact) -> bool:
        """Return whether a source contains it."""
        match self.kind:
            case "flag":
                return self.text.lstrip("-").casefold() in source.flags
            case "number":
                return self._number_is_in(source)
            case "command":
                program, _, verb = self.text.casefold().partition(" ")
                return (program, verb) in source.pairs
            case "name":
                return self._name_is_in(source)
            case "called" | "key":
                return self.text.casefold() in source.words or self.text.casefold() in source.names
            case _:
                return self.text.casefold() in source.words or words_of(self.text) <= source.stems

    def _number_is_in(self, source: Exact) -> bool:
        if self.text not in source.numbers and not any(_same_version(self.text, other) for other in source.numbers):
            return False
        units = {unit for number, unit in source.units if number == self.text} if self.unit else ()
        return not units or self.unit in units

    def _name_is_in(self, source: Exact) -> bool:
        name = self.text.casefold()
        last = _SEPARATOR.split(self.text)[-1]
        return name in source.names or (bool(_COMPOUND.search(last)) and last.casefold() in source.words)


def tokens_of(claim: str, *, code: str | None = None, names: bool = True) -> list[Token]:
    """Return the tokens of a claim, each once; `code` has the lines of a claim that is a code block.

    Without `names`, capitalized words are not looked up.
    """
    if code is not None:
        return list(dict.fromkeys(_of_block(code)))
    prose, spans = _split(claim)
    found = [token for span in spans for token in _of_span(span)]
    found += [Token(flag, "flag") for flag in _LONG_FLAG.findall(prose)]
    found += [Token(name, "name") for name in _names(prose) if _is_identifier(name)]
    whole = f"{prose} {' '.join(spans)}"
    found += [Token(number, "called") for number in _HEX.findall(whole)]
    found += [Token(number, "number", unit) for number, unit in _numbers(whole)]
    if names:
        found += [Token(name, "proper") for name in _PROPER.findall(prose) if name.casefold() not in _CAPITALS]
    return list(dict.fromkeys(found))


def found_nowhere(tokens: Iterable[Token], sources: Iterable[Exact], question: Exact) -> list[Token]:
    """Return the tokens that no source has, except names that the question uses."""
    sources = list(sources)
    return [one for one in tokens if not _is_asked(one, question) and not any(one.is_in(source) for source in sources)]


def _is_asked(token: Token, question: Exact) -> bool:
    """Return whether the question uses a token as a name; a plain word in a question doesn't name a setting."""
    return token.kind not in ("word", "key", "called", "command") and token.is_in(question)


def without_names(claim: str) -> str:
    """Return a claim without its code spans, except those that are a plain word."""
    prose, spans = _split(claim)
    return " ".join([prose, *(span for span in spans if span.isalnum() and not _COMPOUND.search(span))])


def _split(text: str) -> tuple[str, list[str]]:
    """Return a text without its code spans, and the code spans."""
    runs = list(_TICKS.finditer(text))
    following: dict[int, int] = {}
    closing = [0] * len(runs)
    for at in range(len(runs) - 1, -1, -1):
        closing[at] = following.get(len(runs[at][0]), 0)
        following[len(runs[at][0])] = at
    prose, spans, begin, at = [], [], 0, 0
    while at < len(runs):
        end = closing[at]
        if not end:
            at += 1
            continue
        prose.append(text[begin : runs[at].start()])
        spans.append(text[runs[at].end() : runs[end].start()])
        begin, at = runs[end].end(), end + 1
    return " ` ".join([*prose, text[begin:]]), spans


def _of_span(span: str) -> Iterator[Token]:
    """Yield the tokens of a code span."""
    plain = _FILLED.sub(" ", span)
    command = _COMMAND.match(plain)
    if command and command[1] not in _NO_COMMANDS:
        yield Token(f"{command[1]} {command[2]}", "command")
    yield from (Token(f"{flag[0].strip()}", "flag") for flag in _FLAG.finditer(plain))
    unflagged = _FLAG.sub(" ", plain)
    for found in _NAME.finditer(unflagged):
        name = found[0]
        if _is_own(name) or _is_part(found):
            continue
        called = unflagged[found.end() : found.end() + 1] == "("
        if _is_identifier(name) or called or _SEPARATOR.search(name):
            yield Token(name, "name")
        elif len(span.split()) == 1 and name.casefold() not in _COMMON and len(name) > 1:
            yield Token(name, "word")


def _of_block(code: str) -> Iterator[Token]:
    """Yield the tokens of a code block, without its comments and the names that it defines itself."""
    code = _FILLED.sub(" '' ", _COMMENT.sub("", code))
    own = {name.casefold() for name in _DEFINED.findall(code)}
    for found in _COMMAND.finditer(code):
        if found[1] not in _NO_COMMANDS:
            yield Token(f"{found[1]} {found[2]}", "command")
    yield from (Token(flag[0].strip(), "flag") for flag in _FLAG.finditer(code))
    names = [("called", one or other) for one, other in _CALL.findall(code)]
    names += [("key", name) for name in _KEY.findall(code)]
    for kind, name in names:
        if name.casefold() not in own | _COMMON and not _is_own(name) and len(name) > 1:
            yield Token(name, kind)


def _names(text: str) -> Iterator[str]:
    return (found[0] for found in _NAME.finditer(text) if not _is_part(found))


def _is_part(name: re.Match[str]) -> bool:
    """Return whether a name is only the part of one that a pattern leaves open: `http_req_*`, `*_total`, `ws_{id}`."""
    before, after = name.string[: name.start()][-1:], name.string[name.end() :][:1]
    return "*" in (before, after) or name[0].endswith("_")


def _same_version(claimed: str, other: str) -> bool:
    """Return whether two different numbers name the same version: 0.53 stands for 0.53.0 and its patches."""
    return "." in claimed and (other.startswith(f"{claimed}.") or claimed == f"{other}.0")


def _is_identifier(name: str) -> bool:
    """Return whether a name looks like code even in prose: `read_csv`, `readCsv`, `RAY_HOME`."""
    return bool(_COMPOUND.search(name)) and not _is_own(name)


def _is_own(name: str) -> bool:
    """Return whether a name is a placeholder for the reader's own: `my-app`, `your_token`."""
    return any(_OWN.match(part) for part in _SEPARATOR.split(name))


def _parts(name: str) -> Iterator[str]:
    """Yield a name, and its beginnings and endings at its separators."""
    name = name.casefold()
    places = [(found.start(), found.end()) for found in _SEPARATOR.finditer(name)][:LONGEST_NAME]
    yield name
    for start, end in places:
        yield name[:start]
        yield name[end:]


def _numbers(text: str) -> Iterator[tuple[str, str]]:
    """Yield the numbers in a text, each with its unit, or "" without a known one."""
    for whole, rest, word in _NUMBER.findall(text):
        yield whole.replace(",", "") + rest, _UNITS.get(word.casefold(), "")
