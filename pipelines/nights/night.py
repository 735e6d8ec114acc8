"""One night of a collection: updates it, judges the changes, and publishes or rejects them.

    result = run_night(store, collection, settings, ReindexOptions())

Each step is recorded in the row of the night's run; the next night resumes one that was killed. Knows no command line
and no environment.
"""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from pipelines.answering.settings import AnswerSettings, without_models
from pipelines.evaluation.dataset import read_datasets
from pipelines.evaluation.run import EvaluationOptions
from pipelines.indexing.collection import Collection
from pipelines.indexing.publish import find_live_index
from pipelines.indexing.run import ReindexRun, check_request_of, open_run
from pipelines.indexing.settings import ReindexOptions
from pipelines.indexing.summary import Outcome
from pipelines.nights.gate import IndexGate, check_measures, worse_questions
from pipelines.nights.journal import NIGHTLY, Journal, StepResult, mark_of
from pipelines.nights.notices.notice import Notice
from pipelines.nights.notices.teller import Teller, TellSecrets
from pipelines.nights.regression import gather_regression_set
from pipelines.nights.result import REFUSED, NightResult
from pipelines.nights.retraining import Retraining
from pipelines.nights.telling import failure_notice, refusal_notice
from pipelines.nights.upkeep import NightUpkeep, dump_name
from pipelines.records import digest
from pipelines.store import CollectionBusy, Store, promote_index
from pipelines.text.counts import counted
from pipelines.text.progress import Progress, silent

INDEX, JUDGE, PUBLISH, TELL = "index", "judge", "publish", "tell"
WORSE_SHOWN = 10
EVALUATION = EvaluationOptions()
NO_SECRETS = TellSecrets()


def run_night(
    store: Store,
    collection: Collection,
    settings: AnswerSettings,
    options: ReindexOptions,
    *,
    folder: Path = Path(),
    evaluation: EvaluationOptions = EVALUATION,
    secrets: TellSecrets = NO_SECRETS,
    progress: Progress = silent,
) -> NightResult:
    """Run one night, or the rest of a killed one, and notify people in the file if it is refused or fails.

    Files named in `night` are relative to `folder`. Raises MissingSecret, UnknownMeasure, BadDumpFolder, BadTraining,
    NotFree, and the errors of `reindex`, `evaluate` and `read_datasets`; finished steps are kept.
    """
    night, teller = collection.night, Teller(collection.night.tell, secrets)
    with _telling(teller, collection.name, progress):
        check_request_of(collection, options, progress)
        check_measures(night.may_fall)
        files = [folder / name for name in night.questions]
        read_datasets(files)
        upkeep = NightUpkeep(store, collection.name, night, settings.home, folder, progress)
        upkeep.check()
        asked = settings if night.models else without_models(settings)
        gate = IndexGate(store, asked, night.may_fall, evaluation, progress)
        ask = partial(gather_regression_set, store, asked, collection.name, files, night.smoke)
        mark = mark_of(collection)
        retraining = Retraining(gate, collection.name, night.train, folder, mark, ask)
        options = replace(options, most_unjudged=night.most_unjudged)
        with open_run(NIGHTLY, store, collection, options, progress) as (record, work):
            journal = Journal(work.lock, record.run, mark, progress)
            result = Night(store, work, journal, gate, upkeep, retraining, teller)()
            record.counts = result.as_counts()
            record.remark = f"refused: {result.reason}" if result.verdict == REFUSED else None
    return result


@contextlib.contextmanager
def _telling(teller: Teller, collection: str, progress: Progress) -> Iterator[None]:
    """Send a notice about an error that ends the night, unless another run holds the collection."""
    try:
        yield
    except CollectionBusy:
        raise
    except Exception as error:
        _tell(teller, failure_notice(collection, error), progress)
        raise


def _tell(teller: Teller, notice: Notice, progress: Progress) -> StepResult:
    told, failed = teller.tell(notice)
    for reason in failed:
        progress(f"warning: not sent by {reason}")
    return {"said": "; ".join([f"sent by {', '.join(told) or 'nothing'}", *failed])}


