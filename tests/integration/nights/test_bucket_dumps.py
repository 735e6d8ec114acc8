"""Dumps in a bucket are complete or absent, and an interrupted upload is neither counted nor left behind."""

import signal
import subprocess
import sys

import pytest
from kit.bucket import run_bucket
from kit.nights import Nights


@pytest.fixture
def bucket(monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    with run_bucket() as bucket:
        yield bucket


@pytest.mark.slow
def test_night_killed_in_an_upload_keeps_the_old_dump_and_the_next_uploads(jobs, store, tmp_path, monkeypatch, bucket):
    home = tmp_path / "home"
    monkeypatch.setenv("RAYDEX_HOME", str(home))
    nights = Nights(tmp_path, jobs)
    nights.night["dump"] = {"folder": bucket.url, "keep": 1, "try_restore": False}
    assert nights().code == 0
    (old,) = bucket.dumps.items()
    nights.night["dump"] |= {"try_restore": True}
    killed = subprocess.Popen([sys.executable, "-m", "jobs.nightly", str(nights.write())], stderr=subprocess.DEVNULL)

    def kill(_part: bytes) -> None:
        killed.kill()
        killed.wait()  # otherwise it may still read the reply

    bucket.on_part = kill
    assert killed.wait() == -signal.SIGKILL
    assert bucket.parts.keys() - {"dumps/.raydex-can-write"} and [*bucket.dumps.items()] == [old]
    assert {path.name for path in home.iterdir() if "dump" in path.name} == {".docs.dump"}
    bucket.on_part = lambda part: None
    result = nights()
    assert result.code == 0 and "step dump" in result.messages and "step index" not in result.messages
    assert "1 old one removed" in result.summary["steps"]["dump"]
    assert result.summary["steps"]["try restore"] == "12 pages and 36 chunks came back"
    ((name, body),) = bucket.dumps.items()
    assert name.endswith("-run2.dump") and len(body) > 10_000
    assert not [path.name for path in home.iterdir() if "dump" in path.name or "scratch" in path.name]
