"""Keeps a model's statements about quoted passages if the passages support them, and verbatim code.

Statements that repeat the quotations or an earlier claim word for word are left out, as are lead-ins to omitted
statements.
"""

from collections.abc import Callable, Sequence

from pipelines.answering.grounding.support import Passages
from pipelines.answering.writing.attribution import Attributor
from pipelines.answering.writing.citations import CheckedStatement
from pipelines.answering.writing.stages.text import Piece, Statement, StatementKind
from pipelines.page.stored import plain_text
from pipelines.text.languages import ENGLISH, say


class SummaryFilter:
    """Passes supported claims to `write`, below `quoted`, the quoting text; `checked` has those claims.

    The line before them is in `language`.
    """

    def __init__(self, passages: Passages, quoted: str, write: Callable[[str], None], language: str = ENGLISH) -> None:
        self._passages, self._known, self._write, self._language = passages, _words(quoted), write, language
        self._cited = Attributor(passages, self._hold)
        self._held = ""
        self.checked: list[CheckedStatement] = []

    @property
    def seconds(self) -> float:
        """The time that the checks took."""
        return self._cited.seconds

    async def feed(self, pieces: Sequence[Piece]) -> None:
        """Write the parts of `pieces` that are certain to be supported."""
        for piece in pieces:
            await self._cited.feed([piece])
            if isinstance(piece, Statement):
                self._settle(self._cited.checked[-1])

    async def close(self) -> None:
        """Drop a lead-in with nothing after it at the end of the text."""

    def _hold(self, text: str) -> None:
        self._held += text

    def _settle(self, one: CheckedStatement) -> None:
        is_code = one.statement.kind is StatementKind.CODE
        if not (one.is_claim or is_code):
            return  # a lead-in waits for the statement that it introduces
        held, self._held = self._held, ""
        words = _words(one.statement.text)
        if words in self._known or not (self._is_copied(one) if is_code else one.supported):
            return
        self._known += f" {words}"
        before = f"\n\n**{say('in_short', self._language)}**\n\n"
        self._write(held if self.checked else before + held.lstrip())
        self.checked.append(one)

    def _is_copied(self, one: CheckedStatement) -> bool:
        return any(one.statement.text in " ".join(hit.passage.split()) for hit in self._passages.hits)


def _words(text: str) -> str:
    """Return the words of a text without markup and punctuation."""
    return " ".join("".join(sign if sign.isalnum() else " " for sign in plain_text(text).casefold()).split())
