"""Collects the questions by which a night judges: written by hand, verified, or rated well.

If there are none, headings of the live index are used. Knows the store and data sets; knows no engine.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pipelines.answering.settings import AnswerSettings
from pipelines.answering.verified.writing import GIVEN, review_answers
from pipelines.evaluation.dataset import Example, read_datasets
from pipelines.evaluation.questions.feedback import question_key
from pipelines.evaluation.questions.making import QuestionOptions, make_questions, rated_questions
from pipelines.store import Store
from pipelines.text.counts import counted

WRITTEN, VERIFIED_ONES, RATED, SMOKE = "written", "verified", "rated", "from headings"


@dataclass(frozen=True, slots=True)
class RegressionSet:
    """The judging questions, the count of each origin, and the questions left out because their pages are gone."""

    examples: tuple[Example, ...]
    counts: Mapping[str, int]
    left_out: tuple[Example, ...] = ()

    def __str__(self) -> str:
        """Describe the judging questions."""
        if SMOKE in self.counts:
            said = f"no regression set: {counted(self.counts[SMOKE], 'smoke question')} from headings"
        else:
            said = ", ".join(counted(count, f"{origin} question") for origin, count in self.counts.items() if count)
        return said + (f"; {len(self.left_out):,} left out, as their pages are gone" if self.left_out else "")


def gather_regression_set(
    store: Store, settings: AnswerSettings, collection: str, files: Sequence[Path], smoke: int
) -> RegressionSet:
    """Return the known questions, or `smoke` headings of the live index if there are none.

    Raises BadDataset and NoLiveIndex.
    """
    known = known_questions(store, collection, files)
    if known.examples or known.left_out:
        return known
    made = make_questions(store, settings, collection, None, QuestionOptions(limit=smoke, find_in=0)).examples
    return _without_gone(store, collection, made, {SMOKE: len(made)})


def known_questions(store: Store, collection: str, files: Sequence[Path]) -> RegressionSet:
    """Return the questions from people, without duplicates: handwritten ones win, then verified ones.

    Raises BadDataset.
    """
    by_origin = {
        WRITTEN: read_datasets(files),
        VERIFIED_ONES: list(_verified(store, collection)),
        RATED: rated_questions(store, collection).examples,
    }
    known: dict[str, tuple[str, Example]] = {}
    for origin, examples in by_origin.items():
        for example in examples:
            known.setdefault(question_key(example.question), (origin, example))
    counts = {origin: sum(one == origin for one, _ in known.values()) for origin in by_origin}
    return _without_gone(store, collection, [example for _, example in known.values()], counts)


def _verified(store: Store, collection: str) -> Iterable[Example]:
    for reviewed in review_answers(store, collection):
        if reviewed.state == GIVEN:
            sources = tuple(section.source for section in reviewed.answer.sections)
            yield from (Example(question, sources) for question in reviewed.answer.questions)


def _without_gone(
    store: Store, collection: str, examples: Sequence[Example], counts: Mapping[str, int]
) -> RegressionSet:
    """Leave out questions that no index can answer, because every page that answers them has left the site."""
    gone = store.gone_pages(collection, set().union(*(example.pages for example in examples)))
    left = tuple(one for one in examples if one.sources and gone.issuperset(one.pages))
    return RegressionSet(tuple(one for one in examples if one not in left), counts, left)