@dataclass(frozen=True)
class Night:
    """The steps of one night over a locked collection."""

    store: Store
    work: ReindexRun
    journal: Journal
    gate: IndexGate
    upkeep: NightUpkeep
    retraining: Retraining
    teller: Teller

    def __call__(self) -> NightResult:
        index = self.journal.step(INDEX, self._index)
        judged = self.journal.step(JUDGE, lambda: self._judge(index))
        published = self.journal.step(PUBLISH, lambda: self._publish(index, judged))
        worse = worse_questions(self.store, judged["gate"], WORSE_SHOWN) if "gate" in judged else []
        steps = {INDEX: index["said"], JUDGE: judged["said"], PUBLISH: published["said"]}
        name, verdict, reason = self.work.collection.name, published["verdict"], published["reason"]
        result = NightResult(
            name, self.work.run, verdict, reason, index["summary"], judged.get("gate", {}), worse, steps
        )
        if verdict == REFUSED and self.teller:
            steps[TELL] = self.journal.step(TELL, lambda: self._tell(result))["said"]
        if find_live_index(self.store, name):
            evaluations = judged["gate"]["evaluations"] if "gate" in judged else ()
            dump = dump_name(name, self.journal.day, self.journal.first)
            for step, work in {**self.upkeep.steps(dump, evaluations), **self.retraining.steps()}.items():
                steps[step] = self.journal.step(step, work)["said"]
        return result

    def _tell(self, result: NightResult) -> StepResult:
        """Send a notice of a refusal; a night that is killed here sends it again under the same id."""
        id = digest(self.store.url, result.collection, str(self.journal.first), REFUSED)
        notice = refusal_notice(id, result, self.teller.choices.questions)
        return _tell(self.teller, notice, self.gate.progress)

    def _index(self) -> StepResult:
        summary = self.work()
        seen = ", ".join(f"{summary.pages[key]:,} {key}" for key in ("new", "changed", "failed", "deleted"))
        guard = "" if summary.outcome is Outcome.DONE else "; ".join(summary.warnings) or summary.outcome.value
        where = "nothing indexed" if summary.index is None else f"index {summary.index}"
        if summary.index is not None and not summary.published:
            where += ", a candidate"
        return {"said": f"{counted(summary.pages['seen'], 'page')} seen: {seen}; {where}", "guard": guard,
                "summary": summary.as_dict()}  # fmt: skip

    def _judge(self, index: StepResult) -> StepResult:
        """Compare the candidate with the live index, if there is a candidate that passes the guard."""
        name, candidate = self.work.collection.name, index["summary"]["index"]
        if index["guard"]:
            return {"said": "not judged: too many pages or too much text would be lost", "reason": index["guard"]}
        if index["summary"]["published"]:
            return {"said": f"not judged: {_why_unjudged(index['summary'])}", "reason": ""}
        asked = self.retraining.ask()
        self.gate.progress(str(asked))
        if not asked.examples:
            return {"said": "there is no question to judge by", "reason": "there is no question to judge by"}
        live, built = self.store.live_index(name), self.store.candidate_index(name)
        assert built is not None and built.id == candidate
        judged = self.gate(asked.examples, live, built)
        fell = [_why_not(one) for one in judged["measures"] if not one["passed"]]
        said = f"{asked}: {len(judged['worse']):,} got worse; {'passed' if judged['passed'] else 'not passed'}"
        return {"said": said, "reason": "; ".join(fell), "gate": judged}

    def _publish(self, index: StepResult, judged: StepResult) -> StepResult:
        summary, name = index["summary"], self.work.collection.name
        if judged["reason"]:
            is_kept = summary["index"] is not None and not summary["published"]
            kept = f"; index {summary['index']} is kept as a candidate" if is_kept else ""
            return {"said": f"refused{kept}", "verdict": REFUSED, "reason": judged["reason"]}
        revision = summary["revision"]
        if not summary["published"]:
            live = self.store.live_index(name)
            is_live = live.id == summary["index"]  # a night killed at this point has already published it
            revision = live.revision if is_live else promote_index(self.work.lock, self.work.run, summary["index"])
        if summary["published"] and not summary["changed"]:
            return {"said": "unchanged, nothing to publish", "verdict": "unchanged", "reason": ""}
        how = "in place" if summary["in_place"] else "built new"
        said = f"index {summary['index']} is live, revision {revision} ({how})"
        return {"said": said, "verdict": "published", "reason": ""}


def _why_unjudged(summary: Mapping[str, Any]) -> str:
    if not summary["changed"]:
        return "nothing changed"
    return "few pages changed" if summary["in_place"] else "it is the first index"


def _why_not(measure: Mapping[str, Any]) -> str:
    if not measure["difference"]:
        return str(measure["said"])
    return f"{measure['measure']} fell by {-measure['difference'][0]:.4f}, and may by {measure['may_fall']:g}"
