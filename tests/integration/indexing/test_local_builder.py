"""Small runs are done in one process: without Ray, and with the same index as with Ray."""

import math
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from kit.counting_model import MODEL as COUNTING
from kit.counting_model import CountingModel
from kit.databases import end_sessions
from kit.kill_bench import stored_hashes
from kit.processes import alive, eventually, kill_9
from kit.reindexing import Jobs, site_sections, write_site
from kit.workshop import BASE

from pipelines.embedding.embedder import Embedder
from pipelines.embedding.hashed import HashEmbedder
from pipelines.embedding.tokens import TokenCounter
from pipelines.indexing import gather
from pipelines.indexing.building.local import LocalBuilder
from pipelines.indexing.building.pools import HERE_PAGES, is_little
from pipelines.indexing.building.ray_builder import RayBuilder
from pipelines.indexing.reading import formats
from pipelines.store import Store

pytestmark = pytest.mark.slow
MODEL = ("--model", "hash:64", "--parallel-workers", 0, "--maintenance-work-mem", "64MB", "--no-ray")
ROOT = Path(__file__).parents[3]


@pytest.fixture
def folder(jobs: Jobs, tmp_path: Path) -> Path:
    write_site(tmp_path / "site", site_sections(12))
    jobs.common = ["--path", tmp_path / "site", "--base-url", BASE, *MODEL]
    return tmp_path / "site"


def test_page_that_timed_out_is_retried_alone_with_more_time(jobs, folder, monkeypatch):
    long = "".join(f"<p>Paragraph {number} says what the others say.</p>" for number in range(5_000))
    (folder / "long.html").write_text(f"<main><h1 id='long'>Long</h1>{long}</main>")
    monkeypatch.setattr(formats, "SECONDS_PER_MB", 0.0)
    object.__setattr__(formats.HTML, "timeout_s", 0.1)
    try:
        monkeypatch.setattr("pipelines.indexing.building.local.PATIENCE", 1.0)
        failed = jobs.reindex()
        monkeypatch.setattr("pipelines.indexing.building.local.PATIENCE", 100.0)
        done = jobs.reindex("--retry-failed")
    finally:
        object.__setattr__(formats.HTML, "timeout_s", formats.TIMEOUT_S)
    assert failed.summary["failures"][0]["error"].endswith("0.1 s of CPU time: reading it takes too long")
    assert done.summary["pages"].items() >= {"failed": 0, "indexed": 13}.items()


def test_model_error_ends_the_run_and_the_next_run_resumes(jobs, folder, monkeypatch):
    embed, slices = HashEmbedder.embed_chunks, []

    def fail_later(self: HashEmbedder, texts: list[str]) -> object:
        slices.append(len(texts))
        if len(slices) == 2:
            raise RuntimeError("the model is broken")
        return embed(self, texts)

    monkeypatch.setattr("pipelines.indexing.building.local.SLICE", 10)
    monkeypatch.setattr(HashEmbedder, "embed_chunks", fail_later)
    failed = jobs.reindex()
    [run] = jobs.verb("status").summary["collections"]["docs"]["runs"]
    assert (failed.code, run["state"]) == (1, "failed")
    assert "the model is broken" in failed.messages and "the model is broken" in run["error"]
    monkeypatch.setattr(HashEmbedder, "embed_chunks", embed)
    assert jobs.reindex().summary["chunks"].items() >= {"total": 36, "embedded": 26, "reused": 10}.items()


