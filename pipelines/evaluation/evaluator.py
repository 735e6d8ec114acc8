"""An engine is asked the questions of a data set; what comes back are rows that can be stored and gone on with.

Knows the engine, the metrics and a judge's one method; no database, no Ray and no command line.
"""

import asyncio
import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

import pipelines
from pipelines.answering.engine import CONTEXT_ONLY, QueryEngine
from pipelines.answering.settings import Configuration
from pipelines.evaluation.dataset import Example
from pipelines.evaluation.dataset import fingerprint as dataset_fingerprint
from pipelines.evaluation.metrics import Retrieved, similarity, supported_share, token_f1
from pipelines.records import Answer, Hit, Index, Usage, digest
from pipelines.store import EvaluatedQuestion

log = logging.getLogger(__name__)

# Settings that say where and how fast answers are made, not which.
ELSEWHERE = ("home", "collection", "patience_s", "embedding_threads")
# The files whose change may change an answer.
CODE = ("*.py", "answering/*.py", "store/chunks.py", "store/reading.*", "evaluation/run.py", "evaluation/metrics.py")


Keep = Callable[[EvaluatedQuestion], None]


class Judged(Protocol):
    """A judge's word on one dimension of an answer; without a score there is an error."""

    @property
    def score(self) -> float | None: ...

    @property
    def reasoning(self) -> str: ...

    @property
    def error(self) -> str | None: ...

    @property
    def usage(self) -> Usage: ...

    @property
    def judgeable(self) -> bool: ...


class Judge(Protocol):
    """Judges answers."""

    async def judge(self, example: Example, answer: Answer) -> Mapping[str, Judged]:
        """What it says of each dimension ("quality", …) of `answer`."""
        ...


@dataclass(frozen=True, slots=True)
class Plan:
    """What is measured: hits at each of `ks`, answers too if `answers`; `seed` of the intervals.

    `component`: beside each answer, one from the reference sections (mode context_only): what retrieval costs it.
    """

    collection: str
    ks: tuple[int, ...]
    answers: bool = False
    seed: int = 0
    component: bool = False


class Evaluation:
    """Asks `engine` questions, `at_once` of them at a time.

    `index`: the one that is measured; a question that another index or revision answered is an error. `passages` gives
    the text of each of some sources, as far as there is one; a plan with `component` needs it.
    """

    def __init__(
        self,
        engine: QueryEngine,
        plan: Plan,
        *,
        index: Index | None = None,
        judge: Judge | None = None,
        passages: Callable[[Sequence[str]], Mapping[str, str]] | None = None,
        at_once: int = 1,
    ) -> None:
        self._engine, self._plan, self._index, self._judge, self._at_once = engine, plan, index, judge, at_once
        self._passages = passages if plan.component else None

    def ask(self, examples: Sequence[Example], keep: Keep | None = None) -> list[EvaluatedQuestion]:
        """As `aask`, waited for."""
        return asyncio.run(self.aask(examples, keep))

    async def aask(self, examples: Sequence[Example], keep: Keep | None = None) -> list[EvaluatedQuestion]:
        """One row for each example, in their order; `keep` gets each as soon as it is there, in a thread.

        A question that fails is a row with its error. Raises what `keep` raises.
        """
        free = asyncio.Semaphore(self._at_once)

        async def one(example: Example) -> EvaluatedQuestion:
            async with free:
                row = await self._row(example)
                if keep:
                    await asyncio.to_thread(keep, row)
                return row

        return list(await asyncio.gather(*map(one, examples)))

    async def _row(self, example: Example) -> EvaluatedQuestion:
        row = EvaluatedQuestion(example.id, example.question, example.sources)
        try:
            return await self._asked(example, row)
        except Exception as error:
            log.warning("no result for %r: %s", example.question[:80], error)
            return replace(row, error=f"{type(error).__name__}: {error}")

    async def _asked(self, example: Example, row: EvaluatedQuestion) -> EvaluatedQuestion:
        found = await self._engine.asearch(example.question, collection=self._plan.collection, k=max(self._plan.ks))
        self._check(found.index.id, found.revision)
        row = replace(row, hits=as_rows(found.hits), degraded=found.degraded, timings=found.timings)
        if not self._plan.answers:
            return row
        answer = await self._engine.aquery(example.question, collection=self._plan.collection)
        if answer.index:  # a mode without retrieval answers from none
            self._check(answer.index, answer.revision)
        kept, scores = await self._measured(example, answer)
        row = replace(row, degraded=_all(row, answer), timings=answer.timings, answer=kept, scores=scores)
        context = await self._context(example)
        return await self._with_component(example, row, context) if context else row

    async def _with_component(
        self, example: Example, row: EvaluatedQuestion, context: tuple[str, ...]
    ) -> EvaluatedQuestion:
        """The row with the answer from `context` and its scores beside the end-to-end ones."""
        answer = await self._engine.aquery(
            example.question, collection=self._plan.collection, mode=CONTEXT_ONLY, context=context
        )
        kept, scores = await self._measured(example, answer)
        beside = {f"{CONTEXT_ONLY}_{name}": score for name, score in scores.items()}
        return replace(
            row,
            degraded=_all(row, answer),
            answer={**(row.answer or {}), CONTEXT_ONLY: kept},
            scores={**row.scores, **beside},
        )

    async def _context(self, example: Example) -> tuple[str, ...]:
        """The text of the reference sections; nothing where no component is asked for or the index has none of it."""
        if self._passages is None:
            return ()
        return tuple((await asyncio.to_thread(self._passages, example.sources)).values())

    async def _measured(self, example: Example, answer: Answer) -> tuple[dict[str, Any], dict[str, float | None]]:
        """An answer as its row keeps it, and its scores."""
        judged = await self._judge.judge(example, answer) if self._judge else {}
        kept = {**_answer_row(answer), "judgements": {name: _judged_row(one) for name, one in judged.items()}}
        by_judge = {name: one.score for name, one in judged.items() if one.judgeable}
        return kept, await self._scored(example, answer) | by_judge

    def _check(self, index: int, revision: int) -> None:
        if self._index and (index, revision) != (self._index.id, self._index.revision):
            raise IndexChanged(self._index, index, revision)

    async def _scored(self, example: Example, answer: Answer) -> dict[str, float | None]:
        scores: dict[str, float | None] = {}
        if example.answer is not None:
            scores["similarity"] = await self._similarity(answer.text, example.answer)
            scores["token_f1"] = token_f1(answer.text, example.answer)
        if (share := supported_share(answer)) is not None:
            scores["supported"] = share
        return scores

    async def _similarity(self, answer: str, reference: str) -> float:
        loop = asyncio.get_running_loop()

        def embed(texts: Sequence[str]) -> np.ndarray:
            embedding = self._engine.aembed(texts, self._plan.collection)
            return asyncio.run_coroutine_threadsafe(embedding, loop).result()

        return await asyncio.to_thread(similarity, embed, answer, reference)


