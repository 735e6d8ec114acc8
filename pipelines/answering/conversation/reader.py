"""Reads a question: what its reader means by it, with the turns before it and the page that is open."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pipelines.answering import optional
from pipelines.answering.conversation.followup import complete
from pipelines.answering.conversation.open_page import OpenPage, open_page
from pipelines.answering.conversation.parts import parts_of
from pipelines.answering.conversation.rewriting import Rewriter
from pipelines.answering.conversation.smalltalk import SmallTalk, find_smalltalk, strip_smalltalk
from pipelines.answering.question import Question, check_length
from pipelines.answering.retrieval.interface import AsyncRetriever, load
from pipelines.answering.synthesis.modes import NO_TEXT, uses_retrieval
from pipelines.answering.trace import Trace
from pipelines.llm.session import Status
from pipelines.records import Message
from pipelines.text.detection import find_language, is_foreign
from pipelines.text.languages import choose_language

PAGE = "page"  # the step, and what stands in `degraded` where it failed


@dataclass(frozen=True, slots=True)
class Reading:
    """What a reader means by a question, which is answered in `mode`.

    `asked` is the question as its reader would know it again; `wordings` are how it reads without the turns before it
    and without the `page`, the one to answer first; `about` is what a follow-up goes on about, `unclear` what it refers
    to and no turn names. A question that is only a greeting or thanks is `smalltalk`.
    """

    question: Question
    mode: str
    asked: str
    wordings: tuple[str, ...]
    page: OpenPage
    about: str = ""
    unclear: str = ""
    smalltalk: SmallTalk | None = None

    @property
    def standalone(self) -> str:
        """The question as it reads alone."""
        return self.wordings[0]

    @property
    def parts(self) -> tuple[str, ...]:
        """The two questions that it asks at once; none if it asks a single one, or about the open page."""
        return () if self.page.focus else parts_of(self.standalone)

    @property
    def language(self) -> str:
        """The language of what the answer says beside its text: the question's; where that is unknown, the reader's."""
        return choose_language(find_language(self.question.question), self.question.language)

    @property
    def may_be_given(self) -> bool:
        """Whether an answer that is there already may be given to it: one with text, to what it says."""
        return uses_retrieval(self.mode) and self.mode != NO_TEXT


class QuestionReader:
    """Reads questions of at most `longest` characters.

    `rewriter` is asked about follow-ups that the rules do not complete; it may be None.
    """

    def __init__(self, retriever: AsyncRetriever, rewriter: Rewriter | None, longest: int) -> None:
        self._retriever, self._rewriter, self._longest = retriever, rewriter, longest

    async def read(self, question: Question, mode: str, trace: Trace, tell: Callable[[Status], None]) -> Reading:
        """Return what is meant; `tell` hears that the index is being loaded.

        Raises QuestionTooLong, and as `AsyncRetriever.aload`.
        """
        plain = self.read_alone(question, mode)
        if plain.may_be_given and (smalltalk := find_smalltalk(question.question)):
            return Reading(question, mode, question.question, (question.question,), plain.page, smalltalk=smalltalk)
        if not uses_retrieval(mode):
            return await self._with_history(plain, trace)
        await load(self._retriever, question.collection, tell)
        return await self._with_history(await self.with_page(plain, trace), trace)

    def read_alone(self, question: Question, mode: str = NO_TEXT) -> Reading:
        """Return what is meant without any page and turn before it. Raises QuestionTooLong."""
        check_length(question.question, self._longest)
        asked = strip_smalltalk(question.question)
        return Reading(question, mode, asked, (asked,), OpenPage(asked))

    async def with_page(self, reading: Reading, trace: Trace) -> Reading:
        """Return what is meant where its reader has a page open, if the index holds that page."""
        question, asked = reading.question, reading.asked
        if not question.page:
            return reading
        looking = self._retriever.aplace(question.page, question.collection)
        place = await optional.run(trace, PAGE, looking, None)
        page = open_page(asked, place, alone=not question.history, meant=question.about_page)
        return Reading(question, reading.mode, asked, (page.question,), page)

    async def _with_history(self, reading: Reading, trace: Trace) -> Reading:
        """Return what is meant after the turns before it: as the rules complete it, else as a model does.

        The rules come first, as they cost nothing and a small model does no better
        (benchmarks/results/follow-up-questions.md); the model is asked where they have no form, and for questions that
        are not in English.
        """
        question, page, said = reading.question, reading.page, reading.standalone
        if not question.history:
            return Reading(question, reading.mode, reading.asked if page.focus else said, (said,), page)
        followup = complete(said, asked_before(question.history))
        asked, unclear = said, followup.unclear
        wordings: tuple[str, ...] = (followup.question,)
        if self._rewriter is not None and (not followup.by_form or is_foreign(said)):
            with trace.step("condense"):
                rewrite = await self._rewriter.condense(said, question.history)
            rewrite.record(trace)
            if not rewrite.failed:
                asked, unclear = rewrite.question, ""
                wordings = (asked, followup.question)
        asked = reading.asked if page.focus else asked
        return Reading(question, reading.mode, asked, wordings, page, followup.about, unclear)


def asked_before(history: Sequence[Message]) -> list[str]:
    """Return what the reader asked in the turns before, without small talk."""
    said = [turn.content for turn in history if turn.role == "user" and turn.content.strip()]
    return [strip_smalltalk(message) for message in said if not find_smalltalk(message)]
