"""Finds the sentences of an answer that say that there is none; takes them out while it streams.

The prompts give the sentence for it in the reader's language (`say("unknown", …)`); the patterns know what small
models write instead, in English. Knows statements, no passage and no model.
"""

from collections.abc import Iterable

import regex

from pipelines.answering.grounding.answerable import may_say_unknown, says_unknown
from pipelines.answering.grounding.words import content_words
from pipelines.answering.writing.stages.text import CodePiece, Number, Piece, Statement, StatementKind, read_text
from pipelines.text.phrases import read_phrases

MOST = 300  # characters of a sentence that are held, without the white space in it
LONGEST = 1_000  # characters of one that are held at all

_PHRASES = read_phrases(__name__)
_REFUSAL = regex.compile(_PHRASES["refusal"].pattern)  # of whose beginning it can be told that it may still match
_MARKS = " \t\n>*_#-\"'“`"  # before the first word of a sentence
_AGREEING = content_words("yes sure certainly course absolutely can could you me i show give provide here")


def is_refusal(sentence: str) -> bool:
    """Return whether a sentence says that the passages, or the model, have no answer, and nothing else."""
    text = _plain(sentence)
    if says_unknown(text):
        return True
    found = _PHRASES["refusal"].match(text) or _PHRASES["not_there"].match(text)
    return found is not None and not _PHRASES["contrast"].search(text, found.end())


def is_echo(sentence: str, question: str) -> bool:
    """Return whether a sentence only repeats a request: "Yes, you can show me an example of it." """
    said = content_words(_plain(sentence))
    asked = bool(_PHRASES["request"].search(question)) and not sentence.rstrip().endswith(":")
    return asked and bool(said) and said <= content_words(question) | _AGREEING


def is_whole(sentence: str) -> bool:
    """Return whether a refusal speaks of the whole question, as "I do not know", not of a part that is missing."""
    text = _plain(sentence)
    return says_unknown(text) or bool(_PHRASES["whole"].search(text))


def gives_up(text: str) -> bool:
    """Return whether an answer begins with a whole sentence that is a refusal of the question: no more is needed."""
    first = next((piece.text for piece in read_text(text) if isinstance(piece, Statement)), "")
    return first.endswith((".", "!", "?", "。")) and is_refusal(first) and is_whole(first)


def may_refuse(begin: str) -> bool:
    """Return whether a sentence that begins so may still become a refusal."""
    text = _plain(begin)
    return len(text) <= MOST and (may_say_unknown(text) or _REFUSAL.match(text, partial=True) is not None)


class RefusalFilter:
    """Takes refusals out of the pieces of an answer. Text that can't be one leaves with the delta it came in.

    A refusal at the beginning is taken out, and so is one of the whole question after other sentences, which small
    models append to good answers. With `final` nothing after a refusal at the beginning is believed.
    A beginning that only repeats the request of `question` counts as one.
    """

    def __init__(self, *, final: bool = False, question: str = "") -> None:
        self._final, self._question = final, question
        self._refusals, self._written, self._said, self._taken = 0, False, False, False
        self._begin()

    def _begin(self) -> None:
        """Begin a sentence."""
        self._held: list[Piece] | None = []  # of the open sentence; None once it has left
        self._sentence, self._worded = "", False  # the first marks of it are left out

    @property
    def refused(self) -> bool:
        """Whether the text so far says nothing but that there is no answer, or has no words."""
        return self._written and not self._said

    def feed(self, pieces: Iterable[Piece]) -> list[Piece]:
        """Return the pieces that may leave now that `pieces` have come."""
        return [out for piece in pieces for out in self._take(piece)]

    def close(self) -> list[Piece]:
        """Return the rest, as no more text comes."""
        return []

    def _take(self, piece: Piece) -> list[Piece]:
        if self._final and self._refusals and not self._said:
            return []
        if isinstance(piece, Statement):
            return self._end(piece)
        self._written |= bool(piece.strip())
        if self._held is None:
            return [piece]
        self._held.append(piece)
        if not self._worded and not _has_words(piece):  # marks before the first word, of any number
            self._sentence = (self._sentence + piece).lstrip(_MARKS)[:LONGEST]
            if piece.endswith("\n") and not self._said:
                self._begin()  # a rule
                return []
            return self._let_go() if isinstance(piece, CodePiece) else []
        begun, own = self._sentence, "" if isinstance(piece, Number) else piece
        self._sentence, self._worded = begun + own, self._worded or bool(own)
        return self._let_go() if isinstance(piece, CodePiece) or not self._may_go_on(len(begun)) else []

    def _may_go_on(self, known: int) -> bool:
        """Return whether the sentence may still become void, as it might at each place since its first `known` signs.

        Whatever may refuse might have at each place before, so only the ends of words are looked at, and those only
        for an echo.
        """
        if len(self._sentence) > LONGEST:
            return False
        if may_refuse(self._sentence):
            return True
        ends = [n for n in range(known + 1, len(self._sentence)) if self._sentence[n] == " "]
        return all(self._may_be_void(self._sentence[:n]) for n in [*ends, len(self._sentence)])

    def _may_be_void(self, begun: str) -> bool:
        return not _has_words(begun) or self._may_echo(begun) or may_refuse(begun)

    def _may_echo(self, begun: str) -> bool:
        """Return whether a sentence, whose last word may not be whole, may still repeat the request."""
        if self._said or len(begun) > MOST or not _PHRASES["request"].search(self._question):
            return False
        whole = begun.rpartition(" ")[0]
        return not content_words(_plain(whole)) or is_echo(whole, self._question)

    def _let_go(self) -> list[Piece]:
        """Return what was held, without the numbers of a refusal before it."""
        held, self._held = self._held or [], None
        while self._taken and held and (isinstance(held[0], Number) or not str(held[0]).strip()):
            del held[0]
        return held

    def _end(self, statement: Statement) -> list[Piece]:
        """End a sentence; return what of it has not left yet, nothing if it is a refusal."""
        said = _has_words(statement.text)
        refusal = said and statement.kind is not StatementKind.CODE and self._is_void(statement.text)
        taken = self._held is not None and (
            not self._said if not said else refusal and (not self._said or is_whole(statement.text))
        )
        left = [] if taken else [*self._let_go(), statement]
        self._taken = taken
        self._refusals += refusal
        self._said |= said and not refusal
        self._begin()
        return left

    def _is_void(self, sentence: str) -> bool:
        return is_refusal(sentence) or (not self._said and is_echo(sentence, self._question))


def _has_words(text: str) -> bool:
    return any(map(str.isalnum, text))


def _plain(sentence: str) -> str:
    return " ".join(sentence.lstrip(_MARKS).replace("’", "'").lower().split())
