"""`make demo` as a user runs it: it indexes, serves and answers with a source, and Ctrl-C leaves nothing behind."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from kit.head_process import ROOT, free_ports
from kit.processes import eventually, marked, postmaster

pytestmark = pytest.mark.exhaustive


@pytest.fixture
def demo(tmp_path: Path) -> Iterator["subprocess.Popen[str]"]:
    environment = os.environ | {"RAYDEX_HOME": str(tmp_path / "home")}
    command = [sys.executable, "-m", "jobs", "demo", "--port", *free_ports(1)]
    process = subprocess.Popen(
        command, env=environment, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    try:
        yield process
    finally:
        process.kill()


def test_demo_answers_with_a_source_and_ctrl_c_stops_everything(demo, tmp_path):
    said = ""
    assert demo.stdout is not None
    for line in demo.stdout:
        said += line
        if "Ctrl-C stops everything" in line:
            break
    assert re.search(r"embedding only what\s+changed", said), said
    assert re.search(r"http://127\.0\.0\.1:\d+/freshness\.html#freshness", said), said
    assert demo.poll() is None
    mark = f"RAYDEX_HOME={tmp_path / 'home'}"
    assert postmaster(tmp_path / "home") in marked(mark), "the embedded Postgres is a process of the demo"
    demo.send_signal(signal.SIGINT)
    assert demo.wait(60) == 0
    eventually(lambda: marked(mark) == [], "all of it has ended", 60)
