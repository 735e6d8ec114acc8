"""Keeps what a model says about quoted passages where they support it, and code that stands in them.

What the quotations or a claim before say in the same words is left out, and so is a lead-in to something that is.
"""

from collections.abc import Callable, Sequence

from pipelines.answering.grounding.support import Passages
from pipelines.answering.writing.attribution import Attributor
from pipelines.answering.writing.citations import CheckedStatement
from pipelines.answering.writing.stages.text import Piece, Statement, StatementKind
from pipelines.page.stored import plain_text
from pipelines.text.languages import ENGLISH, say


class SummaryFilter:
    """Passes the claims that hold on to `write`, below `quoted`, the text that quotes; `checked` are those claims.

    What stands before them is in `language`.
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
        """Say what of `pieces` is certain to hold."""
        for piece in pieces:
            await self._cited.feed([piece])
            if isinstance(piece, Statement):
                self._settle(self._cited.checked[-1])

    async def close(self) -> None:
        """Drop what leads to nothing, as no more comes."""

    def _hold(self, text: str) -> None:
        self._held += text

    def _settle(self, one: CheckedStatement) -> None:
        is_code = one.statement.kind is StatementKind.CODE
        if not (one.is_claim or is_code):
            return  # a lead-in waits for what it leads to
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
    """Return the words of a text without its marks."""
    return " ".join("".join(sign if sign.isalnum() else " " for sign in plain_text(text).casefold()).split())
