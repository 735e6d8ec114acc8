"""Completes a follow-up question from the questions before it, by rules.

Knows English question forms, pronouns and prepositions. It puts the subject of the question before for "it", and the
question before around "what about views?"; where it finds no form it adds the last question that stands alone in
brackets, with what was asked about it since.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.resources import files

import yaml

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
    r"|(?:does|do|did|will|would|can|could|is|are|should) (?:this|that|these|those)|then(?=\s*[?.!]*$))\b",
    re.IGNORECASE,
)
_DO_THIS = re.compile(r"\bdo (?:this|that|it|so|the same)\b", re.IGNORECASE)
_PREPOSITION = re.compile(
    r"\b(?:in|on|with|from|for|to|into|using|by|at|inside|within|without|over|under|via|as|when|if|while|so)\b",
    re.IGNORECASE,
)
# A thing of what was spoken of: "the maximum?"; a name is one of its own.
_DEFINITE = re.compile(r"(?:the|their|its)(?: [a-z-]+)+[ ?.!]*$")
_ONE = re.compile(r"\bones?\b", re.IGNORECASE)
_NAME = re.compile(
    r"@?`?[A-Za-z]\w*(?:\.[A-Za-z_]\w+|_\w+|::\w+|(?=\())[\w.:]*(?:\(.*\))?`?"
)  # `ray.put`, `lru_cache`, `f()`
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
_TABLES = yaml.safe_load((files(__package__) / "phrases" / "followup.yaml").read_text(encoding="utf-8"))
_GENERAL = frozenset(terms(_TABLES["general"]))
_OPPOSITES = [pair.split() for pair in _TABLES["opposites"].split(", ")]
# At the end of a question without a second clause it stands for what was spoken of: "How do I delete a file with it?"
_AT_THE_END = re.compile(
    r"(?!.*\b(?:and|or|then|when|if|that|which|while|because|after|before|so|nothing|something|what is)\b)"
    r".*\b(?:with|using|in|on|from|by|to|into|for|through|inside|about) (?P<pronoun>it|them|that|this)[ ?.!]*",
    re.IGNORECASE | re.DOTALL,
)
# Content words before a pronoun; with more, it stands for something in the question itself. One more after an "and".
MOST_BEFORE = 1
# A longer message says itself what it is about, and the forms below are not searched in it.
LONGEST = 1_000
SHORT = 4  # words of a fragment such as "in Python?"
FEW = 1  # content words of a follow-up that says too little without the one before it


@dataclass(frozen=True, slots=True)
class FollowUp:
    """A question as it reads alone. `unclear` is what it refers to and nothing before it names, "" for nothing.

    `by_form`: what the question refers to was put into its form; otherwise it is as it was asked, or the question
    before stands behind it. `about` is what it goes on about, "" for a question that stands alone.
    """

    question: str
    unclear: str = ""
    by_form: bool = False
    about: str = ""


@dataclass(frozen=True, slots=True)
class _Thread:
    """What a conversation is about: its last question that stands alone, with its subject and the "in …" behind that.

    `added` is what a follow-up has asked about it since, where the question has no form to take it in, "" for nothing.
    """

    question: str = ""
    subject: str = ""
    tail: str = ""
    added: str = ""


def complete(question: str, before: Sequence[str]) -> FollowUp:
    """Return `question` completed from the reader's questions `before` it, oldest first, none of them small talk."""
    thread = _Thread()
    for message in before:
        long = len(message) > LONGEST
        thread = _Thread(message[:LONGEST]) if long else _complete(message, thread)[1]
    return FollowUp(question) if len(question) > LONGEST else _complete(question, thread)[0]


def _complete(question: str, thread: _Thread) -> tuple[FollowUp, _Thread]:
    """Return `question` completed from the thread before it, and the thread with it."""
    bare = _CONNECTOR.sub("", question, count=1) if _CONNECTOR.match(question) else question
    about, connected = _ABOUT.fullmatch(bare), bare != question
    reference = _reference(bare, MOST_BEFORE + connected)
    content = _content(bare)
    general = bool(content <= _GENERAL)
    fragment = len(bare.split()) <= SHORT and not (_HOW_TO.match(bare) or _WHAT_IS.match(bare))
    begins = connected or _PREPOSITION.match(bare) or _DEFINITE.match(bare)
    if not (about or reference or general or (fragment and begins)):
        alone = bare if connected and len(content) > 1 else question
        return FollowUp(alone), _Thread(alone, *_subject(alone))
    if not thread.question:
        unclear = reference or (bare if about or connected else "")
        return FollowUp(question, unclear), _Thread(question, *_subject(question))
    part = fragment and bool(_DEFINITE.match(bare) or (reference and _PREPOSITION.match(bare)))
    in_place = about or (fragment and not reference and not general)
    asked = about[1] if about else bare
    if thread.added or part:
        return _add(asked, thread, beside=bool(in_place and not _PREPOSITION.match(asked)))
    completed = _in_place(asked, thread) if in_place else _with_subject(bare, thread) if reference else ""
    if not completed:
        return _add(asked, thread)
    subject, tail = _subject(completed)
    if reference and not _HOW_TO.match(completed):
        subject, tail = thread.subject, thread.tail  # a pronoun goes on about what it stood for
    kept = thread.subject if reference or _PREPOSITION.match(asked) else ""
    return FollowUp(completed, by_form=True, about=kept), _Thread(completed, subject, tail)


