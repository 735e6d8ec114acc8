"""Completes a follow-up question from the questions before it, by rules.

Knows English question forms, pronouns and prepositions. It puts the subject of the question before for "it", and the
question before around "what about views?"; where it finds no form it adds that question in brackets.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pipelines.answering.understanding.smalltalk import find_smalltalk, strip_smalltalk
from pipelines.lexical import STOP_TERMS, terms

_CONNECTOR = re.compile(r"(?:(?:and|but|or|so|then|also|ok|okay|now|next|yes|no)\b[\s,]*)+", re.IGNORECASE)
_ABOUT = re.compile(
    r"(?:(?:what|how) about|what if (?:it is|it's)|same for|the same for)\s+(.*)", re.IGNORECASE | re.DOTALL
)
# A pronoun that stands for what was spoken of: `that` and `this` only where no noun follows.
_PRONOUN = re.compile(
    r"\b(?:it|them|they|(?<!which )(?<!this )(?<!that )(?<!other )one"
    r"|(?:that|this|those|these)(?=\s*(?:[?.!,]|$|(?:in|on|with|for|from|to|by|at|is|are|was|does|do|can|will|work|works|mean|means|automatically|again|too|instead|without|using|when|if|and|or)\b)))\b(?!'s\b)",
    re.IGNORECASE,
)
# Words that refer to it otherwise: the question before stands in brackets.
_OTHERWISE = re.compile(
    r"\b(?:its|their|there|the same|such an?|which one|which of (?:them|these|those)|another one|the other one"
    r"|(?:does|do|did|will|would|can|could|is|are|should) (?:this|that|these|those))\b",
    re.IGNORECASE,
)
_DO_THIS = re.compile(r"\bdo (?:this|that|it|so|the same)\b", re.IGNORECASE)
_PREPOSITION = re.compile(
    r"\b(?:in|on|with|from|for|to|into|using|by|at|inside|within|without|over|under|via|as|when|if|while|so)\b",
    re.IGNORECASE,
)
# How a question begins: with a verb and its object, or with what is asked about.
_HOW_TO = re.compile(
    r"(?P<start>(?:how (?:do|can|could|would|should|did|must|might|does) (?:i|we|you|one|someone|people)\b|how to\b"
    r"|(?:can|could|may|should|must) (?:i|we|you|one)\b|is it possible to|where (?:do|can|should) i|when should i"
    r"|i (?:want|need|would like|am trying|try) to|what is the (?:best |easiest |right |recommended )?way to"
    r"|why (?:do|should) i)(?: (?:best|easily|quickly|also|just))?)"
    r"\s+(?P<verb>\w+(?: (?:up|out|off|down|over|back))?)\s+(?P<rest>.+)",
    re.IGNORECASE | re.DOTALL,
)
_WHAT_IS = re.compile(
    r"(?:what (?:is|are|does|do|was)|what's|how (?:does|do|is|are)|explain|describe|define|tell me about|show me"
    r"|why (?:is|are|does|do)|where (?:is|are)|when (?:is|are|does|do)|which|who (?:is|are)|is|are|does|do)"
    r"\s+(?P<rest>.+)",
    re.IGNORECASE | re.DOTALL,
)
_LAST_VERB = re.compile(
    r"\s+(?:are there|is there|do|does|mean|means|work|works|used|use|needed|happen|run|exist|for)$", re.IGNORECASE
)
# Words of a question that ask about whatever was spoken of.
_GENERAL = frozenset(
    terms(
        "example limit limits limitation default option options parameter parameters argument syntax alternative detail"
        " more difference advantage disadvantage drawback risk cost performance reason code show give explain mean work"
        " further else"
    )
)
# Content words before a pronoun; with more, it stands for something in the question itself. One more after an "and".
MOST_BEFORE = 1
SHORT = 4  # words of a fragment such as "in Python?"


@dataclass(frozen=True, slots=True)
class FollowUp:
    """A question as it reads alone. `unclear` is what it refers to and nothing before it names, "" for nothing.

    `by_form`: what the question refers to was put into its form; otherwise it is as it was asked, or the question
    before stands behind it.
    """

    question: str
    unclear: str = ""
    by_form: bool = False


def complete(question: str, before: Sequence[str]) -> FollowUp:
    """Return `question` completed from the reader's questions `before` it, oldest first."""
    asked = [strip_smalltalk(message) for message in before if message.strip() and not find_smalltalk(message)]
    previous = ""
    for message in asked:
        previous = _complete(message, previous).question
    return _complete(strip_smalltalk(question), previous)


