"""Says in words how a night went: its verdict, its steps, and the questions that got worse.

Knows results alone.
"""

from collections.abc import Iterator, Sequence

from pipelines.nights.gate import WorseQuestion
from pipelines.nights.night import NightResult


def describe_night(result: NightResult) -> str:
    """Return the summary of a night for a person on the machine that ran it: with the texts of questions."""
    lines = [f"night of collection {result.collection}, run {result.run}: {result.verdict}"]
    lines += [f"  {name:<11} {said}" for name, said in result.steps.items()]
    lines += [f"  {one['said']}" for one in result.judged.get("measures", ())]
    if result.reason:
        lines.append(f"  reason      {result.reason}")
    if result.worse:
        lines.append(f"  worse       {len(result.judged['worse']):,} questions, the first {len(result.worse)}:")
    for question in result.worse:
        lines += [f"    {line}" for line in _describe_worse(question)]
    if result.verdict == "refused" and result.index.get("index") and not result.index["published"]:
        lines.append(f"`raydex publish {result.collection}` makes the candidate live all the same")
    return "\n".join(lines)


def _describe_worse(question: WorseQuestion) -> Iterator[str]:
    yield f"{question.question} ({', '.join(question.sources)})"
    for name, hits in (("before", question.before), ("after", question.after)):
        yield f"  {name:<7} {_marked(hits, question.sources)}"


def _marked(hits: Sequence[str], sources: Sequence[str]) -> str:
    """Return hits in their order; a star marks one on a page that answers."""
    pages = {source.partition("#")[0] for source in sources}
    return ", ".join(f"{'*' if hit.partition('#')[0] in pages else ''}{hit}" for hit in hits) or "nothing"
