"""Adds the number of the passage that supports a claim, while the answer streams.

Knows statements and passages; no engine, no prompt and no second model call. docs/citations.md has the figures.
"""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from pipelines.answering.grounding.support import Passages, Support
from pipelines.answering.writing.citations import CheckedStatement
from pipelines.answering.writing.claims import PHRASES
from pipelines.answering.writing.stages.text import Piece, Statement, StatementKind
from pipelines.lexical import terms
from pipelines.records import NOWHERE, Reason
from pipelines.text.languages import ENGLISH, say

CLOSEST = 3  # passages that are named where none supports anything


class Attributor:
    """Passes the pieces of an answer on to `write` at once, and cites for each claim as soon as it is whole.

    A claim whose own numbers do not support it gets one that does, a claim without any too; one that no passage
    supports stays as it is. `checked` are the statements so far, `seconds` the time that their checks took. The words
    that it adds are in `language`.
    """

    def __init__(self, passages: Passages, write: Callable[[str], None], language: str = ENGLISH) -> None:
        self._passages, self._write, self._language = passages, write, language
        self.checked: list[CheckedStatement] = []
        self._last_claim: CheckedStatement | None = None
        self.seconds = 0.0

    async def feed(self, pieces: Sequence[Piece]) -> None:
        """Say the text of `pieces`, and the numbers that are certain now that they have come."""
        said = ""
        for piece in pieces:
            if isinstance(piece, str):
                said += piece
                continue
            if said:  # a reader need not wait for the check of what follows
                self._write(said)
            began = time.perf_counter()
            checked = await self._check(piece)
            self.checked.append(checked)
            self._last_claim = checked if checked.is_claim else self._last_claim
            self.seconds += time.perf_counter() - began
            said = _write_numbers(piece, tuple(checked.added))
        if said:
            self._write(said)

    async def close(self) -> None:
        """Say the closest passages, if none supports anything, as no more text comes."""
        await self.feed([self._cite_closest()])

    async def _check(self, statement: Statement) -> CheckedStatement:
        text, numbers = self._claim_of(statement), [n for n in statement.numbers if 1 <= n <= len(self._passages.hits)]
        code = statement.code if statement.kind is StatementKind.CODE else None
        given = await self._passages.check(text, numbers, code) if numbers else {}
        checked = CheckedStatement(statement, given)
        if not checked.is_claim:
            return checked
        if why := self._refute(text, code):
            return CheckedStatement(statement, _unsupported(given), why=why)
        if PHRASES["yes_or_no"].match(statement.text) and not self._passages.has_said(text):
            return CheckedStatement(statement, _unsupported(given))  # words of the question are in any passage found
        if checked.supported:
            return checked
        added = await self._passages.find(text, numbers, self._prefer(text), code)
        return CheckedStatement(statement, given, added) if added else checked

    def _refute(self, text: str, code: str | None) -> Reason | None:
        """Return why a claim can't hold; what goes on about a thing that is nowhere can't either."""
        last = self._last_claim
        if last and last.why and last.why.kind == NOWHERE and PHRASES["goes_on"].match(text):
            return last.why
        return self._passages.refute(text, code)

    def _claim_of(self, statement: Statement) -> str:
        """Return the text that the statement's numbers stand for: the one before, if it has no words itself."""
        if self.checked and statement.numbers and not terms(statement.text):
            return self.checked[-1].statement.text
        return PHRASES["yes_or_no"].sub("", statement.text)  # which no passage says

    def _prefer(self, text: str) -> Collection[int]:
        """Return the passages of the claim before, if `text` goes on about its subject without naming it."""
        last = self._last_claim
        if last is None or not PHRASES["goes_on"].match(text):
            return ()
        return [n for n, support in (*last.given.items(), *last.added.items()) if support.enough]

    def _cite_closest(self) -> str:
        """Return the last line of an answer that claims something without any support, else ""."""
        claims = [one for one in self.checked if one.is_claim]
        closest = self._passages.closest(CLOSEST)
        if not claims or not closest or any(one.supported for one in self.checked):
            return ""
        text = say("no_source", self._language, numbers=" ".join(f"[{n}]" for n in closest))
        self.checked.append(CheckedStatement(Statement(text, kind=StatementKind.HEADING), added=closest))
        return f"\n\n{text}"


def _unsupported(given: Mapping[int, Support]) -> Mapping[int, Support]:
    return {n: replace(support, enough=False) for n, support in given.items()}


def _write_numbers(statement: Statement, numbers: Sequence[int]) -> str:
    """Return added numbers as they stand after a statement, with its gap; those of a code block in a line below."""
    marks, gap = "".join(f"[{n}]" for n in numbers), statement.gap
    if not marks or statement.kind is not StatementKind.CODE:
        return (f" {marks}" if marks else "") + gap
    below = "\n" if gap.count("\n") == 1 else ""  # else the number would be the beginning of the next line's text
    return f"\n{statement.indent}{marks}{below}{gap}"
