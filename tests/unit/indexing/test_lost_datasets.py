"""A dataset lost with a dead node is restarted, but not forever."""

from types import SimpleNamespace

import pytest
from ray.exceptions import ActorUnschedulableError, StreamingGeneratorReplayInconsistentError

from pipelines.indexing.building.ray_builder import DatasetLost, run_dataset, table_of_stored
from pipelines.indexing.building.steps import Stored, Work
from pipelines.indexing.gather import ATTEMPTS, Gatherer

BATCH = Stored(stored=3, too_long=1, warning="", read=Work(5.0, 0.5), embed=Work(6.0, 1.5), store=Work(8.0, 0.25))
LOST = [ActorUnschedulableError("its node is gone"), StreamingGeneratorReplayInconsistentError("64 objects, not 110")]


def dataset(*failures: Exception) -> SimpleNamespace:
    """Return a dataset with one row that fails after it."""

    def iter_batches(**_: object):
        yield table_of_stored(BATCH)
        for failure in failures:
            raise failure

    return SimpleNamespace(iter_batches=iter_batches)


class Run:
    """The parts of a run that a Gatherer needs on Ray, with a dataset for each attempt."""

    def __init__(self, *datasets: SimpleNamespace) -> None:
        self.datasets, self.rows, self.told = list(datasets), [], []
        self._log = SimpleNamespace(tell=self.told.append)

    def ray_builder(self) -> SimpleNamespace:
        return self.datasets.pop(0)

    def _consume(self, stored: object) -> None:
        for row in stored:
            self.rows.append(row)

    def gather(self) -> None:
        Gatherer._gather_on_ray(self, run_dataset)


@pytest.mark.parametrize("lost", LOST)
def test_work_lost_with_a_dead_node_is_repeated(lost):
    run = Run(dataset(lost), dataset())
    run.gather()
    assert (run.rows, run.datasets) == ([BATCH, BATCH], [])
    assert run.told == ["a node was lost: its unfinished work is done again"]


def test_repeating_stops_after_some_attempts():
    run = Run(*[dataset(LOST[1])] * (ATTEMPTS + 1))
    with pytest.raises(DatasetLost, match="64 objects"):
        run.gather()
    assert len(run.datasets) == 1


def test_other_failures_are_not_repeated():
    run = Run(dataset(RuntimeError("the database is full")), dataset())
    with pytest.raises(RuntimeError, match="full"):
        run.gather()
    assert len(run.datasets) == 1
