"""Traces and logs of runs: one trace each, including the work of tasks on any process."""

import json
import re
from pathlib import Path

import pytest
from kit.collector import collecting
from kit.kill_bench import stored_hashes
from kit.nights import Nights
from kit.processes import eventually
from kit.reindexing import Jobs, html_page, site_sections
from kit.web import Handler, Site

pytestmark = pytest.mark.slow
MODEL = ("--model", "hash:64", "--parallel-workers", 0, "--maintenance-work-mem", "64MB")


def test_ray_run_embeds_while_crawling_and_is_one_trace_found_in_logs(jobs, tmp_path, local_ray):
    """The site's last page waits for the first vector.

    The next run in this process has nothing to do: an index does not tell how it was built.
    """
    site = {f"/{name}.html": html_page(name, sections) for name, sections in site_sections(4).items()}
    served: list[str] = []

    def slow(handler: Handler) -> str:
        served.append(handler.path)
        if len(served) == len(site):
            eventually(lambda: bool(stored_hashes(jobs.url)), "a vector is stored")
        return site[handler.path]

    file = tmp_path / "docs.yaml"
    with Site({"/": html_page("Start", {}, links=tuple(site))} | dict.fromkeys(site, slow)) as pages:
        crawling = {"start_urls": [f"{pages.url}/"], "allow_private": True, "timeout_s": 180}
        file.write_text(json.dumps({"sites": [crawling]}))
        with collecting() as collector:
            done = jobs.reindex(file, *MODEL)
        again = jobs.reindex(file, "--no-ray", *MODEL).summary
    assert done.code == 0, done.messages
    assert done.summary["chunks"].items() >= {"total": 12, "embedded": 12, "written": 12}.items()
    assert set(done.summary["seconds"]) >= {"total", "ray_start", "crawl_and_embed", "publish"}
    assert again["chunks"] == {"total": 12, "embedded": 0, "reused": 0, "written": 0, "deleted": 0}
    assert (again["index"], again["revision"]) == (done.summary["index"], 1)
    ((kind, ((total, steps),)),) = collector.tree()
    assert (kind, total) == ("reindex", "total")
    gathered, *others = [(name, [work for work, _ in within]) for name, within in steps]
    assert gathered[0] == "crawl_and_embed" and others == [("find_copies", []), ("learn_layouts", []), ("publish", [])]
    assert sorted(gathered[1]) == ["crawl", "embed", "ray_start", "read", "store"]
    run, spans = collector.spans[0], {span.name: span for span in collector.spans}
    assert run.attributes == {"raydex.collection": "docs", "raydex.run": done.summary["run"]}
    around = spans["crawl_and_embed"]
    assert spans["crawl"].attributes == {"url.full": f"{pages.url}/"}
    for name in ("crawl", "read", "embed", "store"):
        assert around.began <= spans[name].began < spans[name].ended <= around.ended
    assert all(spans[name].attributes["raydex.busy_s"] > 0 for name in ("read", "embed", "store"))
    found_in_logs(jobs, done.summary["run"])


def found_in_logs(jobs: Jobs, run: int) -> None:
    lines = jobs.text("logs", run).splitlines()
    assert lines and all(re.match(r"session_\S+/logs/worker-\S+: ", line) for line in lines)
    assert any(line.endswith(f" info works for run {run}") for line in lines)
    jobs.capsys.readouterr()
    entries = [json.loads(line) for line in jobs.text("logs", run, "--json").splitlines()]
    begun = [entry for entry in entries if entry.get("logger") == "pipelines.logs"]
    assert begun and all((entry["run"], entry["collection"]) == (run, "docs") for entry in begun)


def test_night_is_one_trace_of_its_steps(jobs: Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAYDEX_HOME", str(tmp_path / "home"))
    with collecting() as collector:
        assert Nights(tmp_path, jobs)().code == 0
    ((kind, steps),) = collector.tree()
    assert kind == "nightly" and [name for name, _ in steps][:3] == ["index", "judge", "publish"]
    ((total, within),) = dict(steps)["index"]
    assert total == "total" and {"read_files", "embed", "publish"} <= {name for name, _ in within}


def test_failed_run_is_a_failed_trace(jobs: Jobs) -> None:
    with collecting() as collector:
        assert jobs.reindex("http://127.0.0.1:1/", "--allow-private", "--no-ray", *MODEL).code == 1
    (run, _) = collector.spans
    assert (run.name, run.status, run.attributes["error.type"]) == ("reindex", 2, "SiteUnreachable")
