"""One process of an evaluation: an engine whose rows go to the database.

Knows the store and the factory of engines; does not know how many processes there are.
"""

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from pipelines.answering.factory import make_engine, make_llm, make_retriever
from pipelines.answering.hits import heading
from pipelines.answering.settings import AnswerSettings, all_agents, change
from pipelines.evaluation.dataset import Example, page_of
from pipelines.evaluation.evaluator import EvaluationPlan, Evaluator, failed_agents, has_reply
from pipelines.evaluation.judging.judge import Judge
from pipelines.evaluation.questions.sections import section_passages
from pipelines.records import Index
from pipelines.store import DATABASE_PATIENCE_S, EvaluatedQuestion, Store
from pipelines.text.counts import counted
from pipelines.text.progress import describe_seconds

# An evaluation waits for BM25, so that it never measures answers made without it.
PATIENCE_S = 60.0
PROGRESS_S = 5.0
# Each failed question may have waited for a model's first token, for a minute or more.
GIVE_UP = 5


@dataclass(frozen=True, slots=True)
class EvaluationJob:
    """Everything that an asking process needs; small, because Ray copies it into each actor.

    With `gives_up` it ends if the models fail for the first questions. It is off if these failed before and others did
    not.
    """

    database_url: str
    settings: AnswerSettings
    plan: EvaluationPlan
    index: Index
    evaluation: int
    fingerprint: str
    at_once: int = 1
    gives_up: bool = True


class ModelAway(RuntimeError):
    """No language model answered, so the answers come from the extractive agent and measure no model."""

    def __init__(self, rows: Sequence[EvaluatedQuestion]) -> None:
        answer = next(row.answer for row in rows if row.answer)
        agents, why = ", ".join(failed_agents(answer)), str(answer.get("route", "")).rpartition("failed: ")[2]
        super().__init__(
            f"no language model answered: {agents} failed for all {counted(len(rows), 'question')}, the first time "
            f"with: {why or 'no reason given'}. Mend the endpoint (`raydex doctor` checks it) and run the command "
            "again, or measure the extractive answers without a model"
        )


def check_models(rows: Iterable[EvaluatedQuestion]) -> None:
    """Raise ModelAway if agents failed for some rows and no language model replied to any."""
    answered = [row for row in rows if row.answer]
    failed = [row for row in answered if failed_agents(row.answer or {})]
    if failed and not any(has_reply(row.answer or {}) for row in answered):
        raise ModelAway(failed)


class UnknownJudge(LookupError):
    """The agent chosen as judge is not configured."""


def make_judge(settings: AnswerSettings, plan: EvaluationPlan, store: Store) -> Judge | None:
    """Return a judge with the model of the agent `plan.judge`; None if there is no such plan.

    Raises UnknownJudge and BadDimension.
    """
    if not plan.judge:
        return None
    agents = {agent.name: agent for agent in all_agents(settings)}
    if plan.judge not in agents:
        names = ", ".join(agents) or "none"
        raise UnknownJudge(f"there is no agent {plan.judge!r} to judge; configured are: {names}")
    return Judge(make_llm(agents[plan.judge]), plan.dimensions, store)


class StoreOnceLive(Store):
    """The store as its readers will see it once `index`, a candidate, is live."""

    def __init__(self, url: str, index: Index, retry_s: float) -> None:
        super().__init__(url, retry_s=retry_s)
        self._once_live = index

    def live_index(self, collection: str) -> Index:
        return self._once_live if collection == self._once_live.collection else super().live_index(collection)


class EvaluationWorker:
    """Asks questions and stores each row as soon as it is made, so that a kill loses only the questions in progress.

    With `gives_up` it ends with ModelAway if the agents failed for the first GIVE_UP questions that they received.
    """

    def __init__(self, store: Store, evaluation: int, evaluator: Evaluator, gives_up: bool = True) -> None:
        self._store, self._evaluation, self._evaluator = store, evaluation, evaluator
        self._watched = GIVE_UP if gives_up else 0

    def __call__(self, examples: Sequence[Example], count: Callable[[int, int], None] = lambda *_: None) -> int:
        """Ask all examples and return how many failed; `count(1, failed)` is called for each."""

        first: list[EvaluatedQuestion] = []

        def keep(row: EvaluatedQuestion) -> None:
            self._store.record_evaluated_questions(self._evaluation, [row])
            count(1, int(row.error is not None))
            if len(first) < self._watched and row.answer and (has_reply(row.answer) or failed_agents(row.answer)):
                first.append(row)
                if len(first) == self._watched:
                    check_models(first)

        return sum(row.error is not None for row in self._evaluator.ask(examples, keep))


@contextlib.contextmanager
def open_worker(job: EvaluationJob) -> Iterator[EvaluationWorker]:
    """Yield a worker with its engine, index and judge loaded."""
    settings = change(job.settings, {"retrieval.patience_s": PATIENCE_S})
    with _open_store(job) as store, contextlib.closing(make_retriever(settings, store)) as retriever:
        retriever.prepare(job.plan.collection)

        def passages(sources: Sequence[str]) -> dict[str, str]:
            chunks = store.chunks_of_pages(job.index.id, set(map(page_of, sources)))
            texts = section_passages(chunks, sources)
            return {source: f"{heading(hit)}\n\n{hit.text}" for source, hit in texts.items()}

        evaluator = Evaluator(
            make_engine(settings, retriever, store=store),
            job.plan,
            index=job.index,
            judge=make_judge(settings, job.plan, store),
            passages=passages,
            at_once=job.at_once,
        )
        yield EvaluationWorker(store, job.evaluation, evaluator, job.gives_up)


def ask_here(job: EvaluationJob, examples: Sequence[Example], progress: Callable[[str], None]) -> None:
    """Ask in this process."""
    with open_worker(job) as worker:
        worker(examples, EvaluationProgress(len(examples), progress).add)


def _open_store(job: EvaluationJob) -> Store:
    url, patience = job.database_url, DATABASE_PATIENCE_S
    is_candidate = job.index.state == "candidate"
    return StoreOnceLive(url, job.index, patience) if is_candidate else Store(url, retry_s=patience)


class EvaluationProgress:
    """Reports the progress of an evaluation every few seconds."""

    def __init__(self, total: int, progress: Callable[[str], None]) -> None:
        self._total, self._done, self._failed, self._progress = total, 0, 0, progress
        self._began = self._reported = time.perf_counter()

    def add(self, done: int, failed: int) -> None:
        """Count questions that are done, and how many of them failed."""
        self._done, self._failed = self._done + done, self._failed + failed
        now = time.perf_counter()
        if now - self._reported < PROGRESS_S or self._done >= self._total:
            return
        self._reported = now
        each = (now - self._began) / self._done
        failures = f", {self._failed:,} failed" if self._failed else ""
        pace = f"{1 / each:.1f}/s" if each < 1 else f"{describe_seconds(each)} each"
        left = describe_seconds((self._total - self._done) * each)
        self._progress(f"  {self._done:,} of {counted(self._total, 'question')}, {pace}, {left} left{failures}")
