"""Asks an engine the questions of a data set and scores its hits and answers.

Each question gives a row that can be stored and resumed from. Knows the engine, the metrics and a judge; knows no
database, no Ray and no command line.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from pipelines.answering.engine import QueryEngine
from pipelines.answering.synthesis.modes import CONTEXT_ONLY
from pipelines.answering.writing.agents import ExtractiveAgent
from pipelines.answering.writing.manuscript import TRUNCATED
from pipelines.evaluation.dataset import Example
from pipelines.evaluation.judging.dimensions import Dimension
from pipelines.evaluation.judging.judge import Judge
from pipelines.evaluation.metrics import HitSources, answer_metrics
from pipelines.llm.retry import gather_all
from pipelines.records import VERIFIED, Answer, Hit, Index
from pipelines.store import EvaluatedQuestion, Judgement

log = logging.getLogger(__name__)

# After this many failures of a part (a model's timeout, a judge's bad reply) a question keeps its incomplete row.
ATTEMPTS = 3
# The prefix in `degraded` before the name of an agent that failed.
FAILED_AGENT = "llm:"

KeepRow = Callable[[EvaluatedQuestion], None]
ReadPassages = Callable[[Sequence[str]], Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class EvaluationPlan:
    """The measurements: the hits at each of `ks`, and the answers too if `answers`.

    With `component`, each question is also answered from its reference sections (mode context_only), which shows the
    cost of retrieval. `judge` names the agent whose model judges answers in `dimensions` ("": none). `seed` is the
    random seed of the intervals.
    """

    collection: str
    ks: tuple[int, ...]
    answers: bool = False
    seed: int = 0
    component: bool = False
    judge: str = ""
    dimensions: tuple[str | Dimension, ...] = ("quality",)


class IndexChanged(RuntimeError):
    """Another index, or another revision of it, went live while questions were being asked."""

    def __init__(self, measured: Index, index: int, revision: int) -> None:
        super().__init__(
            f"index {measured.id} revision {measured.revision} is measured, but index {index} revision {revision} "
            "answered: it was published in the meantime, evaluate again"
        )


class Evaluator:
    """Asks `engine` questions, `at_once` of them at a time.

    `index` is the index under test: a question answered by another index or revision becomes an error. `passages`
    returns the texts of sources that the index has; a plan with `component` needs it.
    """

    def __init__(
        self,
        engine: QueryEngine,
        plan: EvaluationPlan,
        *,
        index: Index | None = None,
        judge: Judge | None = None,
        passages: ReadPassages | None = None,
        at_once: int = 1,
    ) -> None:
        self._engine, self._plan, self._index, self._judge, self._at_once = engine, plan, index, judge, at_once
        self._passages = passages if plan.component else None

    def ask(self, examples: Sequence[Example], keep: KeepRow | None = None) -> list[EvaluatedQuestion]:
        """Run `aask` to completion."""
        return asyncio.run(self.aask(examples, keep))

    async def aask(self, examples: Sequence[Example], keep: KeepRow | None = None) -> list[EvaluatedQuestion]:
        """Return one row per example, in order; `keep` receives each row as soon as it is made, in a thread.

        A question that fails gives a row with its error. Raises anything that `keep` raises.
        """

        async def one(example: Example) -> EvaluatedQuestion:
            row = await self._row(example)
            if keep:
                await asyncio.to_thread(keep, row)
            return row

        return await gather_all(one, examples, self._at_once)

    async def _row(self, example: Example) -> EvaluatedQuestion:
        row = EvaluatedQuestion(example.id, example.question, example.sources)
        try:
            return await self._measure(example, row)
        except Exception as error:
            log.warning("no result for %r: %s", example.question[:80], error)
            return replace(row, error=f"{type(error).__name__}: {error}")

    async def _measure(self, example: Example, row: EvaluatedQuestion) -> EvaluatedQuestion:
        found = await self._engine.asearch(example.question, collection=self._plan.collection, k=max(self._plan.ks))
        self._check_index(found.index.id, found.revision)
        row = replace(row, hits=hit_rows(found.hits), degraded=found.degraded, timings=found.timings)
        if not self._plan.answers:
            return row
        answer = await self._engine.aquery(example.question, collection=self._plan.collection)
        if answer.index:  # a mode without retrieval uses no index
            self._check_index(answer.index, answer.revision)
        kept, scores = await self._score(example, answer)
        row = replace(row, degraded=_missing_parts(row, answer), timings=answer.timings, answer=kept, scores=scores)
        context = await self._context(example)
        return await self._add_component(example, row, context) if context else row

    async def _add_component(
        self, example: Example, row: EvaluatedQuestion, context: tuple[str, ...]
    ) -> EvaluatedQuestion:
        """Add the answer from `context` and its scores to the end-to-end ones."""
        answer = await self._engine.aquery(
            example.question, collection=self._plan.collection, mode=CONTEXT_ONLY, context=context
        )
        kept, scores = await self._score(example, answer)
        return replace(
            row,
            degraded=_missing_parts(row, answer),
            answer={**(row.answer or {}), CONTEXT_ONLY: kept},
            scores={**row.scores, **{f"{CONTEXT_ONLY}_{name}": score for name, score in scores.items()}},
        )

    async def _context(self, example: Example) -> tuple[str, ...]:
        """Return the texts of the reference sections; none without `component` or if the index has none of them."""
        if self._passages is None:
            return ()
        return tuple((await asyncio.to_thread(self._passages, example.sources)).values())

    async def _score(self, example: Example, answer: Answer) -> tuple[dict[str, Any], dict[str, float | None]]:
        """Return an answer in the form stored in its row, and its scores."""
        judgements = await self._judge.judge(example, answer) if self._judge and example.answerable else {}
        kept = {**_answer_row(answer), "judgements": {name: _judgement_row(one) for name, one in judgements.items()}}
        by_judge = {name: one.score for name, one in judgements.items() if one.judgeable}
        return kept, await self._metric_scores(example, answer) | by_judge

    def _check_index(self, index: int, revision: int) -> None:
        if self._index and (index, revision) != (self._index.id, self._index.revision):
            raise IndexChanged(self._index, index, revision)

    async def _metric_scores(self, example: Example, answer: Answer) -> dict[str, float | None]:
        """Return the score of each answer metric that applies."""
        loop = asyncio.get_running_loop()

        def embed(texts: Sequence[str]) -> np.ndarray:
            embedding = self._engine.aembed(texts, self._plan.collection)
            return asyncio.run_coroutine_threadsafe(embedding, loop).result()

        def scores() -> dict[str, float | None]:
            found: dict[str, float | None] = {}
            referenced = example.answerable and example.answer is not None
            for metric in answer_metrics():
                if metric.of_answer and (referenced or not metric.needs_reference):
                    score = metric.of_answer(example, answer, embed)
                    found |= {} if score is None else {metric.name: score}
            return found

        return await asyncio.to_thread(scores)


# ------------------------------------------------------------------------------------------- rows


def is_complete(row: EvaluatedQuestion) -> bool:
    """Return whether nothing failed and no part was missing; other rows are asked again.

    An answer that was cut off by a model's token limit is complete: it would be cut off again.
    """
    return row.error is None and set(row.degraded) <= {TRUNCATED} and None not in row.scores.values()


def is_settled(row: EvaluatedQuestion) -> bool:
    """Return whether a row is complete, or has had so many attempts without an error that another one is pointless."""
    return is_complete(row) or (row.error is None and row.attempts >= ATTEMPTS)


def failed_agents(answer: Mapping[str, Any]) -> list[str]:
    """Return the agents that failed on the question of an answer, so that another agent answered."""
    return [part.removeprefix(FAILED_AGENT) for part in answer.get("degraded", ()) if part.startswith(FAILED_AGENT)]


def has_reply(answer: Mapping[str, Any]) -> bool:
    """Return whether a language model replied to the question, even if only that it finds no answer."""
    without_model = answer.get("agent") in (ExtractiveAgent.name, VERIFIED)
    return not without_model or bool(answer["calls"] and not failed_agents(answer))


def hit_rows(hits: Iterable[Hit]) -> list[dict[str, Any]]:
    """Return hits in the form stored in a row."""
    hits = list(hits)
    found = HitSources.of(hits)
    return [
        {"sources": list(sources), "anchors": list(anchors), "title": hit.title, "score": hit.score}
        for hit, sources, anchors in zip(hits, found.sources, found.anchors, strict=True)
    ]


def hit_sources(row: EvaluatedQuestion) -> HitSources:
    """Return the sources of a row's hits."""
    return HitSources(tuple(tuple(h["sources"]) for h in row.hits), tuple(tuple(h["anchors"]) for h in row.hits))


def _missing_parts(row: EvaluatedQuestion, answer: Answer) -> tuple[str, ...]:
    """Return the parts that were missing in the row or the answer."""
    return tuple(dict.fromkeys((*row.degraded, *answer.degraded)))


def _answer_row(answer: Answer) -> dict[str, Any]:
    return {
        **{name: getattr(answer, name) for name in ("text", "agent", "known", "confidence")},
        "route": answer.route.why if answer.route else "",
        "claims": asdict(answer.claims),
        "degraded": list(answer.degraded),
        "citations": [asdict(citation) for citation in answer.citations],
        "sources": [hit.source for hit in answer.hits],
        **asdict(answer.usage),
    }


def _judgement_row(judgement: Judgement) -> dict[str, Any]:
    told = {name: getattr(judgement, name) for name in ("score", "reasoning", "error")}
    return told | {"cost": judgement.usage.cost}