def _complete(question: str, previous: str) -> FollowUp:
    """Return `question` completed from the whole question before it, "" for none."""
    bare = _CONNECTOR.sub("", question, count=1) if _CONNECTOR.match(question) else question
    about, connected = _ABOUT.fullmatch(bare), bare != question
    reference = _reference(bare, MOST_BEFORE + connected)
    content = _content(bare)
    general = bool(content <= _GENERAL)
    fragment = len(bare.split()) <= SHORT and not (_HOW_TO.match(bare) or _WHAT_IS.match(bare))
    if not (about or reference or general or (fragment and connected) or (fragment and _PREPOSITION.match(bare))):
        return FollowUp(bare if connected and len(content) > 1 else question)
    if not previous:
        return FollowUp(question, reference or (bare if about or connected else ""))
    if about or (fragment and not reference and not general):
        completed = _in_place(about[1] if about else bare, previous)
    else:
        completed = _with_subject(bare, previous) if reference else _in_brackets(bare, previous)
    return FollowUp(completed, by_form=not completed.endswith(_brackets(previous)))


def _reference(question: str, most_before: int) -> str:
    """Return the words that refer to something before the question, "" for none."""
    for found in (_PRONOUN.search(question), _OTHERWISE.search(question)):
        if found and len(_content(question[: found.start()])) <= most_before and not _expletive(question, found):
            return found[0]
    return ""


def _expletive(question: str, found: re.Match[str]) -> bool:
    """Tell an "it" or "there" that stands for nothing: "is it possible", "is there a way", "one of"."""
    around = question[max(0, found.start() - 5) : found.end() + 10].lower()
    return bool(
        re.search(
            r"\b(?:is|are|was) (?:it (?:possible|ok|necessary|safe)|there)\b|\bone (?:of|by|or)\b|\bper one\b", around
        )
    )


def _content(text: str) -> frozenset[str]:
    return frozenset(terms(text)) - STOP_TERMS


def _in_place(fragment: str, previous: str) -> str:
    """Return the question before with `fragment` in the place of its object, or of its "in …"."""
    fragment, asked = fragment.strip(" ?.!"), previous.strip(" ?.!")
    form = _HOW_TO.match(asked)
    if not form:
        return _in_brackets(fragment, previous)
    subject, tail = _split_tail(form["rest"])
    if _PREPOSITION.match(fragment):
        return f"{form['start']} {form['verb']} {subject} {fragment}?"
    own_tail = tail if not _PREPOSITION.search(fragment) else ""
    return f"{form['start']} {form['verb']} {fragment} {own_tail}".strip() + "?"


def _with_subject(question: str, previous: str) -> str:
    """Return `question` with the subject of the question before for its pronoun, where both have a known form."""
    subject, tail = _subject(previous)
    asked, pronoun, form = question.rstrip(" ?.!"), _PRONOUN.search(question), _HOW_TO.match(previous)
    if form and _DO_THIS.search(asked):
        filled = _DO_THIS.sub(lambda _: f"{form['verb']} {subject}", asked, count=1)
    elif subject and pronoun:
        filled = f"{asked[: pronoun.start()]}{subject}{asked[pronoun.end() :]}"
    else:
        return _in_brackets(question, previous)
    own_tail = tail if not _PREPOSITION.search(asked) else ""
    return f"{filled} {own_tail}".strip() + "?"


def _in_brackets(question: str, previous: str) -> str:
    return f"{question.rstrip(' ?.!')}? {_brackets(previous)}"


def _brackets(previous: str) -> str:
    return f"({previous.rstrip(' ?.!')})"


def _subject(question: str) -> tuple[str, str]:
    """Return what a question is about, and the "in …" behind it; "" where it has no known form."""
    asked = question.strip(" ?.!")
    if form := _HOW_TO.match(asked):
        return _split_tail(form["rest"])
    if form := _WHAT_IS.match(asked):
        subject, tail = _split_tail(form["rest"])
        return _LAST_VERB.sub("", subject), tail
    return "", ""


def _split_tail(rest: str) -> tuple[str, str]:
    """Return an object and the prepositional phrase behind it."""
    found = _PREPOSITION.search(rest)
    if not found:
        return rest.strip(), ""
    return rest[: found.start()].strip(), rest[found.start() :].strip()
