"""Checks whether order, length or authorship of answers sways a judge.

Measures what the answers of an evaluation allow, and explains what it can't measure.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, TypeVar

from pipelines.answering.settings import AgentSettings, AnswerSettings, all_agents, change
from pipelines.answering.synthesis.modes import CONTEXT_ONLY
from pipelines.evaluation.dataset import Example
from pipelines.evaluation.evaluator import EvaluationPlan
from pipelines.evaluation.judging.dimensions import Dimension
from pipelines.evaluation.judging.judge import Judge, same_model
from pipelines.evaluation.judging.position import measure_position_bias
from pipelines.evaluation.judging.self_preference import measure_self_preference
from pipelines.evaluation.judging.verbosity import measure_verbosity_bias
from pipelines.evaluation.run import EvaluationOptions, NothingAnswered, evaluate
from pipelines.evaluation.worker import UnknownJudge, make_judge
from pipelines.records import Answer
from pipelines.store import EvaluatedQuestion, Store

T = TypeVar("T")
Report = Callable[[str], None]


class NotChecked(ValueError):
    """A bias can't be measured on these answers; the message says what is missing."""


def check_judge(
    store: Store,
    settings: AnswerSettings,
    examples: Sequence[Example],
    plan: EvaluationPlan,
    evaluation: int,
    options: EvaluationOptions,
    progress: Report = lambda _: None,
) -> dict[str, Any]:
    """Return the position bias, verbosity bias and self-preference of the plan's judge, on the rows of `evaluation`.

    A bias that can't be measured is {"skipped": why}. Two calls of the judge for each question measure its position
    bias, one its verbosity bias. Self-preference takes agents with different models: each answers every question and
    judges every answer. Raises UnknownJudge.
    """
    judge = make_judge(settings, plan, store)
    if judge is None:
        raise UnknownJudge("there is no judge to check: name an agent with `--judge`")
    rows = store.evaluated_questions(evaluation)
    answered = [(example, rows[example.id]) for example in examples if example.id in rows]
    measures: dict[str, Callable[[], dict[str, Any]]] = {
        "position": lambda: _position(judge, answered),
        "verbosity": lambda: _verbosity(judge, answered),
        "self_preference": lambda: _self_preference(store, settings, examples, plan, judge, options, progress),
    }
    found: dict[str, Any] = {"judge": plan.judge, "model": judge.llm.model}
    for name, measure in measures.items():
        progress(f"judge check: {name.replace('_', '-')}")
        try:
            found[name] = measure()
        except (NotChecked, NothingAnswered) as error:
            found[name] = {"skipped": str(error)}
    return found


def _position(judge: Judge, answered: Sequence[tuple[Example, EvaluatedQuestion]]) -> dict[str, Any]:
    """Compare each answer with the one from the reference sections, else with the reference answer, kept from view."""
    pairs = []
    for example, row in answered:
        text, component = _text(row.answer), _text((row.answer or {}).get(CONTEXT_ONLY))
        if text and component and text != component:
            pairs.append((example, text, component))
        elif text and example.answer and text != example.answer:
            pairs.append((replace(example, answer=None), text, example.answer))
    if not pairs:
        raise NotChecked("no question has two different answers: it takes --component, or reference answers")
    return asdict(_run(judge, measure_position_bias(judge.llm, pairs)))


def _verbosity(judge: Judge, answered: Sequence[tuple[Example, EvaluatedQuestion]]) -> dict[str, Any]:
    dimension = _dimension(judge)
    pairs = [(example, _answer(example, text)) for example, row in answered if (text := _text(row.answer))]
    pairs = [(example, answer) for example, answer in pairs if _is_judgeable(dimension, example)]
    if not pairs:
        raise NotChecked(f"no answer can be judged by {dimension.name}: reference answers are missing")
    bias = _run(judge, measure_verbosity_bias(judge, pairs, dimension.name))
    return {"dimension": dimension.name, **asdict(bias)}


