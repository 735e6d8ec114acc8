"""Compares a candidate with the live index on the same questions, and lists those that got worse.

Knows the evaluation and its paired test; does not know the questions' origin or the consequences.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipelines.answering.settings import AnswerSettings
from pipelines.evaluation.dataset import Example
from pipelines.evaluation.evaluator import EvaluationPlan
from pipelines.evaluation.experiments.gate import GateResult, gate
from pipelines.evaluation.experiments.record import Record, measured_record
from pipelines.evaluation.experiments.sweep import Cell
from pipelines.evaluation.metrics import METRICS, is_of_hits, score_names
from pipelines.evaluation.run import EvaluationOptions, evaluate
from pipelines.records import Index
from pipelines.store import Store
from pipelines.text.progress import Progress

K = 9  # hits per question in an evaluation, unless a measure names another k
LIVE, CANDIDATE = "live", "candidate"
HITS_SHOWN = 3
REGRESSION_SET = "regression set"  # the name of its evaluations


class UnknownMeasure(ValueError):
    """`may_fall` names a measure that does not exist, or that has no score per question."""


@dataclass(frozen=True, slots=True)
class WorseQuestion:
    """A question that scores lower on the candidate: the sources that answer it, and the hits before and after."""

    question: str
    sources: Sequence[str]
    before: Sequence[str]
    after: Sequence[str]


def check_measures(measures: Iterable[str]) -> tuple[int, ...]:
    """Return the depths k of these measures. Raises UnknownMeasure."""
    ks = sorted({int(k) for _, _, k in (name.partition("@") for name in measures) if k.isdecimal()} or {K})
    known = [name for name in score_names(ks, answers=True) if METRICS[name.partition("@")[0]].by_question]
    for name in measures:
        if name not in known:
            raise UnknownMeasure(f"night.may_fall: there is no measure {name!r}; there are: {', '.join(known)}")
    return tuple(ks)


@dataclass(frozen=True, slots=True)
class IndexGate:
    """Judges a candidate by the means of the measures in `may_fall`, each with its allowed drop."""

    store: Store
    settings: AnswerSettings
    may_fall: Mapping[str, float]
    options: EvaluationOptions
    progress: Progress

    def __call__(
        self, examples: Sequence[Example], live: Index, candidate: Index, changed: AnswerSettings | None = None
    ) -> dict[str, Any]:
        """Return as JSON whether the candidate passes, its measures, the two evaluations, and the worse questions.

        The worse questions are ids of examples, the worst first. `changed` are other settings for the candidate. Raises
        the errors of `evaluate`.
        """
        ks, answers = check_measures(self.may_fall), not all(map(is_of_hits, self.may_fall))
        plan = EvaluationPlan(live.collection, ks, answers)
        before = self._measure(LIVE, examples, live, plan, self.settings)
        after = self._measure(CANDIDATE, examples, candidate, plan, changed or self.settings)
        experiment = {"runs": [before, after], "baseline": LIVE}
        results = [one for name, drop in self.may_fall.items() for one in gate(experiment, None, name, drop)]
        return {
            "passed": all(one.passed for one in results),
            "measures": [_as_json(one, before, after) for one in results],
            "evaluations": [before["evaluation"], after["evaluation"]],
            "worse": _worse(examples, before, after, list(self.may_fall)),
        }

    def _measure(
        self, name: str, examples: Sequence[Example], index: Index, plan: EvaluationPlan, settings: AnswerSettings
    ) -> Record:
        self.progress(f"asking the {name} index {index.id}")
        result = evaluate(
            self.store,
            settings,
            examples,
            plan,
            dataset=REGRESSION_SET,
            index=index,
            options=self.options,
            progress=self.progress,
        )
        rows = self.store.evaluated_questions(result["evaluation"])
        return measured_record(Cell(name, {}), {}, {}, examples, rows, plan, evaluation=result["evaluation"])


def worse_questions(store: Store, judged: Mapping[str, Any], most: int) -> list[WorseQuestion]:
    """Return the first `most` worse questions in a gate's JSON, with their hits."""
    before, after = (store.evaluated_questions(number) for number in judged["evaluations"])
    found = []
    for id in judged["worse"][:most]:
        hits = [[hit["sources"][0] for hit in rows[id].hits[:HITS_SHOWN]] for rows in (before, after)]
        found.append(WorseQuestion(before[id].question, before[id].sources, *hits))
    return found


def _as_json(result: GateResult, before: Record, after: Record) -> dict[str, Any]:
    live, candidate = ((one["scores"].get(result.metric) or [None])[0] for one in (before, after))
    return {
        "measure": result.metric,
        "live": live,
        "candidate": candidate,
        "difference": list(result.difference),
        "may_fall": result.drop,
        "passed": result.passed,
        "said": str(result),
    }


def _worse(examples: Sequence[Example], before: Record, after: Record, measures: Sequence[str]) -> list[str]:
    """Return the ids of the questions whose measures fell in total, the largest drop first."""
    falls = dict.fromkeys((example.id for example in examples), 0.0)
    for name in measures:
        pairs = zip(before["values"].get(name, ()), after["values"].get(name, ()), strict=False)
        for example, (was, now) in zip(examples, pairs, strict=False):
            falls[example.id] += 0.0 if was is None or now is None else was - now
    worse = {id: fall for id, fall in falls.items() if fall > 1e-9}
    return sorted(worse, key=lambda id: -worse[id])
