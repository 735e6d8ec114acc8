"""kill -9 under load, of a replica of each deployment and of Postgres, loses no question.

Clients query all the time over real HTTP. Each question must end in an answer or in a 503 with Retry-After (a stream
that has begun: in its `answer`, or in an `error` event that says when to retry), and never in a 500, a truncated reply
or silence. The killed step has its own deployment with one replica, so nothing can replace it. The ingress has two
replicas if each step has a deployment. RAYDEX_KILL_SEED repeats the kill times of an earlier run.
"""

import json
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from kit.cluster import Service
from kit.processes import alive, eventually, keep_down, keeper, kill_9, kill_seed, postmaster
from kit.reporting import leave_table
from kit.scripted_llm import Reply, Request, ScriptedLLM
from kit.serving import PATIENCE_S, Load
from kit.workshop import Workshop

from pipelines import embedded
from pipelines.store import Store
from serve.settings import Settings

pytestmark = [pytest.mark.slow, pytest.mark.exhaustive]

CLIENTS = 4
PAUSE_S = 0.5  # leaves the machine some time for restarts
WELL_AGAIN_S = 240.0  # two Ray workers restart next to the clients, on a possibly busy machine
SITE = {
    "data.html": {
        "loading-csv": "Call ray.data.read_csv with a path to load csv files. It returns a dataset.",
        "parquet": "Parquet files are read by ray.data.read_parquet. It reads the schema first.",
    },
    "serve.html": {"batching": "Use the serve.batch decorator to batch requests. Set max_batch_size to bound it."},
}
QUESTION = "How do I load csv files?"
SLOWLY = "Is the schema of parquet files read first?"
ANSWER, DEGRADED, COME_BACK, ERROR_EVENT = "answer", "degraded answer", "503, come back", "error event, come back"
WAYS = ["/query", "/query/stream", "/search"]
KEPT = {ANSWER, DEGRADED, COME_BACK, ERROR_EVENT}


# ------------------------------------------------------------------------------------------------ questions


def ask_once(http: httpx.Client, path: str, question: str = QUESTION, begun: Callable[[], None] = lambda: None) -> str:
    """Ask, and return the question's outcome: one of KEPT, or the failure. Call `begun` when a stream begins."""
    try:
        if path.endswith("/stream"):
            return _stream_once(http, path, question, begun)
        reply = http.post(path, json={"question": question})
    except httpx.TimeoutException:
        return "hang"
    except httpx.HTTPError as error:
        return type(error).__name__
    return _end_of(reply.status_code, reply.headers, reply.json() if reply.status_code == 200 else {})


def _end_of(status: int, headers: httpx.Headers, body: dict[str, Any]) -> str:
    if status == 503:
        return COME_BACK if headers.get("retry-after", "").isdigit() else "503 without Retry-After"
    if status != 200:
        return str(status)
    return DEGRADED if body["degraded"] else ANSWER


def _stream_once(http: httpx.Client, path: str, question: str, begun: Callable[[], None]) -> str:
    began = time.monotonic()
    with http.stream("POST", path, json={"question": question}) as reply:
        if reply.status_code != 200:
            return _end_of(reply.status_code, reply.headers, {})
        name, data = "", "{}"
        for line in reply.iter_lines():
            begun()
            key, _, value = line.partition(":")
            name, data = (value.strip(), data) if key == "event" else (name, value if key == "data" else data)
            if time.monotonic() - began > PATIENCE_S:  # heartbeats keep a hanging stream from timing out
                return "hang"
    if name == "answer":
        return DEGRADED if json.loads(data)["degraded"] else ANSWER
    return ERROR_EVENT if name == "error" and json.loads(data).get("retry_after") else f"stream torn after {name}"


def ask_in_turn(http: httpx.Client, number: int) -> tuple[str, str]:
    """Ask over each route in turn."""
    return ask_once(http, WAYS[number % len(WAYS)]), ""


class Held:
    """Two questions, plain and streamed, whose model is in the middle of its answer at the kill.

    The stream's client has read the first line: before that, a 503 would also be correct.
    """

    def __init__(self, url: str, model: ScriptedLLM) -> None:
        self.ends: dict[str, str] = {}
        self._url = url
        self._begun = threading.Event()
        before = held(model)
        self._threads = [
            threading.Thread(target=self._ask, args=(path,), daemon=True) for path in ("/query", "/query/stream")
        ]
        for thread in self._threads:
            thread.start()
        eventually(lambda: held(model) == before + 2 and self._begun.is_set(), "both reached the model")

    def _ask(self, path: str) -> None:
        with client(self._url) as http:
            self.ends[path] = ask_once(http, path, SLOWLY, self._begun.set)

    def over(self) -> dict[str, str]:
        for thread in self._threads:
            thread.join(PATIENCE_S + 5)
        return self.ends


def held(model: ScriptedLLM) -> int:
    return sum(SLOWLY in request.text for request in model.asked)


def client(url: str) -> httpx.Client:
    return httpx.Client(base_url=url, timeout=PATIENCE_S)


# ------------------------------------------------------------------------------------------------ killing


def replicas(deployment: str) -> list[int]:
    """Return the pids of a deployment's replicas in this session's Ray."""
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            title = " ".join(process.cmdline())
        except psutil.Error:
            continue
        if title.startswith(f"ray::ServeReplica:raydex:{deployment}") and alive(process.pid):
            found.append(process.pid)
    return found


