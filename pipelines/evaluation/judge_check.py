"""Checks the judge of an evaluation on the answers that it just judged.

Knows rows, agents and the checks in `judging`. A check that can't run becomes a finding that says why.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pipelines.answering.settings import AgentSettings, AnswerSettings, all_agents, change
from pipelines.answering.synthesis.modes import CONTEXT_ONLY
from pipelines.evaluation.dataset import BadDataset, Example, parse_rows
from pipelines.evaluation.evaluator import EvaluationPlan
from pipelines.evaluation.judging.checks import (
    GradedAnswer,
    JudgeFinding,
    check_agreement,
    check_position,
    check_self_preference,
    check_verbosity,
)
from pipelines.evaluation.judging.judge import Judge, same_model
from pipelines.evaluation.judging.verdict import HIGHEST, LOWEST
from pipelines.evaluation.run import EvaluationOptions, NothingAnswered, evaluate
from pipelines.evaluation.worker import ModelAway, UnknownJudge, make_judge
from pipelines.store import EvaluatedQuestion, Store
from pipelines.text.progress import Progress, silent
from pipelines.text.sheets import Grid

Answered = Sequence[tuple[Example, EvaluatedQuestion]]


def check_judge(
    store: Store,
    settings: AnswerSettings,
    examples: Sequence[Example],
    plan: EvaluationPlan,
    evaluation: int,
    graded: Sequence[GradedAnswer] = (),
    *,
    options: EvaluationOptions,
    progress: Progress = silent,
) -> list[JudgeFinding]:
    """Return the findings of each check of the plan's judge, on the rows of `evaluation`, in its first dimension.

    Position takes two calls per question, verbosity one, and agreement one per `graded` answer. For self-preference,
    the judge's model and another agent's answer every question and judge each other's answers; `options.fresh` does not
    apply to it. Raises UnknownJudge.
    """
    judge = make_judge(settings, plan, store)
    if judge is None:
        raise UnknownJudge("there is no judge to check: name an agent with `--judge`")
    rows = store.evaluated_questions(evaluation)
    answered = [(example, rows[example.id]) for example in examples if example.id in rows and example.answerable]
    progress(f"checking the judge {plan.judge}: position, verbosity, self-preference, agreement")
    return [
        _position(judge, answered),
        _verbosity(judge, answered),
        _self_preference(store, settings, examples, plan, replace(options, fresh=False), progress),
        asyncio.run(check_agreement(judge, graded))
        if graded
        else JudgeFinding("agreement", skipped="there are no grades of people: --grades FILE"),
    ]


def _position(judge: Judge, answered: Answered) -> JudgeFinding:
    """Compare each answer with the one from the reference sections, or else with the reference answer."""
    pairs = []
    for example, row in answered:
        text = text_of(row.answer)
        other = text_of((row.answer or {}).get(CONTEXT_ONLY)) or (example.answer or "")
        if text and other and text != other:
            pairs.append((example.question, text, other))
    if not pairs:
        return JudgeFinding(
            "position", skipped="no question has two answers: it takes reference answers, or --component"
        )
    return asyncio.run(check_position(judge, pairs))


def _verbosity(judge: Judge, answered: Answered) -> JudgeFinding:
    answers = [(example, text) for example, row in answered if (text := text_of(row.answer)) and _fits(judge, example)]
    if not answers:
        return JudgeFinding("verbosity", skipped=_needs(judge))
    return asyncio.run(check_verbosity(judge, answers))


def _self_preference(
    store: Store,
    settings: AnswerSettings,
    examples: Sequence[Example],
    plan: EvaluationPlan,
    options: EvaluationOptions,
    progress: Progress,
) -> JudgeFinding:
    """Let the judge's agent and the first agent with another model answer, and judge each other."""
    agents = _pair(all_agents(settings), plan.judge)
    if len(agents) < 2:
        return JudgeFinding("self-preference", skipped="it takes two agents with different models")
    judges = {agent.model: make_judge(settings, replace(plan, judge=agent.name), store) for agent in agents}
    known = {model: judge for model, judge in judges.items() if judge}
    examples = [one for one in examples if one.answerable and _fits(known[agents[0].model], one)]
    if not examples:
        return JudgeFinding("self-preference", skipped=_needs(known[agents[0].model]))
    texts: dict[str, list[str]] = {}
    for agent in agents:
        alone = change(settings, {"router.kind": "fixed", "router.default": agent.name, "verified.enabled": False})
        try:
            quiet = replace(plan, judge="", component=False)
            result = evaluate(store, alone, examples, quiet, dataset="judge check", options=options, progress=progress)
        except (NothingAnswered, ModelAway) as error:
            return JudgeFinding("self-preference", skipped=f"{agent.model} does not answer: {error}")
        rows = store.evaluated_questions(result["evaluation"])
        answers = [rows[one.id].answer if one.id in rows else None for one in examples]
        # If an agent fails, another one answers; that answer is not this model's.
        texts[agent.model] = [text_of(a) if a and a["agent"] == agent.name else "" for a in answers]
    return asyncio.run(check_self_preference(known, examples, texts))


