"""Shows in the metrics how fresh each collection is.

Looks at the database now and then, not at each scrape.
"""

import contextlib
import threading
from itertools import count

from pipelines.store import Freshness, Store, StoreUnavailable, is_copy
from serve.telemetry import Metrics

# Ray shows a gauge for seconds after it was set. Gauges hold times, so that an age is right between two looks.
SHOW_S, SHOWN_BETWEEN_LOOKS = 5.0, 60


class FreshnessGauges:
    """Sets the gauges of `metrics` until `close`."""

    def __init__(self, store: Store, metrics: Metrics) -> None:
        self._store, self._metrics, self._closing = store, metrics, threading.Event()
        threading.Thread(target=self._work, name="freshness", daemon=True).start()

    def close(self) -> None:
        self._closing.set()

    def _work(self) -> None:
        found: dict[str, Freshness] = {}
        for turn in count():
            if turn % SHOWN_BETWEEN_LOOKS == 0:
                with contextlib.suppress(StoreUnavailable):
                    found = look(self._store)
            for name, freshness in found.items():
                self._metrics.show_freshness(name, freshness)
            if self._closing.wait(SHOW_S):
                return


def look(store: Store) -> dict[str, Freshness]:
    """Return the freshness of each collection. Raises StoreUnavailable."""
    return {row["name"]: store.freshness(row["name"]) for row in store.collections() if not is_copy(row["name"])}
