"""Finds sentences that say that there is no answer, and removes them while the answer streams.

The prompts contain such a sentence in the reader's language (`say("unknown", …)`); the patterns match the English
sentences that small models write instead. This module looks only at statements, not at passages or models.
"""

from collections.abc import Iterable

import regex

from pipelines.answering.grounding.answerable import may_say_unknown, says_unknown
from pipelines.answering.grounding.words import content_words
from pipelines.answering.writing.stages.text import CodePiece, Number, Piece, Statement, StatementKind, read_text
from pipelines.text.phrases import read_phrases

MOST = 300  # the most characters of a sentence to hold back, without its whitespace
LONGEST = 1_000  # the most characters of a sentence to hold back at all

_PHRASES = read_phrases(__name__)
_REFUSAL = regex.compile(_PHRASES["refusal"].pattern)  # supports partial matches, for the start of a sentence
_MARKS = " \t\n>*_#-\"'“`"  # possible marks before the first word of a sentence
_AGREEING = content_words("yes sure certainly course absolutely can could you me i show give provide here")


def is_refusal(sentence: str) -> bool:
    """Return whether a sentence only says that the passages, or the model, have no answer."""
    text = _plain(sentence)
    if says_unknown(text):
        return True
    found = _PHRASES["refusal"].match(text) or _PHRASES["not_there"].match(text)
    return found is not None and not _PHRASES["contrast"].search(text, found.end())


def is_echo(sentence: str, question: str) -> bool:
    """Return whether a sentence only repeats a request, as "Yes, you can show me an example of it." does."""
    said = content_words(_plain(sentence))
    asked = bool(_PHRASES["request"].search(question)) and not sentence.rstrip().endswith(":")
    return asked and bool(said) and said <= content_words(question) | _AGREEING


def is_whole(sentence: str) -> bool:
    """Return whether a refusal covers the whole question ("I do not know"), not just a missing part."""
    text = _plain(sentence)
    return says_unknown(text) or bool(_PHRASES["whole"].search(text))


def gives_up(text: str) -> bool:
    """Return whether an answer begins with a complete sentence that refuses the whole question."""
    first = next((piece.text for piece in read_text(text) if isinstance(piece, Statement)), "")
    return first.endswith((".", "!", "?", "。")) and is_refusal(first) and is_whole(first)


def may_refuse(begin: str) -> bool:
    """Return whether a sentence with this beginning may still become a refusal."""
    text = _plain(begin)
    return len(text) <= MOST and (may_say_unknown(text) or _REFUSAL.match(text, partial=True) is not None)


class RefusalFilter:
    """Removes refusals from the pieces of an answer; text that can't be one is emitted with its delta.

    A refusal at the beginning is removed. So is a later refusal of the whole question, which small models append to
    good answers. With `final`, everything after a refusal at the beginning is discarded. With `whole`, only refusals of
    the whole question are removed: a sentence that names missing information stays. A beginning that only repeats the
    request of `question` counts as a refusal.
    """

    def __init__(self, *, final: bool = False, whole: bool = False, question: str = "") -> None:
        self._final, self._whole, self._question = final, whole, question
        self._refusals, self._written, self._said, self._taken = 0, False, False, False
        self._begin()

    def _begin(self) -> None:
        """Begin a sentence."""
        self._held: list[Piece] | None = []  # pieces of the open sentence; None once emitted
        self._sentence, self._worded = "", False  # without its leading marks

    @property
    def refused(self) -> bool:
        """Whether the text so far only says that there is no answer, or has no words."""
        return self._written and not self._said

    def feed(self, pieces: Iterable[Piece]) -> list[Piece]:
        """Add `pieces` and return the pieces that can be emitted now."""
        return [out for piece in pieces for out in self._take(piece)]

    def close(self) -> list[Piece]:
        """Return the rest, after the end of the text."""
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
        if not self._worded and not _has_words(piece):  # any number of marks before the first word
            self._sentence = (self._sentence + piece).lstrip(_MARKS)[:LONGEST]
            if piece.endswith("\n") and not self._said:
                self._begin()  # a horizontal rule
                return []
            return self._let_go() if isinstance(piece, CodePiece) else []
        begun, own = self._sentence, "" if isinstance(piece, Number) else piece
        self._sentence, self._worded = begun + own, self._worded or bool(own)
        return self._let_go() if isinstance(piece, CodePiece) or not self._may_go_on(len(begun)) else []

    def _may_go_on(self, known: int) -> bool:
        """Return whether the open sentence may still turn out to be a refusal or an echo.

        It must have been possible at each position since its first `known` characters. A possible refusal was possible
        at each earlier position, so only the ends of words are checked, and only for an echo.
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
        """Return whether a sentence, whose last word may be incomplete, may still repeat the request."""
        if self._said or len(begun) > MOST or not _PHRASES["request"].search(self._question):
            return False
        whole = begun.rpartition(" ")[0]
        return not content_words(_plain(whole)) or is_echo(whole, self._question)

    def _let_go(self) -> list[Piece]:
        """Return the held pieces, without the numbers of a refusal before them."""
        held, self._held = self._held or [], None
        while self._taken and held and (isinstance(held[0], Number) or not str(held[0]).strip()):
            del held[0]
        return held

    def _end(self, statement: Statement) -> list[Piece]:
        """End a sentence; return its pieces that were held back, or none if it is a refusal."""
        said = _has_words(statement.text)
        refusal = said and statement.kind is not StatementKind.CODE and self._is_void(statement.text)
        removable = refusal and (is_whole(statement.text) or not (self._said or self._whole))
        taken = self._held is not None and (removable if said else not self._said)
        left = [] if taken else [*self._let_go(), statement]
        self._taken = taken
        self._refusals += refusal if not self._whole else removable
        self._said |= said and not refusal
        self._begin()
        return left

    def _is_void(self, sentence: str) -> bool:
        return is_refusal(sentence) or (not self._said and is_echo(sentence, self._question))


def _has_words(text: str) -> bool:
    return any(map(str.isalnum, text))


def _plain(sentence: str) -> str:
    return " ".join(sentence.lstrip(_MARKS).replace("’", "'").lower().split())
