"""`raydex logs` finds the lines that a run's processes wrote, and says so if there are none.

test_run_traces.py covers the processes of a run on Ray.
"""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest.mock import Mock

import pytest
from kit.reindexing import Jobs, html_page, site_sections

from pipelines.indexing.lock import hold_collection
from pipelines.logs import as_began
from pipelines.store import Store, run_began

pytestmark = pytest.mark.slow
MODEL = ("--model", "hash:64", "--parallel-workers", 0, "--maintenance-work-mem", "64MB")


def test_lines_of_another_run_are_omitted(jobs: Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    (tmp_path / "site").mkdir()
    (tmp_path / "site/one.html").write_text(html_page("One", site_sections(1)["p00"]))
    run = jobs.reindex("--path", tmp_path / "site", "--base-url", "https://d.test/", "--no-ray", *MODEL).summary["run"]
    silent = jobs.run("logs", run)
    assert silent.code == 1 and f"run {run} left no log under {tmp_path}/ray" in silent.messages
    logs = tmp_path / "ray/session_2026/logs"
    logs.mkdir(parents=True)
    now = datetime.now(UTC)
    with Store(jobs.url) as store:
        began = run_began(store, run)
    at_once_after = began + timedelta(microseconds=1)
    said = {"time": now.isoformat(), "collection": "docs", "began": as_began(began)}
    own, other = (said | {"message": f"of {number}", "run": number} for number in (run, run + 1))
    # From another database, whose runs have numbers too.
    elsewhere = [own | {"collection": "other"}, own | {"began": as_began(at_once_after)}]
    plain = ("Segmentation fault", "[]", '"no message"')
    (logs / "worker-1.err").write_text("\n".join([json.dumps(own), json.dumps(other), *plain]))
    (logs / "worker-2.err").write_text(json.dumps(other))
    (logs / "worker-0.err").symlink_to("gone")  # Ray deletes old ones like this
    (logs / "worker-9.err").mkdir()  # unreadable, like the logs of another account
    for number, entry in enumerate(elsewhere, 3):
        (logs / f"worker-{number}.err").write_text(json.dumps(entry))
    assert jobs.text("logs", run).splitlines() == [
        f"session_2026/logs/worker-1.err: {words}" for words in (f"{now.isoformat()} of {run}", *plain)
    ]


def test_run_is_followed_until_its_end_with_the_reason(
    jobs: Jobs, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with hold_collection(store, "docs") as lock:
        run = lock.begin("reindex", None)
        meanwhile = Mock(side_effect=lambda _: lock.finish(run, "failed", {}, "the disk is full"))
        monkeypatch.setattr("jobs.logs.time", Mock(sleep=meanwhile))
        assert f"run {run}: the disk is full" in jobs.run("logs", run, "--follow").messages
        run = lock.begin("reindex", None)
    meanwhile.side_effect = AssertionError("its process is gone")
    assert f"run {run} left no log" in jobs.run("logs", run, "--follow").messages


def test_unknown_run_is_reported(jobs: Jobs) -> None:
    refused = jobs.run("logs", 99)
    assert refused.code == 2 and "there is no run 99: `raydex status NAME` lists those" in refused.messages


def test_command_logs_as_json_on_request(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAYDEX_LOG", "xml")
    assert "RAYDEX_LOG 'xml' is not a log format: write text or json" in jobs.run("logs", 99).messages
