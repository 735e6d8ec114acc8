"""The comparison with other libraries: calls over pipes, chunks as files, and the table, without the libraries."""

import sys
from pathlib import Path

import pytest

from benchmarks.peer import client
from benchmarks.peer.client import HERE, Worker, WorkerFailed, make_environment, versions_of
from benchmarks.peers import table

FAKE = """
import sys, threading
sys.path.insert(0, {here!r})
from worker import Opened, serve
opened, together, most = Opened(), threading.Semaphore(0), []
barrier = threading.Barrier(2)
def search(question):
    print("libraries print")
    if question == "wait": barrier.wait(60)
    return [question.upper(), str(1 / len(question))]
def end(): sys.exit("no memory")
opened.add("fake", [search] * 2)
serve({{"end": end, **opened.functions}})
"""


@pytest.fixture
def worker(tmp_path):
    script = tmp_path / "fake.py"
    script.write_text(FAKE.format(here=str(HERE)))
    with Worker(Path(sys.executable), script) as worker:
        yield worker


def test_worker_answers_calls_despite_output_of_its_library(worker):
    assert worker.call("hits", name="fake", questions=["ab", "ä\n"]) == [["AB", "0.5"], ["Ä\n", "0.5"]]
    asked = worker.call("ask", name="fake", questions=["a"] * 5, clients=1)
    assert len(asked["seconds"]) == 5 and asked["wall"] >= sum(asked["seconds"])
    assert worker.memory() > 1


def test_clients_ask_concurrently(worker):
    """Each waits for the other: sequential calls would never meet."""
    assert len(worker.call("ask", name="fake", questions=["wait"] * 4, clients=2)["seconds"]) == 4


def test_error_of_a_call_is_raised_here_and_the_next_call_is_answered(worker):
    with pytest.raises(WorkerFailed, match="ZeroDivisionError"):
        worker.call("hits", name="fake", questions=[""])
    assert worker.call("hits", name="fake", questions=["b"]) == [["B", "1.0"]]


def test_dead_worker_says_why(worker):
    with pytest.raises(WorkerFailed, match="no memory"):
        worker.call("end")


def test_environment_is_made_again_if_the_shared_packages_are_elsewhere(tmp_path, monkeypatch):
    made, folder, requirements = [], tmp_path / "peer", tmp_path / "peer.txt"
    requirements.write_text("llama==1\n")
    (folder / "lib/python3/site-packages").mkdir(parents=True)
    monkeypatch.setattr(client.subprocess, "run", lambda command, **_: made.append(command))
    make_environment(folder, requirements)
    make_environment(folder, requirements)
    assert len(made) == 2  # one command creates it, the other installs
    monkeypatch.setattr(client.sysconfig, "get_path", lambda _: "/elsewhere")
    make_environment(folder, requirements)
    assert len(made) == 4
    assert (folder / "lib/python3/site-packages/shared.pth").read_text() == "/elsewhere\n"


@pytest.mark.parametrize("short", ["llamaindex", "haystack"])
def test_each_peer_is_pinned(short):
    lines = [line for line in (HERE / f"{short}.txt").read_text().splitlines() if not line.startswith("#")]
    assert len(versions_of(HERE / f"{short}.txt")) == len(lines) > 0


def asked(p50):
    return {"p50": p50, "p95": 2 * p50, "rate": 1000 / p50, "rounds": [p50, p50]}


def test_table_shows_ratios_next_to_the_values_of_the_peers():
    took = {"Raydex": 10.0, "Raydex, fp32": 12.0, "LlamaIndex": 25.0, "Haystack": 40.0}
    known = {name: asked(s) for name, s in took.items() if name != "Raydex, fp32"}
    run = {"again": 1.0, "memory": 900.0, "chunks": 100}
    ingest = {name: {**run, "seconds": s, "rounds": [s]} for name, s in took.items()}
    query = {"chunks": 14_000, "known 1": known, "known 8": known, "memory": dict.fromkeys(took, 500.0)}
    text = table({"ingest": ingest, "real": query, "score": dict.fromkeys(took, 0.8)})
    head, _, *rows = [line.strip("| ").split(" | ") for line in text.splitlines()]
    assert head == ["Raydex", "Raydex, fp32", "LlamaIndex", "Haystack"]
    assert ["ingest of 100 chunks, s", "10.0", "12.0", "25.0 (2.5 ×)", "40.0 (4.0 ×)"] in rows
    (asked_once,) = (row[1:] for row in rows if "1 client: p50" in row[0])
    assert asked_once == ["10.0 / 20.0", "", "25.0 / 50.0 (2.5 ×)", "40.0 / 80.0 (4.0 ×)"]
    assert [row[1:] for row in rows if "questions/s" in row[0]] == [["100", "", "40", "25"]]
