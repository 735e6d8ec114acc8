"""`raydex logs` finds what the processes of a run wrote, and says so where there is nothing."""

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from kit.reindexing import Jobs, html_page, site_sections
from kit.web import Site

pytestmark = pytest.mark.slow
MODEL = ("--model", "hash:64", "--parallel-workers", 0, "--maintenance-work-mem", "64MB")


def test_a_run_on_ray_is_found_in_the_logs_of_its_workers(jobs: Jobs, local_ray: None) -> None:
    with Site({"/": html_page("Start", {"usage": "How it is used."})}) as site:
        run = jobs.reindex(f"{site.url}/", "--allow-private", *MODEL).summary["run"]
    lines = jobs.text("logs", run).splitlines()
    assert lines and all(re.match(r"session_\S+/logs/worker-\S+: ", line) for line in lines)
    assert any(line.endswith(f" info works for run {run}") for line in lines)
    jobs.capsys.readouterr()
    entries = [json.loads(line) for line in jobs.text("logs", run, "--json").splitlines()]
    begun = [entry for entry in entries if entry.get("logger") == "pipelines.logs"]
    assert begun and all((entry["run"], entry["collection"]) == (run, "docs") for entry in begun)


def test_lines_of_another_run_are_left_out(jobs: Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    (tmp_path / "site").mkdir()
    (tmp_path / "site/one.html").write_text(html_page("One", site_sections(1)["p00"]))
    run = jobs.reindex("--path", tmp_path / "site", "--base-url", "https://d.test/", "--no-ray", *MODEL).summary["run"]
    silent = jobs.run("logs", run)
    assert silent.code == 1 and f"run {run} left no log under {tmp_path}/ray" in silent.messages
    logs = tmp_path / "ray/session_2026/logs"
    logs.mkdir(parents=True)
    now = datetime.now(UTC)
    said = {"time": now.isoformat(), "collection": "docs"}
    own, other = (said | {"message": f"of {number}", "run": number} for number in (run, run + 1))
    # Of another database: its runs have numbers too.
    elsewhere = [own | {"collection": "other"}, own | {"time": (now - timedelta(days=1)).isoformat()}]
    plain = ("Segmentation fault", "[]", '"no message"')
    (logs / "worker-1.err").write_text("\n".join([json.dumps(own), json.dumps(other), *plain]))
    (logs / "worker-2.err").write_text(json.dumps(other))
    for number, entry in enumerate(elsewhere, 3):
        (logs / f"worker-{number}.err").write_text(json.dumps(entry))
    assert jobs.text("logs", run).splitlines() == [
        f"session_2026/logs/worker-1.err: {words}" for words in (f"{now.isoformat()} of {run}", *plain)
    ]


def test_an_unknown_run_is_said_to_be_unknown(jobs: Jobs) -> None:
    refused = jobs.run("logs", 99)
    assert refused.code == 2 and "there is no run 99: `raydex status NAME` lists those" in refused.messages


def test_a_command_logs_as_json_where_that_is_asked_for(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAYDEX_LOG", "xml")
    assert "RAYDEX_LOG 'xml' is no format of logs: write text or json" in jobs.run("logs", 99).messages
