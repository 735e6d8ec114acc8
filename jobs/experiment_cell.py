"""One cell of a sweep is asked its questions on the index it needs; what came of it is a record, measured or failed.

The edge of `jobs.experiment` that knows store and Ray; what the records say together is pipelines/evaluation.
"""

import argparse
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from jobs.cli import describe_error, say
from jobs.environment import ray_address
from jobs.experiment_index import SweepIndexes
from pipelines.answering.settings import AgentSettings, AnswerSettings, all_agents
from pipelines.evaluation.dataset import Example
from pipelines.evaluation.evaluator import EvaluationPlan
from pipelines.evaluation.experiments.comparison import Record, done, failed
from pipelines.evaluation.experiments.cost import Price, UnknownPrice, price_of
from pipelines.evaluation.experiments.sweep import Cell, Sweep
from pipelines.evaluation.fingerprint import public_settings
from pipelines.evaluation.run import EvaluationOptions, evaluate
from pipelines.store import Store


@dataclass(frozen=True)
class Measuring:
    """Measures the cells of one sweep."""

    store: Store
    sweep: Sweep
    examples: Sequence[Example]
    environment: Mapping[str, Any]
    indexes: SweepIndexes
    args: argparse.Namespace
    prices: Mapping[str, Price]

    def __call__(self, number: int, cell: Cell) -> Record:
        """The record of a cell, measured or failed."""
        where = f"[{number}/{len(self.sweep.cells)}] {cell.name}"
        began = time.perf_counter()
        try:
            record = self._measure(cell)
        except Exception as error:  # whatever it is, the other configurations can be measured
            said = describe_error(error)[0]
            say(f"{where}: failed: {said}")
            return failed(cell, self._settings(cell, {}), error, said)
        value, low, high = record["scores"].get(self.args.metric, (math.nan,) * 3)
        said = "".join(f", {count:,} {what}" for what, count in shortcomings(record).items() if count)
        seconds = time.perf_counter() - began
        say(f"{where}: {self.args.metric} {value:.3f} [{low:.3f}, {high:.3f}]{said}, {seconds:.1f} s")
        return record

    def _measure(self, cell: Cell) -> Record:
        index = self.store.live_index(self.indexes.collection(cell.index))
        configuration = priced(cell.configuration({**self.environment, "collection": index.collection}), self.prices)
        plan = EvaluationPlan(
            index.collection,
            self.sweep.ks,
            self.sweep.answers,
            judge=self.sweep.judge,
            dimensions=self.sweep.dimensions,
        )
        options = EvaluationOptions(self.args.fresh, self.args.workers, 0, ray_address())
        dataset = self.sweep.dataset.name
        result = evaluate(
            self.store, configuration, self.examples, plan, dataset=dataset, options=options, progress=say
        )
        rows = self.store.evaluated_questions(result["evaluation"])
        about = {
            "collection": index.collection,
            "id": index.id,
            "revision": index.revision,
            **self.store.index_stats(index.id),
        }
        settings = self._settings(cell, asdict(index.settings))
        price = known_price(index.settings.model, self.prices)
        used = {a.model: Price(a.prompt_price, a.completion_price) for a in all_agents(configuration)}
        more = {key: result[key] for key in ("fingerprint", "evaluation", "num_kept", "seconds")}
        more["prices"] = {model: asdict(each) for model, each in {**used, index.settings.model: price}.items()}
        return done(cell, settings, about, self.examples, rows, plan, price, **more)

    def _settings(self, cell: Cell, index: Mapping[str, Any]) -> dict[str, Any]:
        """All that the cell was made with."""
        return {**public_settings(cell.configuration(self.environment)), **index, **cell.index}


def shortcomings(record: Record) -> dict[str, int]:
    """How many questions were not answered, answered by less than all that was configured, or not scored."""
    failed_scores = {f"without {name}": count for name, count in record["score_errors"].items()}
    return {"failed": record["errors"], "degraded": record["degraded"], **failed_scores}


def priced(configuration: AnswerSettings, prices: Mapping[str, Price]) -> AnswerSettings:
    """`configuration` with the known prices of those agents that name none; every call then says what it cost."""
    agents = [_priced(agent, prices) for agent in all_agents(configuration)]
    return configuration.model_copy(update={"agents": agents, "llm_model": "", "llm_url": "", "llm_key": ""})


def _priced(agent: AgentSettings, prices: Mapping[str, Price]) -> AgentSettings:
    if agent.prompt_price or agent.completion_price:
        return agent
    price = known_price(agent.model, prices)
    return agent.model_copy(update={"prompt_price": price.prompt, "completion_price": price.completion})


def known_price(model: str, prices: Mapping[str, Price]) -> Price:
    """The price of a model, nothing where none is known."""
    try:
        return price_of(model, prices)
    except UnknownPrice:
        return Price()
