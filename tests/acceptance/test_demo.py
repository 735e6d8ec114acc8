"""`make demo` as a user runs it: it indexes, serves and answers with a source, and Ctrl-C leaves nothing behind."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.exhaustive

ROOT = Path(__file__).parents[2]


@pytest.fixture
def demo(tmp_path: Path) -> Iterator["subprocess.Popen[str]"]:
    environment = os.environ | {"RAYDEX_HOME": str(tmp_path / "home")}
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "jobs", "demo", "--port", str(port)]
    process = subprocess.Popen(
        command, env=environment, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    try:
        yield process
    finally:
        process.kill()


def test_the_demo_answers_with_a_source_and_ctrl_c_stops_all_of_it(demo, tmp_path):
    said = ""
    assert demo.stdout is not None
    for line in demo.stdout:
        said += line
        if "Ctrl-C stops everything" in line:
            break
    assert re.search(r"embedding only what\s+changed", said), said
    assert re.search(r"http://127\.0\.0\.1:\d+/freshness\.html#freshness", said), said
    assert demo.poll() is None
    ours = _processes(str(tmp_path / "home"))
    assert ours, "the embedded Postgres is a process of the demo"
    demo.send_signal(signal.SIGINT)
    assert demo.wait(60) == 0
    deadline = time.monotonic() + 60
    while _processes(str(tmp_path / "home")) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert _processes(str(tmp_path / "home")) == []


def _processes(marker: str) -> list[int]:
    """Pids of the processes whose command line or environment names `marker`, this one and the demo's pipe aside."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            try:
                text = (folder / "cmdline").read_bytes() + (folder / "environ").read_bytes()
                state = (folder / "stat").read_text().rsplit(")", 1)[1].split()[0]
            except OSError:
                continue
            if marker.encode() in text and state != "Z":
                found.append(int(folder.name))
    return found
