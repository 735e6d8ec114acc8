"""Interprets a question, given the turns before it and the page that is open."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pipelines.answering.conversation.followup import complete
from pipelines.answering.conversation.open_page import OpenPage, open_page
from pipelines.answering.conversation.rewriting import Rewriter
from pipelines.answering.conversation.smalltalk import SmallTalk, find_smalltalk, strip_smalltalk
from pipelines.answering.conversation.two_questions import questions_in
from pipelines.answering.question import Question, check_length
from pipelines.answering.retrieval.interface import AsyncRetriever, load
from pipelines.answering.synthesis.modes import NO_TEXT, uses_retrieval
from pipelines.answering.trace import Trace
from pipelines.llm.session import Status
from pipelines.records import Message
from pipelines.text.detection import find_language, is_foreign
from pipelines.text.languages import choose_language

PAGE = "page"  # the name of the step, also in `degraded` if it failed


@dataclass(frozen=True, slots=True)
class Reading:
    """The interpretation of a question, to be answered in `mode`.

    `asked` is the question in a form that its reader recognizes. `wordings` are self-contained versions of it, without
    references to previous turns or to the `page`; the first is the main one. `about` is the subject that a follow-up
    continues. `unclear` has the words that refer to something no turn names. `smalltalk` is set if the message is only
    a greeting or thanks.
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
        """The self-contained question."""
        return self.wordings[0]

    @property
    def parts(self) -> tuple[str, ...]:
        """The two questions in it; empty if it asks only one, or is about the open page."""
        return () if self.page.focus else questions_in(self.standalone)

    @property
    def language(self) -> str:
        """The language of notes and replies around the answer: the question's if known, otherwise the reader's."""
        return choose_language(find_language(self.question.question), self.question.language)

    @property
    def may_be_given(self) -> bool:
        """Whether an existing answer may be given: the mode retrieves and writes text."""
        return uses_retrieval(self.mode) and self.mode != NO_TEXT


class QuestionReader:
    """Interprets questions of at most `longest` characters.

    `rewriter` completes follow-ups that the rules can't; it may be None.
    """

    def __init__(self, retriever: AsyncRetriever, rewriter: Rewriter | None, longest: int) -> None:
        self._retriever, self._rewriter, self._longest = retriever, rewriter, longest

    async def read(self, question: Question, mode: str, trace: Trace, tell: Callable[[Status], None]) -> Reading:
        """Return the interpretation of a question; `tell` receives a Status while the index is loading.

        Raises QuestionTooLong and the errors of `AsyncRetriever.aload`.
        """
        plain = self.read_alone(question, mode)
        if plain.may_be_given and (smalltalk := find_smalltalk(question.question)):
            return Reading(question, mode, question.question, (question.question,), plain.page, smalltalk=smalltalk)
        if not uses_retrieval(mode):
            return await self._with_history(plain, trace)
        await load(self._retriever, question.collection, tell)
        return await self._with_history(await self.with_page(plain, trace), trace)

    def read_alone(self, question: Question, mode: str = NO_TEXT) -> Reading:
        """Return the interpretation without a page or previous turns. Raises QuestionTooLong."""
        check_length(question.question, self._longest)
        asked = strip_smalltalk(question.question)
        return Reading(question, mode, asked, (asked,), OpenPage(asked))

    async def with_page(self, reading: Reading, trace: Trace) -> Reading:
        """Return the interpretation given the reader's open page, if the index contains that page."""
        question, asked = reading.question, reading.asked
        if not question.page:
            return reading
        looking = self._retriever.aplace(question.page, question.collection)
        place = await trace.attempt(PAGE, looking, None)
        page = open_page(asked, place, alone=not question.history, meant=question.about_page)
        return Reading(question, reading.mode, asked, (page.question,), page)

    async def _with_history(self, reading: Reading, trace: Trace) -> Reading:
        """Return the interpretation given the previous turns: completed by the rules, or else by a model.

        The rules come first because they cost nothing and a small model does no better
        (benchmarks/results/follow-up-questions.md). The model completes questions that have no known form, and
        questions that are not in English.
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
    """Return the reader's messages from the previous turns, without small talk."""
    said = [turn.content for turn in history if turn.role == "user" and turn.content.strip()]
    return [strip_smalltalk(message) for message in said if not find_smalltalk(message)]