def _pair(agents: Sequence[AgentSettings], judge: str) -> list[AgentSettings]:
    own = [agent for agent in agents if agent.name == judge]
    return own + [agent for agent in agents if own and not same_model(agent.model, own[0].model)][:1]


def _fits(judge: Judge, example: Example) -> bool:
    """Return whether the judge's first dimension can score an answer without the passages it was based on."""
    wanted = judge.dimensions[0].template.variables
    return "context" not in wanted and ("reference" not in wanted or bool(example.answer))


def _needs(judge: Judge) -> str:
    return f"no answer can be judged by {judge.dimensions[0].name} alone: it takes reference answers and no context"


def text_of(answer: Any) -> str:
    """Return the text of an answer in a row, "" if there is none."""
    return str(answer["text"]).strip() if answer else ""


def read_graded(path: Path) -> list[GradedAnswer]:
    """Return the rows {question, answer, reference?, grade} of a file. Raises BadDataset."""
    rows = parse_rows(path, _graded)
    if not rows:
        raise BadDataset(path, [(0, "there is no graded answer in it")])
    return rows


def _graded(row: Any) -> GradedAnswer:
    for name in ("question", "answer"):
        if not isinstance(row.get(name), str) or not row[name].strip():
            raise ValueError(f"{name} is {row.get(name)!r}: it must be a text")
    grade = row.get("grade")
    if isinstance(grade, bool) or not isinstance(grade, int | float) or not LOWEST <= grade <= HIGHEST:
        raise ValueError(f"grade is {grade!r}: it must be a number from {LOWEST} to {HIGHEST}")
    reference = row.get("reference")
    if not isinstance(reference, str | None):
        raise ValueError(f"reference is {reference!r}: it must be a text")
    return GradedAnswer(Example(row["question"].strip(), (), reference or None), row["answer"].strip(), float(grade))


def as_grid(findings: Sequence[JudgeFinding]) -> list[Grid]:
    """Return findings as a table; [] if there are none."""
    if not findings:
        return []
    rows = []
    for one in findings:
        interval = "" if one.low is None else f"{one.low:+.3f} to {one.high:+.3f}"
        result = f"not measured: {one.skipped}" if one.skipped else "passed" if one.passed else _WHY[one.check]
        value = "" if one.value is None else f"{one.value:+.3f}"
        rows.append([one.check, value, interval, str(one.judged), str(one.failed), result])
    return [Grid(["check of the judge", "value", "95% interval", "judged", "failed", "result"], rows, "<>>>><")]


_WHY = {
    "position": "swayed: the place decides",
    "verbosity": "swayed: longer answers get more",
    "self-preference": "swayed: a model's own answers get more",
    "agreement": "people grade otherwise",
}
