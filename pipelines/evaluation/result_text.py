"""Formats the result of an evaluation: a summary, and a page of all answers to grade.

Knows an evaluation's object, its questions and the metrics' labels; knows no database.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pipelines.evaluation.dataset import page_of
from pipelines.evaluation.evaluator import ATTEMPTS
from pipelines.evaluation.metrics import METRICS, Metric, hit_metrics, label_of
from pipelines.text.counts import counted
from pipelines.text.sheets import Fact, Grid, Part, Sheet
from pipelines.text.tables import with_interval

Result = Mapping[str, Any]


def as_text(result: Result) -> str:
    """Return the result of an evaluation as text."""
    return str(as_sheet(result))


def as_sheet(result: Result, checks: Sequence[Part] = ()) -> Sheet:
    """Return the result of an evaluation: answer scores, a row for each k, then time and cost, then `checks`."""
    index = f"index {result['index']} revision {result['revision']}"
    title = f"collection {result['collection']}, {index}: {_questions(result)}"
    return Sheet(title, [*warnings(result), *_answers(result), *_hits(result), *_seconds(result), *checks])


def warnings(result: Result) -> list[str]:
    """Return the reasons why the result does not measure the model alone."""
    count = result.get("num_stand_ins", 0)
    if not count:
        return []
    of = (
        f"{count:,} of {counted(sum(result['agents'].values()), 'answer comes', 'answers come')} from another "
        "model, and count like the others"
    )
    return [f"WARNING: a model failed: {of}; the same command asks again, {counted(ATTEMPTS, 'time')} in all"]


def _agents(result: Result) -> str:
    """Return how many answers each agent gave, and why answers are extractive if there are other agents."""
    models = _models(result)
    by = ", ".join(f"{name}{models.get(name, '')} {count:,}" for name, count in result["agents"].items())
    why = result.get("extractive", {})
    if not any(why.get(reason) for reason in ("found_none", "failed")) and len(result["agents"]) < 2:
        return by
    reasons = {
        "not_asked": "no model was asked",
        "found_none": "the model found no answer",
        "failed": "the model failed",
    }
    counts = ", ".join(f"{why[reason]:,} as {words}" for reason, words in reasons.items() if why[reason])
    return f"{by} ({counts})" if counts else by


def _models(result: Result) -> dict[str, str]:
    """Return the language model of each agent, in parentheses after its name."""
    configuration = result.get("configuration", {})
    models = {agent["name"]: agent["model"] for agent in configuration.get("agents", ())}
    models |= {"llm": model} if (model := configuration.get("llm.model")) else {}
    return {name: f" ({model})" for name, model in models.items()}


def _questions(result: Result) -> str:
    counts = {
        "about other things": result.get("num_unanswerable", 0),
        "failed": result["num_errors"],
        "degraded": result["num_degraded"],
    }
    remarks = "".join(f", {count:,} {what}" for what, count in counts.items() if count)
    return f"{counted(result['num_questions'], 'question')} of {result['dataset']}{remarks}"


# ------------------------------------------------------------------------------------------- hits


def _hits(result: Result) -> Iterator[Part]:
    """Yield the scores of hits: a row for each k, then those that have no k."""
    shown = [metric for metric in hit_metrics() if metric.shown != "no" and metric.name in result]
    by_k, single = [m for m in shown if m.by_k], [m for m in shown if not m.by_k]
    if by_k:
        rows = [[k, *(_cell(result, metric, k) for metric in by_k)] for k in result[by_k[0].name]]
        yield Grid(["k", *(metric.label for metric in by_k)], rows, "><")
    yield from (Fact(metric.label, _cell(result, metric)) for metric in single)


def _cell(result: Result, metric: Metric, k: str = "") -> str:
    if metric.shown == "interval":
        return _with_interval(result, metric.name, k)
    return f"{result[metric.name][k] if k else result[metric.name]:.3f}"


def _with_interval(result: Result, name: str, k: str = "") -> str:
    value, bounds = result[name], result["intervals"][name]
    count = result.get("num_scored", {}).get(name, result["num_questions"] - result["num_errors"])
    return with_interval([value[k], *bounds[k]] if k else [value, *bounds], count=count)


# ------------------------------------------------------------------------------------------- answers


def _answers(result: Result) -> Iterator[Part]:
    """Yield each answer score with its base, then the agents that answered."""
    names = [name for name in (*METRICS, *result.get("num_scored", {})) if name in result.get("num_scored", {})]
    names = [name for name in dict.fromkeys(names) if name in result]
    rows = [[label_of(name), _with_interval(result, name), _count(result, name)] for name in names]
    if rows:
        yield Grid(["", "", ""], rows, "<")
    for name, count in result.get("score_errors", {}).items():
        if count:
            yield f"{name}: {count:,} could not be scored"
    if result.get("agents"):
        yield Fact("answered by", _agents(result))


def _count(result: Result, name: str) -> str:
    """Return the number of answers behind a score, or how many of how many."""
    scored = result["num_scored"][name]
    if name in result["num_true"]:
        return f"{result['num_true'][name]:,} of {counted(scored, *METRICS[name].share_of)}"
    claims = result["claims"]
    together = f"; {claims['supported']:,} of {counted(claims['total'], 'claim')}" if name == "claims_supported" else ""
    return f"over {counted(scored, 'answer')}{together}"


def _seconds(result: Result) -> Iterator[Part]:
    """Yield the time per question and, if a model replied, the time of such questions and the cost."""
    total, model, usage = result["timings"]["total"], result.get("model"), result.get("usage", {})
    each = f"{total['mean']:.3f} s a question, 95% within {total['p95']:.3f} s; {result['seconds']:.1f} s in all"
    yield Fact("time", each)
    if model:
        whole, first = model["timings"]["total"], model["timings"].get("first_delta")
        begun = f", {first['mean']:.3f} s to the first word" if first else ""
        tokens = f"{counted(round(model['prompt_tokens']), 'token')} read, {model['completion_tokens']:,.0f} written"
        yield Fact("", f"{whole['mean']:.3f} s for the {model['questions']:,} with a reply of a model{begun}; {tokens}")
        yield Fact("cost", f"${usage['cost']:.4f} for {counted(usage['calls'], 'call')} of language models")


# ------------------------------------------------------------------------------------------- the page of answers

Question = Mapping[str, Any]
"""A question as yielded by `per_question`."""

ABOUT = "Grade each answer: right, partly right or wrong. A citation is supported if its passage supports its claims."


def answers_page(result: Result, questions: Iterable[Question]) -> str:
    """Return a Markdown page: the summary, then each question with its answer, citations and seconds, to grade."""
    sections = [_section(number, question) for number, question in enumerate(questions, 1)]
    head = [f"# Answers: {result['dataset']}", f"```\n{as_text(result)}\n```", ABOUT]
    return "\n\n".join([*head, *sections]) + "\n"


def _section(number: int, question: Question) -> str:
    answer = question["answered"]
    parts = [f"## {number}. {_line(question['question'])}", *_reference(question)]
    if answer:
        citations = "\n".join(_citation(citation, question) for citation in answer["citations"])
        parts += [_quote(answer["text"]), citations, f"*{'; '.join(_remarks(question))}*", "Grade:"]
    else:
        parts.append(f"No answer: {question['error'] or 'it was not asked for'}")
    return "\n\n".join(part for part in parts if part)


def _reference(question: Question) -> list[str]:
    sources = _sources(question)
    if not sources:
        return ["*About other things: the right answer is that it is not known.*"]
    found = f"hit {question['rank']}" if question["rank"] else "not found"
    given = (question["answered"] or {}).get("sources", [])
    if question["rank"] and given and not _pages(sources) & _pages(given):
        found += f", not among the {len(given)} of the answer"
    answer = [f"*Reference answer: {_line(question['answer'])}*"] if question.get("answer") else []
    return [f"*Reference ({found}):* {' '.join(f'<{source}>' for source in sources)}", *answer]


def _citation(citation: Mapping[str, Any], question: Question) -> str:
    """Return a citation as a list item: support, who cited it, and its source."""
    supported = "supported" if citation["supported"] else "**not supported**"
    how = f"{supported} ({citation['support']:.2f}, {citation.get('by', 'model')})"
    how = how if question["answered"]["known"] else "what comes closest"
    reference = ", the reference page" if page_of(citation["source"]) in _pages(_sources(question)) else ""
    return f"- [{citation['n']}] {how}: {_line(citation['title'])} <{citation['source']}>{reference}"


def _pages(sources: Iterable[str]) -> set[str]:
    return set(map(page_of, sources))


def _remarks(question: Question) -> Iterator[str]:
    """Yield the agent, the confidence, and the time and tokens of an answer."""
    answer, seconds = question["answered"], question["timings"]
    yield f"by {answer['agent']}"
    yield f"confidence {answer.get('confidence', 'unknown')}"
    if answer["known"] and "claims" in answer:
        yield f"{answer['claims']['supported']} of {counted(answer['claims']['total'], 'claim')} supported"
    else:
        yield "does not know"
    yield f"{seconds.get('total', 0):.1f} s"
    if answer["calls"]:
        yield f"first word after {seconds.get('first_delta', 0):.1f} s"
        yield f"{counted(answer['prompt_tokens'], 'token')} read, {answer['completion_tokens']:,} written"
    if question["degraded"]:
        yield f"without {', '.join(question['degraded'])}"


def _sources(question: Question) -> list[str]:
    return [question["source"]] if "source" in question else list(question.get("sources", ()))


def _quote(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.splitlines()) or "> (no text)"


def _line(text: str) -> str:
    return " ".join(text.split())
