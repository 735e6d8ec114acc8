"""A child process with an owner ends with it, however that one ends; the export of a model is such a process."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from pipelines.owned import run_owned

ROOT = Path(__file__).parents[3]
CHILD = "from pipelines.owned import end_with_owner; end_with_owner(); import time; time.sleep(600)"
OWNER = f"import sys; from pipelines.owned import run_owned; run_owned([sys.executable, '-c', {CHILD!r}])"
EXPORTER = """
from pathlib import Path
from pipelines.embedding.load import load_tokenizer
from pipelines.embedding.onnx.export import export_apart
from pipelines.records import IndexSettings
export_apart(load_tokenizer(IndexSettings().embedding), Path({path!r}), None)
"""


def end(program: str, number: signal.Signals) -> None:
    """Start a program, end it once it has a child, and wait for the end of that child."""
    with subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stderr=subprocess.DEVNULL) as owner:
        while not (children := psutil.Process(owner.pid).children()):
            assert owner.poll() is None, "it ended before it had a child"
            time.sleep(0.02)
        owner.send_signal(number)
        owner.wait()
    _, alive = psutil.wait_procs(children, timeout=300)
    assert not alive


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_child_ends_with_its_owner(number: signal.Signals) -> None:
    end(OWNER, number)


def test_owner_gets_the_exit_code_and_the_last_words() -> None:
    assert run_owned([sys.executable, "-c", "import sys; print('not this'); sys.exit('why')"]) == (1, "why\n")


@pytest.mark.exhaustive
def test_export_ends_with_the_process_that_wanted_it(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    end(EXPORTER.format(path=str(path)), signal.SIGKILL)
    assert not path.exists()
