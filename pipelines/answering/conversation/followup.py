"""Completes a follow-up question from the questions before it, by rules.

The rules know English question forms, pronouns and prepositions. They replace "it" with the subject of the previous
question, and put "what about views?" into the form of the previous question. For a question without a known form, they
append the last self-contained question in brackets, with the details that follow-ups have added since.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pipelines.lexical import STOP_TERMS, terms
from pipelines.text.phrases import compile_phrases, read_table

_NAME = re.compile(
    r"@?`?[A-Za-z](?=[^\W_]*+_\w|\w*+(?:\.[A-Za-z_]\w|::\w|\())[\w.:]*+(?:\(.*\))?`?"
)  # `ray.put`, `lru_cache`, `f()`
_TABLE = read_table(__name__)
_PHRASES = compile_phrases(_TABLE)
_GENERAL = frozenset(terms(_TABLE["general"]))
_OPPOSITES = [pair.split() for pair in _TABLE["opposites"].split(", ")]
# Content words before a pronoun; with more, it refers to something in the question itself. One more after an "and".
MOST_BEFORE = 1
# Characters. A longer message names its own subject, so the forms below are not searched in it.
LONGEST = 1_000
SHORT = 4  # words of a fragment such as "in Python?"
FEW = 1  # content words of a follow-up that says too little without the previous one


@dataclass(frozen=True, slots=True)
class FollowUp:
    """A question rewritten to make sense by itself.

    `unclear` has the words that refer to something no previous turn names, or "". `by_form` is true if the reference
    was resolved inside the question's form; otherwise the question is unchanged, or the previous question was appended.
    `about` is the subject that a follow-up continues, "" for a self-contained question.
    """

    question: str
    unclear: str = ""
    by_form: bool = False
    about: str = ""


@dataclass(frozen=True, slots=True)
class _Thread:
    """The subject of a conversation: its last self-contained question, with its subject and trailing "in …" phrase.

    `added` has the details that a follow-up asked about since, if the question has no form to absorb them; otherwise
    "".
    """

    question: str = ""
    subject: str = ""
    tail: str = ""
    added: str = ""


def complete(question: str, before: Sequence[str]) -> FollowUp:
    """Return `question` completed from the reader's previous questions: oldest first, without small talk."""
    thread = _Thread()
    for message in before:
        long = len(message) > LONGEST
        thread = _Thread(message[:LONGEST]) if long else _complete(message, thread)[1]
    return FollowUp(question) if len(question) > LONGEST else _complete(question, thread)[0]


def _complete(question: str, thread: _Thread) -> tuple[FollowUp, _Thread]:
    """Return `question` completed from the thread before it, and the thread including it."""
    bare = _PHRASES["connector"].sub("", question, count=1) if _PHRASES["connector"].match(question) else question
    about, connected = _PHRASES["about"].fullmatch(bare), bare != question
    reference = _reference(bare, MOST_BEFORE + connected)
    content = _content(bare)
    general = bool(content <= _GENERAL)
    fragment = len(bare.split()) <= SHORT and not (_PHRASES["how_to"].match(bare) or _PHRASES["what_is"].match(bare))
    begins = connected or _PHRASES["preposition"].match(bare) or _PHRASES["definite"].match(bare)
    if not (about or reference or general or (fragment and begins)):
        alone = bare if connected and len(content) > 1 else question
        return FollowUp(alone), _Thread(alone, *_subject(alone))
    if not thread.question:
        unclear = reference or (bare if about or connected else "")
        return FollowUp(question, unclear), _Thread(question, *_subject(question))
    part = fragment and bool(_PHRASES["definite"].match(bare) or (reference and _PHRASES["preposition"].match(bare)))
    in_place = about or (fragment and not reference and not general)
    asked = about[1] if about else bare
    if thread.added or part:
        return _add(asked, thread, instead=bool(in_place and not _PHRASES["preposition"].match(asked)))
    completed = _in_place(asked, thread) if in_place else _with_subject(bare, thread) if reference else ""
    if not completed:
        return _add(asked, thread)
    subject, tail = _subject(completed)
    if reference and not _PHRASES["how_to"].match(completed):
        subject, tail = thread.subject, thread.tail  # the pronoun keeps its referent as the subject
    kept = thread.subject if reference or _PHRASES["preposition"].match(asked) else ""
    return FollowUp(completed, by_form=True, about=kept), _Thread(completed, subject, tail)