class IndexChanged(RuntimeError):
    """Another index, or another revision of it, became live while questions were asked."""

    def __init__(self, measured: Index, index: int, revision: int) -> None:
        super().__init__(
            f"index {measured.id} revision {measured.revision} was to be measured, index {index} revision {revision} "
            "answered: it was published meanwhile, evaluate again"
        )


# ------------------------------------------------------------------------------------------- rows


def whole(row: EvaluatedQuestion) -> bool:
    """Whether a row says all that it should: nothing failed and no part was missing. Others are asked again."""
    return row.error is None and not row.degraded and None not in row.scores.values()


def as_rows(hits: Iterable[Hit]) -> list[dict[str, Any]]:
    """Hits as a row keeps them."""
    hits = list(hits)
    found = Retrieved.of(hits)
    return [
        {"sources": list(sources), "anchors": list(anchors), "title": hit.title, "score": hit.score}
        for hit, sources, anchors in zip(hits, found.sources, found.anchors, strict=True)
    ]


def retrieved(row: EvaluatedQuestion) -> Retrieved:
    """What a row's hits stand for."""
    return Retrieved(tuple(tuple(h["sources"]) for h in row.hits), tuple(tuple(h["anchors"]) for h in row.hits))


def _all(row: EvaluatedQuestion, answer: Answer) -> tuple[str, ...]:
    """What either of them had to do without."""
    return tuple(dict.fromkeys((*row.degraded, *answer.degraded)))


def _answer_row(answer: Answer) -> dict[str, Any]:
    return {
        "text": answer.text,
        "agent": answer.agent,
        "known": answer.known,
        "citations": [asdict(citation) for citation in answer.citations],
        "sources": [hit.source for hit in answer.hits],
        **asdict(answer.usage),
    }


def _judged_row(judged: Judged) -> dict[str, Any]:
    return {"score": judged.score, "reasoning": judged.reasoning, "error": judged.error, "cost": judged.usage.cost}


# ------------------------------------------------------------------------------------------- names


def fingerprint(
    examples: Sequence[Example], plan: Plan, index: Index, configuration: Configuration, judge: str = ""
) -> str:
    """Names all that decides the rows of an evaluation: questions, index, configuration with its models, code.

    `judge` names the judge: its model and its prompts.
    """
    asked = {
        "dataset": dataset_fingerprint(examples),
        "collection": plan.collection,
        "index": [index.id, index.revision],
        "hits": max(plan.ks),
        "answers": [plan.answers, plan.component],
        "judge": judge,
        "configuration": described(configuration),
        "models": {name: _state(path) for name, path in _folders(configuration)},
        "code": _code(),
    }
    return digest(json.dumps(asked, sort_keys=True))


def described(configuration: Configuration) -> dict[str, Any]:
    """A configuration as data, without keys and without what does not change an answer."""
    return {k: v for k, v in _without_keys(configuration.model_dump(mode="json")).items() if k not in ELSEWHERE}


def _without_keys(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _without_keys(inner) for name, inner in value.items() if not name.endswith("_key")}
    return [_without_keys(inner) for inner in value] if isinstance(value, list) else value


def _folders(configuration: Configuration) -> list[tuple[str, Path]]:
    """Settings that name a file or folder of this machine: a trained model may change behind its path."""
    named = [(name, value) for name, value in described(configuration).items() if isinstance(value, str)]
    return [(name, Path(value)) for name, value in named if value not in ("", ".") and Path(value).exists()]


def _state(path: Path) -> list[list[Any]]:
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    return [[str(file.relative_to(path)), file.stat().st_size, file.stat().st_mtime_ns] for file in files]


def _code() -> str:
    folder = Path(pipelines.__path__[0])
    files = sorted(file for pattern in CODE for file in folder.glob(pattern))
    return digest(*(file.read_bytes() for file in files))
