"""Measures readers' waiting time during a run on the same cluster, compared with the same questions without it.

    python -m benchmarks.beside_a_run --collection NAME [--url URL] [--rounds 3] [--clients 2] [--key KEY]
        -- raydex submit index …

Requires a service at `--url` with the queried collection, and a command for the run. `{round}` in the command is the
round's number, as in `--collection night{round}`, so that each round builds its own collection. A round asks before and
after the run, half of the time each, and during it until it ends, so that other work on the machine affects both
equally. Clients pause for 0.2 s between questions. Each round takes about twice as long as the command.
"""

import argparse
import itertools
import json
import statistics
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import httpx

from benchmarks import tables

QUESTIONS = Path(__file__).parent / "questions/newcomers.jsonl"
PAUSE_S, TIMEOUT_S = 0.2, 60.0
LEAST_S = 20.0  # of asking before the first run, whose duration is still unknown


@dataclass
class Clients:
    """Clients that ask one question after another. `seconds` has the duration of each answer."""

    url: str
    count: int
    questions: Sequence[str]
    collection: str
    key: str = ""
    seconds: list[float] = field(default_factory=list)
    failed: int = 0

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Ask while the block runs."""
        over = threading.Event()
        threads = [threading.Thread(target=self._ask, args=(first, over)) for first in range(self.count)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            over.set()
            for thread in threads:
                thread.join()

    def _ask(self, first: int, over: threading.Event) -> None:
        headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        with httpx.Client(base_url=self.url, timeout=TIMEOUT_S, headers=headers) as http:
            for question in itertools.islice(itertools.cycle(self.questions), first * 7, None):
                began = time.perf_counter()
                reply = http.post("/search", json={"question": question, "collection": self.collection})
                self.seconds.append(time.perf_counter() - began)
                self.failed += reply.status_code != httpx.codes.OK
                if over.wait(PAUSE_S):
                    return

    def quantiles_ms(self) -> tuple[float, float]:
        """Return the median and the 95th percentile."""
        cuts = statistics.quantiles(self.seconds, n=20, method="inclusive")
        return cuts[9] * 1000, cuts[18] * 1000


def measure(clients: Clients, command: Sequence[str], rounds: int) -> list[tuple[Clients, Clients, float]]:
    """Return for each round the clients without and during the run, and the run's seconds."""
    done: list[tuple[Clients, Clients, float]] = []
    alone_s = LEAST_S
    for number in range(rounds):
        alone, beside = (replace(clients, seconds=[]) for _ in range(2))
        with alone.asking():
            time.sleep(alone_s / 2)
        began = time.perf_counter()
        with beside.asking():
            subprocess.run([word.replace("{round}", str(number)) for word in command], check=True)
        took = time.perf_counter() - began
        with alone.asking():
            time.sleep(alone_s / 2)
        alone_s = max(LEAST_S, took)
        done.append((alone, beside, took))
        print(as_row(number, *done[-1]), flush=True)
    return done


def as_row(number: int, alone: Clients, beside: Clients, took: float) -> list[str]:
    """Return a round's row: the run, both quantiles without and during it, and their ratios."""
    (median, p95), (median_beside, p95_beside) = alone.quantiles_ms(), beside.quantiles_ms()
    counts = f"{len(alone.seconds)}, {len(beside.seconds)}"
    failed = alone.failed + beside.failed
    return [
        *(str(number + 1), f"{took:.0f} s", counts, f"{median:.0f}, {p95:.0f} ms"),
        *(
            f"{median_beside:.0f}, {p95_beside:.0f} ms",
            f"{median_beside / median:.1f}, {p95_beside / p95:.1f}",
            str(failed),
        ),
    ]


HEAD = ("round", "run", "answers alone, beside", "alone: median, p95", "beside the run", "ratios", "failed")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--clients", type=int, default=2)
    parser.add_argument("--key", default="", help="of the service, where it asks for one")
    parser.add_argument("--collection", required=True, help="the one that is asked")
    parser.add_argument("command", nargs="+")
    args = parser.parse_args()
    questions = [json.loads(line)["question"] for line in QUESTIONS.read_text().splitlines()]
    clients = Clients(args.url, args.clients, questions, args.collection, args.key)
    rows = [as_row(number, *each) for number, each in enumerate(measure(clients, args.command, args.rounds))]
    print(tables.as_table(HEAD, rows))


if __name__ == "__main__":
    main()
