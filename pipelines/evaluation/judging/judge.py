"""Judges answers with a language model: scores from 1 to 5, with their reasoning.

Knows prompts, a model and a cache; does not know how the answers were made. A failed judgement is an error with its
reason and never a score, because 0 or NaN would count as one.
"""

import asyncio
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pipelines.evaluation.dataset import Example
from pipelines.evaluation.judging.dimensions import REMINDER, SCHEMA, SYSTEM, Dimension, NotJudgeable, dimension_of
from pipelines.evaluation.judging.verdict import parse_verdict
from pipelines.llm.retry import TRIES, ConcurrencyLimit, ask
from pipelines.llm.session import ChatModel
from pipelines.records import Answer, digest
from pipelines.store.evaluations import Evaluations, Judgement

log = logging.getLogger(__name__)


class Judge:
    """Judges answers with `llm` in `dimensions`, with at most `at_once` concurrent calls; works from any event loop.

    A judgement with the same dimension, prompt, model, question, answer and reference or context is taken from `cache`.
    Errors are not cached. `warnings` has notes that a reader of the scores should know. Raises BadDimension.
    """

    def __init__(
        self,
        llm: ChatModel,
        dimensions: Sequence[str | Dimension] = ("quality",),
        cache: Evaluations | None = None,
        at_once: int = 4,
        tries: int = TRIES,
    ) -> None:
        self.llm, self.dimensions = llm, tuple(map(dimension_of, dimensions))
        self.warnings: list[str] = []
        self._cache, self._slots, self._tries = cache, ConcurrencyLimit(at_once), tries

    @property
    def identity(self) -> str:
        """Identifies everything except the answers that scores depend on: the model, the dimensions, their prompts."""
        prompts = digest(SYSTEM, *(part for d in self.dimensions for part in (d.name, d.template.text)))
        return f"{self.llm.model}: {', '.join(d.name for d in self.dimensions)} ({prompts[:8]})"

    async def judge(self, example: Example, answer: Answer) -> Mapping[str, Judgement]:
        """Return the judgement of `answer` in each dimension, by name. Raises only errors of the cache."""
        self._warn_of_own_answer(answer)
        found = await asyncio.gather(*(self._judge(dimension, example, answer) for dimension in self.dimensions))
        return {judgement.dimension: judgement for judgement in found}

    async def _judge(self, dimension: Dimension, example: Example, answer: Answer) -> Judgement:
        try:
            prompt = dimension.prompt(example, answer)
        except NotJudgeable as error:
            return Judgement(dimension.name, None, error=str(error), model=self.llm.model)
        hash = digest("judgement", dimension.name, self.llm.model, SYSTEM, prompt)
        async with self._slots.free():
            return await self._load(hash) or await self._ask(dimension, prompt, hash)

    async def _ask(self, dimension: Dimension, prompt: str, hash: str) -> Judgement:
        told = {"system": SYSTEM, "reminder": REMINDER, "schema": SCHEMA}
        reply = await ask(self.llm, prompt, parse_verdict, **told, tries=self._tries)
        judgement = Judgement(dimension.name, None, "", reply.error, reply.usage, self.llm.model, hash)
        if reply.value is not None:
            judgement = replace(judgement, score=reply.value.score, reasoning=reply.value.reasoning)
            await self._save(judgement)
        return judgement

    async def _load(self, hash: str) -> Judgement | None:
        kept = (await asyncio.to_thread(self._cache.get_judgements, [hash])).get(hash) if self._cache else None
        if kept is None or kept.score is None:
            return None
        return replace(kept, score=int(kept.score)) if float(kept.score).is_integer() else kept

    async def _save(self, judgement: Judgement) -> None:
        if self._cache:
            await asyncio.to_thread(self._cache.save_judgements, [judgement])

    def _warn_of_own_answer(self, answer: Answer) -> None:
        own = next((e.model for e in answer.exchanges if same_model(e.model, self.llm.model)), None)
        warning = f"{own} judges its own answers: models rate themselves too high, choose another judge"
        if own and warning not in self.warnings:
            self.warnings.append(warning)
            log.warning(warning)


def same_model(one: str, other: str) -> bool:
    """Return whether two names mean the same model, ignoring provider prefix, date and case."""
    return _bare(one) == _bare(other)


def _bare(name: str) -> str:
    return re.sub(r"[-@](?:\d{4}-?\d{2}-?\d{2}|\d{4}|latest)$", "", name.lower().rsplit("/", 1)[-1])