@dataclass
class Bench:
    """State shared by all cases: service, database folder, model, random kill times, table rows."""

    url: str
    home: Path
    model: ScriptedLLM
    random: random.Random
    table: list[tuple[str, ...]] = field(default_factory=list)

    def under_load(self, what: str, kills: Callable[[], None]) -> dict[str, str]:
        """Ask, kill and wait for recovery.

        Assert that no question was lost, and return the held questions' outcomes.
        """
        self.well(WELL_AGAIN_S)
        with Load(self.url, clients=CLIENTS, pause_s=PAUSE_S, ask=ask_in_turn) as load:
            time.sleep(self.random.uniform(0.5, 1.5))
            held = Held(self.url, self.model)
            began = time.monotonic()
            kills()
            ends = held.over()
            self.well(WELL_AGAIN_S)
            again_s = time.monotonic() - began
        counts = load.counts() + Counter(ends.values())
        cells = [f"{count} {end}" for end, count in sorted(counts.items())]
        self.table.append((what, f"{again_s:.1f} s", f"{load.longest_s():.1f} s", ", ".join(cells)))
        assert set(counts) <= KEPT and counts[ANSWER] > 0, (what, counts, ends)
        return ends

    def well(self, within_s: float) -> None:
        """Wait for three complete answers in a row over each route."""
        with client(self.url) as http:
            eventually(lambda: all(ask_once(http, path) == ANSWER for path in WAYS * 3), "all is well again", within_s)


def model() -> ScriptedLLM:
    """A model that answers immediately, but falls silent in the middle of its answer to SLOWLY."""

    def answers(request: Request) -> Reply:
        slow = SLOWLY in request.text
        deltas = ["Call read_csv ", "with a path ", "[1]."]
        return Reply(deltas=deltas, delay_s=0.02, **({"hang": True, "drop_after": 2} if slow else {}))

    return ScriptedLLM(default=answers)


@pytest.fixture(scope="module")
def bench(
    service: Service, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Bench]:
    """The retriever has its own deployment, and so has each other step if a test asks for `all`."""
    home, others = tmp_path_factory.mktemp("home"), "deployment" if hasattr(request, "param") else "ingress"
    seed = kill_seed()
    with embedded.run_postgres(home) as url, model() as llm:
        with Store(url) as store:
            store.migrate()
            Workshop(store).reindex(SITE)
        with service.deployed(settings(url, home, llm, others)):
            bench = Bench(service.url, home, llm, random.Random(seed))
            yield bench
    head = ("killed", "well again after", "longest wait", "how the questions ended")
    leave_table(request.config, f"kills under load (RAYDEX_KILL_SEED={seed}, {CLIENTS} clients)", head, bench.table)


def settings(url: str, home: Path, llm: ScriptedLLM, others: str) -> Settings:
    return Settings.model_validate(
        {
            "database_url": url,
            "home": home,
            "cpus": 0.1,
            "replicas": 2 if others == "deployment" else 1,
            "agents": [{"name": "strong", "model": "strong-1", "base_url": llm.url, "api_key": "k",
                        "first_token_s": 3, "between_tokens_s": 3, "retries": 0}],
            "reranker": {"kind": "endpoint", "url": llm.url, "model": "scripted"},
            "placement": {"retriever": "deployment", "reranker": others, "agents": others},
            "step_timeout_s": 10,
            "retrieval": {"vector_weight": 0.1},
        }
    )  # fmt: skip


def test_answers_outlive_the_only_retriever(bench: Bench) -> None:
    ends = bench.under_load("Retriever", lambda: kill_9(*replicas("Retriever")))
    assert set(ends.values()) <= {ANSWER, DEGRADED}


@pytest.mark.parametrize("bench", ["all"], indirect=True)
@pytest.mark.parametrize("deployment", ["Reranker", "Agent-strong"])
def test_answers_outlive_the_only_replica_of_a_step(bench: Bench, deployment: str) -> None:
    ends = bench.under_load(deployment, lambda: kill_9(*replicas(deployment)))
    assert set(ends.values()) <= {ANSWER, DEGRADED}  # retrieved hits are answered, by another agent if necessary


@pytest.mark.parametrize("bench", ["all"], indirect=True)
def test_answers_outlive_one_of_two_ingress_replicas(bench: Bench) -> None:
    bench.under_load("Raydex, one of two", lambda: kill_9(bench.random.choice(replicas("Raydex"))))


def test_readers_come_back_after_every_ingress_replica_is_killed(bench: Bench) -> None:
    ends = bench.under_load("Raydex, every replica", lambda: kill_9(*replicas("Raydex")))
    assert ends == {"/query": COME_BACK, "/query/stream": ERROR_EVENT}


@pytest.mark.parametrize(("what", "kill"), [
    ("Postgres", lambda home: kill_9(postmaster(home))),
    ("keeper of Postgres", lambda home: kill_9(keeper(home))),
    ("Postgres, gone for 5 s", lambda home: keep_down(home, 5.0)),
])  # fmt: skip
def test_answers_outlive_a_killed_database(bench: Bench, what: str, kill: Callable[[Path], None]) -> None:
    ends = bench.under_load(what, lambda: kill(bench.home))
    assert set(ends.values()) <= {ANSWER, DEGRADED}