def test_none_of_ray_torch_and_pandas_is_imported(jobs: Jobs, folder: Path) -> None:
    code = (
        "import sys; from jobs import reindex; from jobs.cli import run_job;"
        f"flags = {[*map(str, jobs.common[:-1])]!r};"  # like a user, without --no-ray
        "code = run_job(reindex.app, flags);"
        "found = {'ray', 'torch', 'sentence_transformers', 'transformers', 'pandas'} & set(sys.modules);"
        "sys.exit(code or (str(found) if found else 0))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_actor_imports_do_not_load_torch() -> None:
    """Loading an exported model does not import it either: see test_onnx_encoder.py."""
    code = "import sys; import pipelines.indexing.building.ray_builder; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


@pytest.fixture
def model() -> Iterator[CountingModel]:
    with CountingModel(0.0) as model:
        model.rest_after(100, since=0.0)
        yield model


@pytest.fixture
def run(
    jobs: Jobs, model: CountingModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[subprocess.Popen]:
    """Start a run in its own process, with some vectors stored and the others waiting for the model."""
    monkeypatch.setenv("OPENAI_BASE_URL", model.url)
    write_site(tmp_path / "site", site_sections(80))
    jobs.common = ["--path", tmp_path / "site", "--base-url", BASE, *MODEL[2:], "--model", COUNTING]
    command = [sys.executable, "-m", "jobs.reindex", "--collection", "docs", *map(str, jobs.common)]
    hears = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # background tests have the signal ignored
    popen = partial(subprocess.Popen, command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    with popen(preexec_fn=hears) as process:
        try:
            eventually(lambda: stored_hashes(jobs.url), "a slice of the vectors is stored", 120)
            assert process.poll() is None
            yield process
        finally:
            process.kill()


def reads(process: subprocess.Popen) -> list[int]:
    """Return the pids of the run's children that read its pages."""
    return [child.pid for child in psutil.Process(process.pid).children(recursive=True)]


@pytest.mark.parametrize("end", [signal.SIGKILL, pytest.param(signal.SIGINT, marks=pytest.mark.exhaustive)])
def test_next_run_finishes_a_stopped_one_and_embeds_nothing_twice(jobs, run, model, end):
    children = reads(run)
    run.send_signal(end)
    assert run.wait(120) == (-9 if end is signal.SIGKILL else 130)
    eventually(lambda: not any(map(alive, children)), "its children have ended")
    at, stored = time.monotonic(), stored_hashes(jobs.url)
    assert 0 < len(stored) < 240
    model.go_on()
    finished = jobs.reindex("--wait").summary  # Postgres may still be executing the ended run's last statement
    assert finished["chunks"].items() >= {"total": 240, "embedded": 240 - len(stored), "reused": len(stored)}.items()
    assert not stored & set(model.hashes(since=at))


def test_run_survives_the_death_of_its_reader_and_database_sessions(jobs, run, model):
    with Store(jobs.url) as store:  # the page that a killed process was reading is a failed one
        eventually(lambda: store.staged_counts(1)["pages"] == 80, "all pages are read")
    kill_9(*reads(run))
    assert end_sessions(jobs.url) >= 2
    model.go_on()
    assert run.wait(60) == 0, run.stderr.read() if run.stderr else ""
    assert len(jobs.texts()) == 240


@pytest.mark.exhaustive
def test_large_run_starts_locally_and_finishes_on_ray(jobs, folder, local_ray, monkeypatch):
    """This happens on a user's machine if no Ray is connected."""
    for name, value in {"is_little": lambda *_: False, "is_connected": lambda: False, "PAGES_PER_RANGE": 2}.items():
        monkeypatch.setattr(gather, name, value)
    built: list[str] = []
    for builder in (LocalBuilder, RayBuilder):
        stored = builder.stored
        monkeypatch.setattr(builder, "stored", lambda *args, to=stored: [built.append(to.__qualname__), to(*args)][1])
    jobs.common = jobs.common[:-1]
    first = jobs.reindex().summary
    assert built == ["LocalBuilder.stored", "RayBuilder.stored"]
    assert first["chunks"] == {"total": 36, "embedded": 36, "reused": 0, "written": 36, "deleted": 0}
    site = site_sections(12)
    assert jobs.texts() == {f"{page}.html#{anchor}": text for page in site for anchor, text in site[page].items()}


def test_ray_gets_no_work_if_everything_started_locally(
    jobs: Jobs, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This happens with a few large pages on a machine with many CPUs."""
    asked: list[object] = []
    for name in ("is_little", "is_connected"):
        monkeypatch.setattr(gather, name, lambda *_: False)
    monkeypatch.setattr(gather, "connect_ray", lambda _: nullcontext(SimpleNamespace(machines=list)))
    monkeypatch.setattr(gather.Gatherer, "ray_builder", lambda _: SimpleNamespace(stored=asked.append, embedders=1))
    jobs.common = jobs.common[:-1]
    assert jobs.reindex().summary["chunks"]["embedded"] == 36
    assert asked == []


def test_failed_run_does_not_wait_for_what_it_loads_early(jobs, folder, monkeypatch):
    run_ended, loaded = threading.Event(), []

    def load(*_: object) -> bool:
        run_ended.wait(60)
        loaded.append(True)
        return False

    def fail(_: gather.Gatherer) -> None:
        raise RuntimeError("the folder can't be read")

    monkeypatch.setattr(gather, "will_export", load)
    monkeypatch.setattr(gather.Gatherer, "_read_here", fail)
    failed = jobs.reindex()
    assert "the folder can't be read" in failed.messages and not loaded
    run_ended.set()


def test_texts_truncated_by_the_model_are_counted(jobs, folder, monkeypatch):
    def reads_less(self: HashEmbedder, counter: TokenCounter) -> None:
        Embedder.__init__(self, replace(counter, max_tokens=5))
        self.embedded = 0

    monkeypatch.setattr(HashEmbedder, "__init__", reads_less)
    done = jobs.reindex().summary
    assert done["warnings"] == ["36 texts are longer than the model hash:64 reads: their ends are not in their vectors"]
    assert done["seconds"].keys() >= {"read_files", "embed", "encoder", "storing", "publish", "total"}
    assert done["seconds"]["ray_start"] == 0


def test_small_run_is_limited_by_pages_and_bytes_per_cpu() -> None:
    assert is_little(10**6, 10**9, cpus=2)
    assert is_little(HERE_PAGES, 0, cpus=8)
    assert not is_little(HERE_PAGES + 1, 0, cpus=8)
    assert is_little(100, 2_000_000, cpus=16)
    assert not is_little(100, 4_000_000, cpus=16)
    assert is_little(100, 1_000_000, cpus=math.inf)
    assert not is_little(100, 2_000_000, cpus=math.inf)
