"""Adds the number of the passage that supports a claim while the answer streams.

This module works with statements and passages; it knows nothing about engines or prompts, and makes no second model
call. benchmarks/results/claim-checks.md has the figures.
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

CLOSEST = 3  # passages to name if none supports anything


class Attributor:
    """Passes the pieces of an answer to `write` immediately, and cites for each claim once it is complete.

    A claim that its own numbers do not support, or without numbers, gets a number that does, unless the passages refute
    it. A claim that no passage supports stays as it is. `checked` has the statements so far, and `seconds` is the time
    that their checks took. Added sentences are in `language`.
    """

    def __init__(self, passages: Passages, write: Callable[[str], None], language: str = ENGLISH) -> None:
        self._passages, self._write, self._language = passages, write, language
        self.checked: list[CheckedStatement] = []
        self._last_claim: CheckedStatement | None = None
        self.seconds = 0.0

    async def feed(self, pieces: Sequence[Piece]) -> None:
        """Write the text of `pieces`, and the numbers that are now certain."""
        said = ""
        for piece in pieces:
            if isinstance(piece, str):
                said += piece
                continue
            if said:  # the reader need not wait for the check of the statement
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
        """Add the closest passages at the end of the answer, if none supports anything."""
        await self.feed([self._cite_closest()])

    async def _check(self, statement: Statement) -> CheckedStatement:
        text, numbers = self._claim_of(statement), [n for n in statement.numbers if 1 <= n <= len(self._passages.hits)]
        code = statement.code if statement.kind is StatementKind.CODE else None
        await self._passages.analyse()
        given = await self._passages.check(text, numbers, code) if numbers else {}
        checked = CheckedStatement(statement, given)
        if not checked.is_claim:
            return checked
        if why := self._refute(text, code):
            return CheckedStatement(statement, _unsupported(given), why=why)
        if PHRASES["yes_or_no"].match(statement.text) and not self._passages.has_said(text):
            return CheckedStatement(statement, _unsupported(given))  # any found passage has the question's words
        if checked.supported:
            return checked
        added = await self._passages.find(text, numbers, self._prefer(text), code)
        return CheckedStatement(statement, given, added) if added else checked

    def _refute(self, text: str, code: str | None) -> Reason | None:
        """Return why a claim can't be supported; one that continues about something in no passage can't either."""
        last = self._last_claim
        if last and last.why and last.why.kind == NOWHERE and PHRASES["goes_on"].match(text):
            return last.why
        return self._passages.refute(text, code)

    def _claim_of(self, statement: Statement) -> str:
        """Return the text that the statement's numbers cite for: the previous statement's if it has no words itself."""
        if self.checked and statement.numbers and not terms(statement.text):
            return self.checked[-1].statement.text
        return PHRASES["yes_or_no"].sub("", statement.text)  # no passage says "yes" or "no"

    def _prefer(self, text: str) -> Collection[int]:
        """Return the passages of the previous claim, if `text` continues its subject without naming it."""
        last = self._last_claim
        if last is None or not PHRASES["goes_on"].match(text):
            return ()
        return [n for n, support in (*last.given.items(), *last.added.items()) if support.enough]

    def _cite_closest(self) -> str:
        """Return the last line of an answer whose claims have no support at all, otherwise ""."""
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
    """Return added numbers as written after a statement, with its gap; for a code block, on a line below it."""
    marks, gap = "".join(f"[{n}]" for n in numbers), statement.gap
    if not marks or statement.kind is not StatementKind.CODE:
        return (f" {marks}" if marks else "") + gap
    below = "\n" if gap.count("\n") == 1 else ""  # otherwise the number would start the next line's text
    return f"\n{statement.indent}{marks}{below}{gap}"
