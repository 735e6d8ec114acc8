"""`python -m jobs.database` keeps the embedded Postgres running for others until it is stopped."""

import os
import signal
import subprocess
import sys

import pytest

from pipelines.store import can_connect

pytestmark = pytest.mark.slow


def test_command_prints_a_working_url_until_it_is_stopped(tmp_path):
    environment = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    holder = subprocess.Popen(
        [sys.executable, "-m", "jobs.database"], env=environment | {"RAYDEX_HOME": str(tmp_path)}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        line = holder.stdout.readline()
        assert line.startswith("export DATABASE_URL=postgresql://")
        assert can_connect(line.strip().removeprefix("export DATABASE_URL="))
    finally:
        holder.send_signal(signal.SIGTERM)
    assert holder.wait(120) == 0
