"""Recognizes greetings, thanks and goodbyes, and answers them without a search.

This module looks only at phrases, not at the contents of the collection. A message is small talk only if all of it is:
"hello world" is a question.
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pipelines.text.languages import choose_language, join, say
from pipelines.text.phrases import compile_phrases, read_table

Kind = Literal["thanks", "goodbye", "greeting"]

LONGEST = 200  # characters; a longer message is more than a courtesy
MOST_CLAUSES = 3  # clauses of small talk on each side of a question: "Hi! Good morning. … Thanks a lot! Bye."
_CLAUSE_END = re.compile(r"(?<=[,;:.!?…\n—–])\s*+|(?<!\s)\s++-++\s++")
_TABLE = read_table(__name__)
_PHRASES = compile_phrases(_TABLE)


@dataclass(frozen=True, slots=True)
class SmallTalk:
    """A message that asks nothing, and its language; "" for an emoji, which has none."""

    kind: Kind
    language: str

    def reply(self, collections: Sequence[str], readers: str) -> str:
        """Return a reply that says what the assistant can do; `collections` are the names a reader may ask about.

        `readers` is the language of the reply if the message has none.
        """
        language = choose_language(self.language, readers)
        if self.kind != "greeting":
            return say(self.kind, language)
        name = "greeting_for" if collections else "greeting"
        about = say(name, language, collections=", ".join(collections))
        return join([say("hello", language), about], language)


def find_smalltalk(message: str) -> SmallTalk | None:
    """Return the small talk that makes up all of `message`, or None if the message may ask something."""
    if len(message) > LONGEST:
        return None
    words = _PHRASES["reason"].sub("", " ".join(_words(message))).split()
    if not words:
        return next((smalltalk for sign, smalltalk in _SIGNS.items() if sign in message), None)
    found = _phrases_in(words)
    said = [one for one in _REPLIES if one in found]
    return _REPLIES[max(said, key=lambda one: (-_KINDS.index(_REPLIES[one].kind), len(one)))] if said else None


def strip_smalltalk(message: str) -> str:
    """Return `message` without a greeting before its question and thanks after it: "Hi, what is X? Thanks!"."""
    text = message.strip()
    for _ in range(MOST_CLAUSES):
        ends = [end.end() for end in _CLAUSE_END.finditer(text[:LONGEST])]
        if ends and ends[0] < len(text) and find_smalltalk(text[: ends[0]]):
            text = text[ends[0] :].strip()
    for _ in range(MOST_CLAUSES):
        tail = text[-LONGEST:]
        ends = [end.end() for end in _CLAUSE_END.finditer(tail) if end.end() < len(tail)]
        if ends and find_smalltalk(tail[ends[-1] :]):
            text = text[: len(text) - len(tail) + ends[-1]].strip()
    return text


def _phrases_in(words: Sequence[str]) -> frozenset[str]:
    """Return the phrases and fillers that make up `words`, matched longest first; empty if other words remain."""
    found, at = set[str](), 0
    while at < len(words):
        ends = range(min(len(words), at + _LONGEST_PHRASE), at, -1)
        end = next((end for end in ends if " ".join(words[at:end]) in _EVERY), 0)
        if not end:
            return frozenset()
        found.add(" ".join(words[at:end]))
        at = end
    return frozenset(found)


def _words(text: str) -> list[str]:
    return re.findall(r"\w+(?:'\w+)?", unicodedata.normalize("NFKC", text).replace("’", "'").lower())


def _split(phrases: str) -> list[str]:
    return [" ".join(_words(phrase)) for phrase in phrases.split("|")]


def _replies(kind: Kind, table: Mapping[str, str]) -> dict[str, SmallTalk]:
    return {phrase: SmallTalk(kind, tag) for tag, phrases in table.items() for phrase in _split(phrases)}


_KINDS: tuple[Kind, ...] = ("thanks", "goodbye", "greeting")
_REPLIES = {phrase: smalltalk for kind in _KINDS for phrase, smalltalk in _replies(kind, _TABLE[kind]).items()}
_EVERY = frozenset([*_REPLIES, *_split(_TABLE["fillers"])])
_LONGEST_PHRASE = max(len(phrase.split()) for phrase in _EVERY)
_SIGNS = {sign: SmallTalk(kind, "") for kind, signs in _TABLE["signs"].items() for sign in signs}
