"""Runs a sweep: evaluates each cell on the index it needs, and compares the records.

Takes plain values and returns one object. A failed cell becomes a record with its error and does not stop the others.
Questions that an earlier run asked are not asked again.
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from pipelines.answering.settings import all_agents
from pipelines.evaluation.dataset import Example, dataset_fingerprint, name_datasets
from pipelines.evaluation.evaluator import EvaluationPlan
from pipelines.evaluation.experiments.comparison import check_names, compare_runs, main_metric
from pipelines.evaluation.experiments.indexes import SweepIndexes
from pipelines.evaluation.experiments.prices import Price, add_prices, load_prices, price_or_free
from pipelines.evaluation.experiments.record import Record, failed_record, measured_record, shortcomings
from pipelines.evaluation.experiments.sweep import Cell, Sweep
from pipelines.evaluation.fingerprint import public_settings
from pipelines.evaluation.run import EvaluationOptions, evaluate
from pipelines.store import Store
from pipelines.text.progress import Progress, silent
from pipelines.text.tables import with_interval


@dataclass(frozen=True, slots=True)
class ExperimentOptions:
    """How an experiment runs and how its runs are compared.

    `metric` ranks the runs ("": the study's metric at 9 hits). `baseline` names the run to compare with ("": the first
    measured one). `environment` has the settings that cells do not set. `explain` returns the message of an error for
    records and progress lines.
    """

    metric: str = ""
    baseline: str = ""
    environment: Mapping[str, Any] = field(default_factory=dict)
    prices: Mapping[str, Price] = field(default_factory=load_prices)
    evaluation: EvaluationOptions = field(default_factory=EvaluationOptions)
    explain: Callable[[Exception], str] = str


def run_experiment(
    store: Store,
    sweep: Sweep,
    examples: Sequence[Example],
    indexes: SweepIndexes,
    options: ExperimentOptions = ExperimentOptions(),
    progress: Progress = silent,
) -> dict[str, Any]:
    """Return the records of all cells with their differences and effects, in the format of results.json.

    `progress` receives lines for a person. Raises UnknownRun for a metric or baseline that the experiment will not
    have.
    """
    check_names(sweep, options.metric, options.baseline)
    metric = options.metric or main_metric(sweep.ks)
    runner = CellRunner(store, sweep, examples, indexes, options, metric, progress)
    records = [runner(number, cell) for number, cell in enumerate(sweep.cells, 1)]
    return compare_runs(sweep, examples, records, dataset_fingerprint(examples), metric, options.baseline)


def plan_experiment(store: Store, sweep: Sweep, examples: Sequence[Example], indexes: SweepIndexes) -> dict[str, Any]:
    """Return which index each cell searches, which cells will fail, and which indexes must be built; change nothing."""
    plan: dict[str, Any] = {"questions": len(examples), "runs": {}, "failing": {}}
    for cell in sweep.cells:
        try:
            plan["runs"][cell.name] = indexes.name_for(cell.index)
        except Exception as error:  # a run would fail with the same error
            plan["failing"][cell.name] = f"{type(error).__name__}: {error}"
    wanted = sorted(set(plan["runs"].values()) - {sweep.collection})
    plan["to_build"] = [name for name in wanted if name not in store.copies(sweep.collection)]
    return plan


@dataclass(frozen=True, slots=True)
class CellRunner:
    """Measures the cells of one sweep."""

    store: Store
    sweep: Sweep
    examples: Sequence[Example]
    indexes: SweepIndexes
    options: ExperimentOptions
    metric: str
    progress: Progress

    def __call__(self, number: int, cell: Cell) -> Record:
        """Return the record of a cell, measured or failed."""
        where = f"[{number}/{len(self.sweep.cells)}] {cell.name}"
        began = time.perf_counter()
        try:
            record = self._measure(cell)
        except Exception as error:  # the other cells can still be measured
            message = self.options.explain(error)
            self.progress(f"{where}: failed: {message}")
            return failed_record(cell, self._settings(cell, {}), error, message)
        score = with_interval(record["scores"].get(self.metric, (math.nan,) * 3))
        remarks = "".join(f", {count:,} {what}" for what, count in shortcomings(record).items() if count)
        seconds = time.perf_counter() - began
        self.progress(f"{where}: {self.metric} {score}{remarks}, {seconds:.1f} s")
        return record

    def _measure(self, cell: Cell) -> Record:
        index = self.store.live_index(self.indexes.collection_for(cell.index))
        prices, sweep = self.options.prices, self.sweep
        environment = {**self.options.environment, "collection": index.collection}
        configuration = add_prices(cell.configuration(environment), prices)
        plan = EvaluationPlan(index.collection, sweep.ks, sweep.answers, judge=sweep.judge, dimensions=sweep.dimensions)
        result = evaluate(
            self.store,
            configuration,
            self.examples,
            plan,
            dataset=name_datasets(sweep.datasets),
            options=self.options.evaluation,
            progress=self.progress,
        )
        rows = self.store.evaluated_questions(result["evaluation"])
        searched = {"collection": index.collection, "id": index.id, "revision": index.revision}
        settings = self._settings(cell, asdict(index.settings))
        price = price_or_free(index.settings.model, prices)
        used = {
            agent.model: Price(prompt=agent.prompt_price, completion=agent.completion_price)
            for agent in all_agents(configuration)
        }
        more = {key: result[key] for key in ("fingerprint", "evaluation", "num_kept", "seconds")}
        more["prices"] = {model: each.model_dump() for model, each in {**used, index.settings.model: price}.items()}
        stats = self.store.index_stats(index.id)
        return measured_record(cell, settings, {**searched, **stats}, self.examples, rows, plan, price, **more)

    def _settings(self, cell: Cell, index: Mapping[str, Any]) -> dict[str, Any]:
        """Return all settings of the cell."""
        return {**public_settings(cell.configuration(self.options.environment)), **index, **cell.index}
