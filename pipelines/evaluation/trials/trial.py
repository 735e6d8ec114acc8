"""Tries a language model on a collection: asks it about known sections, and about other things.

It answers as the service would have it write; questions about other things reach it with passages, which the service
would mostly prevent. Knows engines; no command line.
"""

import asyncio
import contextlib
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipelines.answering.engine import QueryEngine
from pipelines.answering.factory import make_engine, make_llm, make_retriever
from pipelines.answering.retrieval.retriever import Retriever
from pipelines.answering.settings import AgentSettings, AnswerSettings
from pipelines.answering.settings.names import change
from pipelines.answering.settings.steps import RouterSettings
from pipelines.answering.synthesis.modes import CONTEXT_ONLY
from pipelines.evaluation.dataset import Example
from pipelines.evaluation.trials.asked import ForeignQuestion, choose_asked, choose_foreign, places_of
from pipelines.evaluation.trials.recommendation import TrialScores
from pipelines.llm.errors import LLMEmpty
from pipelines.records import WRITTEN, Answer, Message
from pipelines.store import Store
from pipelines.text.progress import Passing, Progress

PATIENCE_S = 60.0  # a first question builds BM25
GREETING_NUMBERS, GREETING_TOKENS = 40, 8  # what a model reads before the first question, and writes


@dataclass(frozen=True, slots=True)
class TrialQuestions:
    """What each model is asked, and of how many questions the quotations cite the right section."""

    asked: Sequence[Example]
    foreign: Sequence[ForeignQuestion]
    quoted: int


class ModelTrialRunner:
    """Tries models on a collection; `questions` are chosen once, so that models compare."""

    def __init__(self, settings: AnswerSettings, retriever: Retriever, collection: str) -> None:
        self._settings, self._retriever, self._collection = settings, retriever, collection

    def choose(self, store: Store, most: int) -> TrialQuestions:
        """Return what to ask. Raises TooFewQuestions, NoLiveIndex and StoreUnavailable."""

        async def choose() -> TrialQuestions:
            quoting = self._engine(None)
            asked = await choose_asked(store, quoting, self._collection, most)
            answers = [await quoting.aquery(one.question, collection=self._collection) for one in asked]
            quoted = sum(_cites(*pair, supported=False) for pair in zip(asked, answers, strict=True))
            return TrialQuestions(asked, await choose_foreign(quoting, self._collection, most // 2), quoted)

        return asyncio.run(choose())

    def try_model(self, agent: AgentSettings, questions: TrialQuestions, progress: Progress) -> TrialScores:
        """Ask a model all questions, and return what was counted. Raises LLMFailed if it does not answer at all."""
        return asyncio.run(self._try(agent, questions, progress))

    async def _try(self, agent: AgentSettings, questions: TrialQuestions, progress: Progress) -> TrialScores:
        await _greet(agent)
        engine, counting = self._engine(agent), TrialCount(agent, questions, progress)
        for example in questions.asked:
            began = time.perf_counter()
            answer = await engine.aquery(example.question, collection=self._collection)
            counting.count_asked(example, answer, time.perf_counter() - began)
        for foreign in questions.foreign:
            given = {"mode": CONTEXT_ONLY, "context": foreign.passages}
            answer = await engine.aquery(foreign.question, collection=self._collection, **given)
            counting.count_foreign(answer)
        return counting.scores()

    def _engine(self, agent: AgentSettings | None) -> QueryEngine:
        """Return the engine that quotes, or that asks one model; no verified answer stands before either."""
        alone = {
            "agents": [agent.model_copy(update={"form": WRITTEN})] if agent else [],
            "llm.model": "",
            "llm.off": agent is None,
            "router": RouterSettings(),
            "rewriting.agent": "",
            "verified.enabled": False,
        }
        return make_engine(change(self._settings, alone), self._retriever)


class TrialCount:
    """Counts the answers of one model, and tells how far it is."""

    def __init__(self, agent: AgentSettings, questions: TrialQuestions, progress: Progress) -> None:
        self._agent, self._questions, self._progress = agent, questions, progress
        self._done = self._answered = self._cited = self._claims = self._supported = self._refused = self._failed = 0
        self._words, self._seconds = 0, 0.0

    def count_asked(self, example: Example, answer: Answer, seconds: float) -> None:
        """Count the answer to a question with a known section, which took so long."""
        if self._wrote(answer):
            self._answered += 1
            self._cited += _cites(example, answer, supported=True)
            self._claims += answer.claims.total
            self._supported += answer.claims.supported
            self._words += len(answer.text.split())
            self._seconds += seconds

    def count_foreign(self, answer: Answer) -> None:
        """Count the answer to a question about other things."""
        self._refused += not self._wrote(answer)

    def scores(self) -> TrialScores:
        """Return what was counted."""
        return TrialScores(
            asked=len(self._questions.asked),
            answered=self._answered,
            cited=self._cited,
            quoted=self._questions.quoted,
            claims=self._claims,
            supported=self._supported,
            foreign=len(self._questions.foreign),
            refused=self._refused,
            words_s=round(self._words / self._seconds, 1) if self._seconds else 0.0,
            failed=self._failed,
        )

    def _wrote(self, answer: Answer) -> bool:
        """Return whether the model wrote the answer, and claims something in it."""
        self._done += 1
        self._failed += f"llm:{self._agent.name}" in answer.degraded
        of = len(self._questions.asked) + len(self._questions.foreign)
        self._progress(Passing(f"{self._agent.model}: {self._done} of {of} questions"))
        return answer.known and answer.agent == self._agent.name and answer.claims.total > 0


@contextlib.contextmanager
def open_trial(store: Store, settings: AnswerSettings, collection: str) -> Iterator[ModelTrialRunner]:
    """Yield what tries models on a collection, its index loaded. Raises NoLiveIndex."""
    patient = change(settings, {"retrieval.patience_s": PATIENCE_S})
    with contextlib.closing(make_retriever(patient, store)) as retriever:
        retriever.prepare(collection)
        yield ModelTrialRunner(patient, retriever, collection)


async def _greet(agent: AgentSettings) -> None:
    """Ask for a word, so that a model that is not there fails at once; one that says nothing may. Raises LLMFailed.

    What it reads is in no cache and tells how fast it reads: the passages of the first question are cut to that.
    """
    llm = make_llm(agent)
    numbers = random.SystemRandom().sample(range(100, 1_000), GREETING_NUMBERS)
    greeting = f"{' '.join(map(str, numbers))}\n\nReply with one word: ready."
    try:
        with contextlib.suppress(LLMEmpty):
            async for _ in llm.stream([Message("user", greeting)], max_tokens=GREETING_TOKENS):
                pass
    finally:
        await llm.close()


def _cites(example: Example, answer: Answer, *, supported: bool) -> bool:
    """Return whether a citation, one that holds if `supported`, lies in the section that answers."""
    cited = {citation.source for citation in answer.citations if citation.supported or not supported}
    return not places_of([hit for hit in answer.hits if hit.source in cited]).isdisjoint(example.sources)
