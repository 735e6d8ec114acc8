"""Tries a language model on a collection, with questions about known sections and off-topic ones.

The model answers as it would in the service. Off-topic questions reach it with passages, which the service would
usually prevent. Knows engines; knows no command line.
"""

import asyncio
import contextlib
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

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
from pipelines.records import RESULTS, WRITTEN, Answer, Message
from pipelines.store import Store
from pipelines.text.counts import counted
from pipelines.text.progress import Passing, Progress, describe_seconds

PATIENCE_S = 60.0  # the first question builds BM25
GREETING_NUMBERS, GREETING_TOKENS = 40, 8  # size of the prompt and the reply before the first question


@dataclass(frozen=True, slots=True)
class TrialQuestions:
    """The questions for each model, and for how many of them the quotations cite the right section."""

    asked: Sequence[Example]
    foreign: Sequence[ForeignQuestion]
    quoted: int


class ModelTrialRunner:
    """Tries models on a collection; `questions` are chosen once, so that models are comparable."""

    def __init__(self, settings: AnswerSettings, retriever: Retriever, collection: str) -> None:
        self._settings, self._retriever, self._collection = settings, retriever, collection

    def choose(self, store: Store, most: int, progress: Progress) -> TrialQuestions:
        """Return the questions to ask. Raises TooFewQuestions, NoLiveIndex and StoreUnavailable."""

        async def choose() -> TrialQuestions:
            quoting = self._engine(None)
            asked = await choose_asked(store, quoting, self._collection, most, progress)
            answers = [await quoting.aquery(one.question, collection=self._collection) for one in asked]
            quoted = sum(_cites(*pair, supported=False) for pair in zip(asked, answers, strict=True))
            return TrialQuestions(asked, await choose_foreign(quoting, self._collection, most // 2), quoted)

        return asyncio.run(choose())

    def try_model(self, agent: AgentSettings, questions: TrialQuestions, progress: Progress) -> TrialScores:
        """Ask a model all questions, and return the counts. Raises LLMFailed if it does not answer at all."""
        return asyncio.run(self._try(agent, questions, progress))

    async def _try(self, agent: AgentSettings, questions: TrialQuestions, progress: Progress) -> TrialScores:
        await _greet(agent)
        engine, answers, seconds = self._engine(agent), list[Answer](), list[float]()
        given: list[tuple[str, dict[str, Any]]] = [(one.question, {}) for one in questions.asked]
        given += [(one.question, {"mode": CONTEXT_ONLY, "context": one.passages}) for one in questions.foreign]
        for question, more in given:
            began = time.perf_counter()
            answers.append(await engine.aquery(question, collection=self._collection, **more))
            seconds.append(time.perf_counter() - began)
            progress(Passing(f"{agent.model}: {describe_trial(seconds, len(given))}"))
        return count_trial(agent.name, questions, answers, seconds)

    def _engine(self, agent: AgentSettings | None) -> QueryEngine:
        """Return an engine that quotes, or that asks one model; neither uses verified answers."""
        alone = {
            "agents": [agent.model_copy(update={"form": WRITTEN})] if agent else [],
            "llm.model": "",
            "llm.off": agent is None,
            "router": RouterSettings(),
            "rewriting.agent": "",
            "verified.enabled": False,
        }
        return make_engine(change(self._settings, alone), self._retriever)


def describe_trial(seconds: Sequence[float], questions: int) -> str:
    """Return how many of the questions were asked, given the seconds of each, and about how long the rest takes."""
    left = questions - len(seconds)
    ends = f", about {describe_seconds(left * sum(seconds) / len(seconds))} left" if left else ""
    return f"{len(seconds)} of {counted(questions, 'question')}{ends}"


def count_trial(
    agent: str, questions: TrialQuestions, answers: Sequence[Answer], seconds: Sequence[float]
) -> TrialScores:
    """Return the scores of `agent` from its answers: first to questions with known sections, then to off-topic ones."""
    wrote = [answer.known and answer.agent == agent and answer.claims.total > 0 for answer in answers]
    failed = [f"llm:{agent}" in answer.degraded for answer in answers]
    foreign = list(zip(wrote, failed, strict=True))[len(questions.asked) :]
    asked = zip(questions.asked, answers, seconds, wrote, strict=False)
    written = [(example, answer, took) for example, answer, took, is_own in asked if is_own]
    total = sum(took for _, _, took in written)
    return TrialScores(
        asked=len(questions.asked),
        answered=len(written),
        cited=sum(_cites(example, answer, supported=True) for example, answer, _ in written),
        quoted=questions.quoted,
        claims=sum(answer.claims.total for _, answer, _ in written),
        supported=sum(answer.claims.supported for _, answer, _ in written),
        foreign=len(questions.foreign),
        refused=sum(not (is_own or is_failed) for is_own, is_failed in foreign),
        words_s=round(sum(len(answer.text.split()) for _, answer, _ in written) / total, 1) if total else 0.0,
        failed=sum(failed),
    )


@contextlib.contextmanager
def open_trial(store: Store, settings: AnswerSettings, collection: str) -> Iterator[ModelTrialRunner]:
    """Yield a runner that tries models on a collection, with its index loaded. Raises NoLiveIndex."""
    patient = change(settings, {"retrieval.patience_s": PATIENCE_S})
    with contextlib.closing(make_retriever(patient, store)) as retriever:
        retriever.prepare(collection)
        yield ModelTrialRunner(patient, retriever, collection)


async def _greet(agent: AgentSettings) -> None:
    """Ask for one word, so that an unavailable model fails at once; an empty reply is fine. Raises LLMFailed.

    The prompt is in no cache, so it measures the reading speed, which limits the passages of the first question.
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
    """Return whether a citation, a supported one if `supported`, is in the section that answers.

    Of results only the first one counts, because a model is asked for one answer.
    """
    citations = answer.citations[:1] if answer.form == RESULTS else answer.citations
    cited = {citation.source for citation in citations if citation.supported or not supported}
    return not places_of([hit for hit in answer.hits if hit.source in cited]).isdisjoint(example.sources)
