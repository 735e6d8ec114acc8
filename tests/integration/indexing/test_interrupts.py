"""Ctrl-C and SIGTERM end a run as interrupted: in the output, in the exit code, and in the database."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from kit.web import Site, page

ROOT = Path(__file__).parents[3]


@pytest.mark.slow
@pytest.mark.parametrize(
    "number",
    [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.exhaustive)],
    ids=lambda number: number.name,
)
def test_run_stopped_by_a_person_is_interrupted_not_failed(jobs, store, tmp_path, number):
    asked, over = threading.Event(), threading.Event()

    def never(_handler: object) -> None:
        asked.set()
        over.wait(60)

    with Site({"/": page("/slow"), "/slow": never}) as site:
        words = ["index", f"{site.url}/", "--allow-private", "--collection", "docs", "--no-ray", "--model", "hash:64"]
        run = subprocess.Popen([sys.executable, "-m", "jobs", *words], cwd=ROOT, text=True, stderr=subprocess.PIPE,
                               env=os.environ | {"DATABASE_URL": jobs.url, "RAYDEX_HOME": str(tmp_path)})  # fmt: skip
        assert asked.wait(60)
        while not store.known_page("docs", f"{site.url}/"):  # a run without a stored page is forgotten, not recorded
            assert run.poll() is None
            time.sleep(0.02)
        run.send_signal(number)
        said = run.communicate(timeout=120)[1]
        over.set()
    assert run.returncode == 128 + number
    assert said.splitlines()[-1] == (
        "raydex index: interrupted; what was done is kept, the next run continues from there"
    )
    assert "Traceback" not in said and "KeyboardInterrupt" not in said
    [recorded] = store.status("docs")["runs"]
    assert (recorded["state"], recorded["error"]) == ("interrupted", None)
    assert recorded["ended"] is not None
