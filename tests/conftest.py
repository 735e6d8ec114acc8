"""Shares fixtures: one Postgres, Ray and Serve per session, and a fresh database per test.

Each of them starts when the first test requests it. Every worker of pytest-xdist has its own. Tests never see the data
or the settings of the machine that they run on.
"""

import gc
import importlib
import os
import shutil
import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from kit import young_clock  # noqa: F401  before anything of ours takes a clock
from kit.databases import EMPTY, DatabaseServer, url_of
from kit.reporting import Tables
from kit.scheduling import FileScheduling, longest_first, rotated_folders, spare_reports, uses_ray
from kit.warm_python import COLD, run_warm_python
from xdist.remote import Producer

from pipelines import embedded
from pipelines.llm.pace import pace_of
from pipelines.store import Store

if TYPE_CHECKING:
    from kit.browser import Browser
    from kit.cluster import Service
    from kit.reindexing import Jobs

# No deadline: a busy machine is not a failure. `make test` always tries the same few examples, `make test-all` many new
# ones.
settings.register_profile("some", deadline=None, max_examples=40, derandomize=True)
settings.register_profile("many", deadline=None, max_examples=200)

ROOT = Path(__file__).parents[1]
WORKER = os.environ.get("PYTEST_XDIST_WORKER", "")
FIRST_WORKER = "gw0"  # gets the tests that use Ray (tests/kit/scheduling.py)
MEMORY, ENOUGH_BYTES = Path("/dev/shm"), 4 << 30
RAY = ExitStack()  # the running parts of the session's Ray and Serve


def pytest_configure(config: pytest.Config) -> None:
    # A script's background jobs ignore Ctrl-C, and so would the commands under test.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    settings.load_profile("some" if config.option.markexpr == "not exhaustive" else "many")
    gc.disable()  # imported and collected objects stay: collecting garbage among them costs a worker 7 of 37 s
    config.pluginmanager.register(Tables())
    if config.option.durations is None and not config.option.xmlpath:
        spare_reports(config)
    if WORKER and config.args == ["tests"]:
        import_scrapy()
        config.args = rotated_folders(WORKER)
        if WORKER != FIRST_WORKER:
            os.nice(5)  # tests that use Ray finish sooner this way, and an idle Ray costs as much


def import_scrapy() -> None:
    """Import Scrapy in a thread: it inspects its callers' source code, and pytest's collection has many callers."""
    thread = threading.Thread(target=importlib.import_module, args=["scrapy.core.downloader.contextfactory"])
    thread.start()
    thread.join()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> FileScheduling:
    return FileScheduling(config, log)


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items[:] = longest_first(items)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    if uses_ray(item) and not uses_ray(nextitem):
        RAY.close()


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session", autouse=True)
def nothing_of_this_machine() -> None:
    """Hide the settings of the machine's user from the tests."""
    for name in ("DATABASE_URL", "RAYDEX_HOME", "RAY_ADDRESS", "OPENAI_BASE_URL", "OPENAI_API_KEY"):
        os.environ.pop(name, None)
    os.environ |= {"RAY_worker_niceness": "0"}  # with Ray's own 15, a busy machine starves its workers
    os.environ["OLLAMA_HOST"] = "127.0.0.1:9"  # nothing listens there: no Ollama of this machine answers a test


@pytest.fixture(autouse=True)
def no_known_speeds() -> None:
    """Forget how fast each endpoint's model is: the system gives one test's port to a later test's server."""
    pace_of.cache_clear()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory, nothing_of_this_machine: None) -> Iterator[DatabaseServer]:
    """Start the session's Postgres, one per worker of pytest-xdist. It keeps its 300 files per database in memory."""
    in_memory = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free >= ENOUGH_BYTES
    with TemporaryDirectory(prefix="raydex-", dir=MEMORY if in_memory else tmp_path_factory.getbasetemp()) as folder:
        home = Path(folder, "home")
        with embedded.run_scratch_postgres(home), closing(DatabaseServer(home)) as server:
            yield server


@pytest.fixture
def empty_database_url(server: DatabaseServer) -> Iterator[str]:
    """Return a superuser's URL of a database without tables, which is dropped after the test."""
    with server.database(EMPTY) as url:
        yield url


@pytest.fixture
def database_url(server: DatabaseServer) -> Iterator[str]:
    """Return the URL of a fresh database with Raydex's tables, which is dropped after the test."""
    with server.database() as url:
        yield url


@pytest.fixture
def superuser_url(server: DatabaseServer, database_url: str) -> str:
    """Return the superuser's URL of the same database."""
    return url_of(server.url, database_url.rpartition("/")[2])


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    """Return a Store on a fresh database. It tries each call once."""
    with Store(database_url) as store:
        yield store


@pytest.fixture(scope="session")
def warm_program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the program that replaces Python, of one server per session."""
    with run_warm_python(tmp_path_factory.mktemp("warm")) as program:
        yield program


@pytest.fixture
def warm(warm_program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Start crawlers and readers with everything imported, for tests of their work rather than of their startup."""
    monkeypatch.setattr("sys.executable", warm_program)


@pytest.fixture
def cold(warm: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Start real processes, in a module whose other tests are warm. For tests of a process's memory and its end."""
    monkeypatch.setattr("sys.executable", COLD)


@pytest.fixture(scope="session")
def chromium(nothing_of_this_machine: None) -> Iterator["Browser"]:
    """Return the session's browser. Starting one and loading a first page takes as long as eight tests."""
    from kit.browser import Browser

    with Browser() as browser:
        yield browser


@pytest.fixture
def browser(chromium: "Browser") -> "Browser":
    """Return the session's browser with an empty page and without the data that other pages stored."""
    chromium.renew()
    return chromium


@pytest.fixture(scope="session")
def local_ray(nothing_of_this_machine: None) -> None:
    """Start the session's Ray, which ends with the last test of its group.

    Tests that kill its processes leave it usable.
    """
    from kit import cluster

    RAY.enter_context(cluster.local_ray())


@pytest.fixture(scope="session")
def service(local_ray: None) -> "Service":
    """Start the session's Serve. Each module deploys its own application."""
    from kit import cluster

    return RAY.enter_context(cluster.local_serve())


@pytest.fixture(scope="session")
def data() -> Path:
    """Return the folder with real data. Tests that need it skip if it is missing."""
    folder = Path(os.environ.get("RAYDEX_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no real data at {folder}: set RAYDEX_DATA")
    return folder


@pytest.fixture(scope="session")
def exports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder with the default model's export. All workers share it, because it takes ten CPU seconds."""
    from pipelines.embedding.load import load_tokenizer
    from pipelines.embedding.onnx.export import open_export

    folder = tmp_path_factory.getbasetemp()
    model = load_tokenizer("all-MiniLM-L6-docs-v1")
    return open_export(model, (folder.parent if WORKER else folder) / "exports")[0].parent


@pytest.fixture
def jobs(database_url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, warm: None) -> "Jobs":
    """Return a runner of jobs in this process on a fresh database."""
    from kit.reindexing import Jobs

    monkeypatch.setenv("DATABASE_URL", database_url)
    return Jobs(database_url, capsys)