def _add(asked: str, thread: _Thread, *, beside: bool = False) -> tuple[FollowUp, _Thread]:
    """Return what is `asked` with the thread's question in brackets; `beside`: in the place of what was added before.

    What was added before stays where little is asked: "can I change it?" of "its number of replicas".
    """
    asked = _opposite(asked, thread.added) or asked.strip(" ?.!")
    own = _content(asked) - _GENERAL
    kept = thread.added if len(own) <= FEW and not beside else ""
    around = f"{thread.question.rstrip(' ?.!')}: {kept}" if kept and kept != asked else thread.question.rstrip(" ?.!")
    about = thread.subject or thread.question.strip(" ?.!")
    return FollowUp(f"{asked}? ({around})", about=about), replace(thread, added=_noun(asked) if own else thread.added)


def _opposite(asked: str, added: str) -> str:
    """Return "its minimum size" as "its maximum size" where "the maximum" is `asked`, "" for other questions."""
    for one, other in (*_OPPOSITES, *(pair[::-1] for pair in _OPPOSITES)):
        if _content(asked) == _content(one) and (found := re.search(rf"\b{other}\b", added, re.IGNORECASE)):
            return f"{added[: found.start()]}{one}{added[found.end() :]}"
    return ""


def _noun(asked: str) -> str:
    """Return "what is its size" as "its size"."""
    return re.sub(r"^(?:what(?: is| are|'s)|which|show me|explain)\s+(?=its|their|the)", "", asked, flags=re.IGNORECASE)


def _reference(question: str, most_before: int) -> str:
    """Return the words that refer to something before the question, "" for none."""
    for found in (_PRONOUN.search(question), _OTHERWISE.search(question)):
        if (
            found
            and len(_content(question[: found.start()]) - _GENERAL) <= most_before
            and not _expletive(question, found)
        ):
            return found[0]
    at_the_end = _AT_THE_END.fullmatch(question)
    return at_the_end["pronoun"] if at_the_end else ""


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


def _in_place(fragment: str, thread: _Thread) -> str:
    """Return the thread's question with `fragment` in the place of its object, or of its "in …"; "" without a form."""
    fragment, form = fragment.strip(" ?.!"), _HOW_TO.match(thread.question.strip(" ?.!"))
    if not form:
        return ""
    subject, tail = _split_tail(form["rest"])
    if _PREPOSITION.match(fragment):
        return f"{form['start']} {form['verb']} {subject} {fragment}?"
    own_tail = tail if not _PREPOSITION.search(fragment) else ""
    named = _ONE.sub(lambda _: subject.split()[-1], fragment) if subject else fragment
    return f"{form['start']} {form['verb']} {named} {own_tail}".strip() + "?"


def _with_subject(question: str, thread: _Thread) -> str:
    """Return `question` with the subject of the thread for its pronoun, "" unless both have a known form."""
    subject, tail = thread.subject, thread.tail
    asked, pronoun, form = question.rstrip(" ?.!"), _PRONOUN.search(question), _HOW_TO.match(thread.question)
    if form and _DO_THIS.search(asked):
        filled = _DO_THIS.sub(lambda _: f"{form['verb']} {subject}", asked, count=1)
    elif subject and pronoun:
        filled = f"{asked[: pronoun.start()]}{subject}{asked[pronoun.end() :]}"
    else:
        return ""
    own_tail = tail if not _PREPOSITION.search(asked) else ""
    return f"{filled} {own_tail}".strip() + "?"


def _subject(question: str) -> tuple[str, str]:
    """Return what a question is about, and the "in …" behind it; "" where it has no known form."""
    asked = question.strip(" ?.!")
    if form := _HOW_TO.match(asked):
        return _split_tail(form["rest"])
    if form := _WHAT_IS.match(asked):
        subject, tail = _split_tail(form["rest"])
        return _name_in(subject) or _LAST_VERB.sub("", subject), tail
    return _name_in(asked), ""


def _name_in(subject: str) -> str:
    """Return the one name of code in what was asked: `lru_cache` of "the lru_cache decorator"; else ""."""
    names = [word for word in subject.split() if _NAME.fullmatch(word)]
    return names[0] if len(names) == 1 else ""


def _split_tail(rest: str) -> tuple[str, str]:
    """Return an object and the prepositional phrase behind it."""
    found = _PREPOSITION.search(rest)
    if not found:
        return rest.strip(), ""
    tail = rest[found.start() :].strip()
    return rest[: found.start()].strip(), tail if tail != found[0] else ""
