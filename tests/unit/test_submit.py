"""deploy/submit names missing settings and exits with 2 before it talks to a cluster."""

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]


def submit(*words: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["deploy/submit", *words], cwd=ROOT, env=os.environ | environment, text=True, capture_output=True, check=False
    )


def test_submit_says_what_is_missing():
    done = submit("jobs.reindex", "collections/ray.yaml", DATABASE_URL="")
    assert done.returncode == 2
    assert "DATABASE_URL is not set" in done.stderr
    assert "raydex database" in done.stderr
    assert submit().returncode == 2
