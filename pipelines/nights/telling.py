"""Describes how a night went: its verdict, its steps, and the questions that got worse.

Knows only results.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from uuid import uuid4

from pipelines.evaluation.dataset import BadDataset
from pipelines.nights.notices.notice import Notice
from pipelines.nights.result import REFUSED, NightResult
from pipelines.text.counts import counted
from pipelines.text.sheets import Fact, Part, Sheet

HIDDEN = "a question"  # replaces its text


def describe_night(result: NightResult) -> Sheet:
    """Return the summary of a night for a person on the machine that ran it, including question texts."""
    return Sheet(f"night of collection {result.collection}, run {result.run}: {result.verdict}", list(_parts(result)))


def refusal_notice(id: str, result: NightResult, with_questions: bool) -> Notice:
    """Return the notice of a refused night; without `with_questions`, questions are shown only by their sources."""
    if not with_questions:
        result = replace(result, worse=[replace(one, question=HIDDEN) for one in result.worse])
    data = {
        "run": result.run,
        "reason": result.reason,
        "steps": dict(result.steps),
        "measures": result.judged.get("measures", []),
        "worse": [asdict(one) for one in result.worse],
    }
    sheet = Sheet(f"Raydex: the night of {result.collection} was refused", list(_parts(result)))
    return Notice(id, "night.refused", result.collection, sheet.title, sheet.lines(), data)


def failure_notice(collection: str, error: Exception) -> Notice:
    """Return the notice of a failed night; a data set's mistakes are left out because they quote its questions."""
    said = "a data set can't be used" if isinstance(error, BadDataset) else str(error)
    lines = [f"{type(error).__name__}: {said}", "Finished steps are kept, and the next night continues from there.",
             f"`raydex status {collection}` shows its last runs."]  # fmt: skip
    title = f"Raydex: the night of {collection} failed"
    return Notice(uuid4().hex, "night.failed", collection, title, lines, {"error": type(error).__name__, "said": said})


def trial_notice(collection: str) -> Notice:
    """Return a notice that only shows whether notices arrive."""
    lines = [f"This is a test. Notices about collection {collection} arrive here.", "Nothing else happened."]
    return Notice(uuid4().hex, "test", collection, f"Raydex: a test notice for {collection}", lines)


def _parts(result: NightResult) -> Iterator[Part]:
    for name, said in result.steps.items():
        yield Fact(name, said)
    if measures := result.judged.get("measures", ()):
        yield Fact("measures", "\n".join(measure["said"] for measure in measures))
    if result.reason:
        yield Fact("reason", result.reason)
    if result.worse:
        yield Fact("worse", f"{counted(len(result.judged['worse']), 'question')}, the first {len(result.worse)}:")
    for question in result.worse:
        yield Fact("", f"{question.question} ({', '.join(question.sources)})")
        for name, hits in (("before", question.before), ("after", question.after)):
            yield Fact(f"  {name}", _marked(hits, question.sources))
    if result.verdict == REFUSED and result.index.get("index") and not result.index["published"]:
        yield f"`raydex publish {result.collection}` makes the candidate live anyway"


def _marked(hits: Sequence[str], sources: Sequence[str]) -> str:
    """Return hits in order; a star marks those on a page that answers."""
    pages = {source.partition("#")[0] for source in sources}
    return ", ".join(f"{'*' if hit.partition('#')[0] in pages else ''}{hit}" for hit in hits) or "nothing"