def _self_preference(
    store: Store,
    settings: AnswerSettings,
    examples: Sequence[Example],
    plan: EvaluationPlan,
    judge: Judge,
    options: EvaluationOptions,
    progress: Report,
) -> dict[str, Any]:
    """Have every agent answer each question and every agent's model judge each answer; rows and judgements are kept."""
    agents = _different_agents(settings)
    if len(agents) < 2:
        raise NotChecked("it takes two agents with different models, which judge each other")
    dimension = _dimension(judge)
    examples = [example for example in examples if _is_judgeable(dimension, example)]
    if not examples:
        raise NotChecked(f"no answer can be judged by {dimension.name}: reference answers are missing")
    alone = replace(plan, judge="", component=False)
    texts: dict[str, list[str]] = {}
    for agent in agents:
        one = change(settings, {"router.kind": "fixed", "router.default": agent.name})
        result = evaluate(store, one, examples, alone, dataset="judge check", options=options, progress=progress)
        rows = store.evaluated_questions(result["evaluation"])
        answers = [rows[example.id].answer if example.id in rows else None for example in examples]
        # Another agent stands in for one that fails: its answer is not this model's.
        texts[agent.model] = [_text(a) if a and a["agent"] == agent.name else "" for a in answers]
    scores = {}
    for agent in agents:
        peer = make_judge(settings, replace(plan, judge=agent.name, dimensions=(dimension,)), store)
        for model, answered in texts.items():
            scores[agent.model, model] = _scores(peer, dimension, examples, answered) if peer else []
    return {"dimension": dimension.name, "judges": [asdict(one) for one in measure_self_preference(scores)]}


def _scores(
    judge: Judge, dimension: Dimension, examples: Sequence[Example], texts: Sequence[str]
) -> list[float | None]:
    """Return the score of each text, None where there is no text or no score."""
    pairs = [(example, _answer(example, text)) for example, text in zip(examples, texts, strict=True) if text]
    judgements = _run(judge, judge.judge_all(pairs))
    by_id = {example.id: found[dimension.name].score for (example, _), found in zip(pairs, judgements, strict=True)}
    return [by_id.get(example.id) for example in examples]


def _run(judge: Judge, measure: Coroutine[Any, Any, T]) -> T:
    """Run `measure` to its end and close the judge's connections."""

    async def closing() -> T:
        try:
            return await measure
        finally:
            await judge.close()

    return asyncio.run(closing())


def _dimension(judge: Judge) -> Dimension:
    """Return the judge's first dimension that needs no context: rows keep the sources of an answer, not their texts."""
    for dimension in judge.dimensions:
        if "context" not in dimension.template.variables:
            return dimension
    raise NotChecked("it takes a dimension that is judged without the context, such as quality")


def _is_judgeable(dimension: Dimension, example: Example) -> bool:
    return "reference" not in dimension.template.variables or bool(example.answer)


def _different_agents(settings: AnswerSettings) -> list[AgentSettings]:
    """Return the first agent of each model."""
    agents: list[AgentSettings] = []
    for agent in all_agents(settings):
        if not any(same_model(agent.model, other.model) for other in agents):
            agents.append(agent)
    return agents


def _text(answer: Mapping[str, Any] | None) -> str:
    return str(answer["text"]).strip() if answer else ""


def _answer(example: Example, text: str) -> Answer:
    return Answer(example.question, text, "", (), (), (), {}, 0, 0)


# ---------------------------------------------------------------------------------------------- for a person


def check_as_text(check: Mapping[str, Any]) -> str:
    """Return the result of `check_judge` as lines for a person."""
    describers: dict[str, Callable[[Mapping[str, Any]], str]] = {
        "position": _describe_position,
        "verbosity": _describe_verbosity,
        "self_preference": _describe_self_preference,
    }
    lines = [f"judge check of {check['model']} (agent {check['judge']})"]
    for name, describe in describers.items():
        found = check[name]
        text = f"not measured: {found['skipped']}" if "skipped" in found else describe(found)
        lines.append(f"  {name.replace('_', '-')}: {text}")
    return "\n".join(lines)


def _describe_position(found: Mapping[str, Any]) -> str:
    if found["consistent"] is None:
        return f"no pair could be judged, {found['errors']:,} failed"
    return (
        f"{_interval(found['consistent'])} of {found['judged']:,} pairs judged alike in both orders; "
        f"{found['favours_first']:.3f} favour the first answer shown, {found['favours_second']:.3f} the second"
    )


def _describe_verbosity(found: Mapping[str, Any]) -> str:
    test = found["difference"]
    if test is None:
        return f"no answer could be judged both ways, {found['errors']:,} failed"
    return (
        f"padding changes {found['dimension']} by {test['difference']:+.3f} [{test['low']:+.3f}, {test['high']:+.3f}], "
        f"p {test['p']:.3g}; {found['raised']:.3f} of {found['judged']:,} scores rise"
    )


def _describe_self_preference(found: Mapping[str, Any]) -> str:
    if not found["judges"]:
        return "not measured: no question was answered and judged by every model"
    return "; ".join(
        f"{one['judge']} {_interval(one['preference'])} (own answers {one['own']:+.3f} above its peers, others "
        f"{one['others']:+.3f})"
        for one in found["judges"]
    )


def _interval(mean: Mapping[str, float]) -> str:
    return f"{mean['value']:.3f} [{mean['low']:.3f}, {mean['high']:.3f}]"