def _add(asked: str, thread: _Thread, *, instead: bool = False) -> tuple[FollowUp, _Thread]:
    """Return the follow-up `asked` with the thread's question in brackets.

    With `instead`, it replaces the details added before. Otherwise they stay if the follow-up says little: "can I
    change it?" after "its number of replicas".
    """
    asked = _opposite(asked, thread.added) or asked.strip(" ?.!")
    own = _content(asked) - _GENERAL
    kept = thread.added if len(own) <= FEW and not instead else ""
    around = f"{thread.question.rstrip(' ?.!')}: {kept}" if kept and kept != asked else thread.question.rstrip(" ?.!")
    about = thread.subject or thread.question.strip(" ?.!")
    added = _PHRASES["asks_for"].sub("", asked) if own else thread.added  # "its size" of "what is its size"
    return FollowUp(f"{asked}? ({around})", about=about), replace(thread, added=added)


def _opposite(asked: str, added: str) -> str:
    """Return "its minimum size" for `asked` "the minimum" after "its maximum size"; "" for other questions."""
    for one, other in (*_OPPOSITES, *(pair[::-1] for pair in _OPPOSITES)):
        if _content(asked) == _content(one) and (found := re.search(rf"\b{other}\b", added, re.IGNORECASE)):
            return f"{added[: found.start()]}{one}{added[found.end() :]}"
    return ""


def _reference(question: str, most_before: int) -> str:
    """Return the words that refer to something before the question, or ""."""
    for found in (_PHRASES["pronoun"].search(question), _PHRASES["otherwise"].search(question)):
        if (
            found
            and len(_content(question[: found.start()]) - _GENERAL) <= most_before
            and not _expletive(question, found)
        ):
            return found[0]
    at_the_end = _PHRASES["at_the_end"].fullmatch(question)
    return at_the_end["pronoun"] if at_the_end else ""


def _expletive(question: str, found: re.Match[str]) -> bool:
    """Return whether an "it", "there" or "one" refers to nothing: "is it possible", "is there a way", "one of"."""
    around = question[max(0, found.start() - 5) : found.end() + 10]
    return bool(_PHRASES["expletive"].search(around))


def _content(text: str) -> frozenset[str]:
    return frozenset(terms(text)) - STOP_TERMS


def _in_place(fragment: str, thread: _Thread) -> str:
    """Return the thread's question with its object or "in …" phrase replaced by `fragment`; "" for an unknown form."""
    fragment, form = fragment.strip(" ?.!"), _PHRASES["how_to"].match(thread.question.strip(" ?.!"))
    if not form:
        return ""
    subject, tail = _split_tail(form["rest"])
    if _PHRASES["preposition"].match(fragment):
        return f"{form['start']} {form['verb']} {subject} {fragment}?"
    own_tail = tail if not _PHRASES["preposition"].search(fragment) else ""
    named = _PHRASES["one"].sub(lambda _: subject.split()[-1], fragment) if subject else fragment
    return f"{form['start']} {form['verb']} {named} {own_tail}".strip() + "?"


def _with_subject(question: str, thread: _Thread) -> str:
    """Return `question` with its pronoun replaced by the thread's subject; "" unless both have a known form."""
    subject, tail = thread.subject, thread.tail
    asked, pronoun, form = (
        question.rstrip(" ?.!"),
        _PHRASES["pronoun"].search(question),
        _PHRASES["how_to"].match(thread.question),
    )
    if form and _PHRASES["do_this"].search(asked):
        filled = _PHRASES["do_this"].sub(lambda _: f"{form['verb']} {subject}", asked, count=1)
    elif subject and pronoun:
        filled = f"{asked[: pronoun.start()]}{subject}{asked[pronoun.end() :]}"
    else:
        return ""
    own_tail = tail if not _PHRASES["preposition"].search(asked) else ""
    return f"{filled} {own_tail}".strip() + "?"


def _subject(question: str) -> tuple[str, str]:
    """Return the subject of a question and its trailing "in …" phrase; both "" if it has no known form."""
    asked = question.strip(" ?.!")
    if form := _PHRASES["how_to"].match(asked):
        return _split_tail(form["rest"])
    if form := _PHRASES["what_is"].match(asked):
        subject, tail = _split_tail(form["rest"])
        return _name_in(subject) or _PHRASES["last_verb"].sub("", subject), tail
    return _name_in(asked), ""


def _name_in(subject: str) -> str:
    """Return the only code name in a subject: `lru_cache` in "the lru_cache decorator"; otherwise ""."""
    names = [word for word in subject.split() if _NAME.fullmatch(word)]
    return names[0] if len(names) == 1 else ""


def _split_tail(rest: str) -> tuple[str, str]:
    """Return an object and the prepositional phrase after it."""
    found = _PHRASES["preposition"].search(rest)
    if not found:
        return rest.strip(), ""
    tail = rest[found.start() :].strip()
    return rest[: found.start()].strip(), tail if tail != found[0] else ""
