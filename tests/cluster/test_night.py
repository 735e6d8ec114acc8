"""A nightly run and Serve on the same nodes: replicas grow while the run embeds, and the run ends."""

import subprocess
import sys
import time

import pytest
import yaml
from kit.counting_model import DIMENSION, MODEL, CountingModel
from kit.processes import eventually
from kit.reindexing import BASE, html_page
from kit.reporting import leave_table
from kit.serving import ANSWER, ROOT, Load, Serving, serving

pytestmark = [pytest.mark.exhaustive, pytest.mark.timeout(900)]

PAGES, SECONDS_PER_TEXT = 3_000, 0.03
SCALING = {"min_replicas": 1, "max_replicas": 3, "target_ongoing_requests": 1, "upscale_delay_s": 2,
           "downscale_delay_s": 600, "metrics_interval_s": 1, "look_back_period_s": 3}  # fmt: skip
HEAD = ("what", "run", "replicas grown after", "longest wait", "answers a second", "how the questions ended")


def write_night(folder) -> str:
    (folder / "pages").mkdir()
    for page in range(PAGES):
        text = html_page(f"Page {page}", {"usage": f"Subject {page * 7919} is here."})
        (folder / "pages" / f"p{page:04}.html").write_text(text)
    night = {"name": "night", "folders": [{"path": str(folder / "pages"), "base_url": BASE}],
             "index": {"model": MODEL, "dimension": DIMENSION}}  # fmt: skip
    (folder / "night.yaml").write_text(yaml.safe_dump(night))
    return str(folder / "night.yaml")


def start_night(cluster: Serving, file: str, model: CountingModel, log) -> "subprocess.Popen[bytes]":
    command = [*cluster.head.host.enter, sys.executable, "-m", "jobs.reindex", file, "--parallel-workers", "0"]
    environment = cluster.nodes.environment(OPENAI_BASE_URL=cluster.net.publish(model.url))
    return subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=ROOT)


def test_replicas_and_a_nightly_run_do_not_starve_each_other(tmp_path, request: pytest.FixtureRequest):
    file, rows = write_night(tmp_path), []
    with serving(tmp_path) as cluster, CountingModel(SECONDS_PER_TEXT) as model, (tmp_path / "log").open("w+b") as log:
        for _ in range(2):
            cluster.add()
        for step in ("Raydex", "Retriever"):
            cluster.options(step, autoscaling_config=SCALING)
        cluster.deploy()
        eventually(cluster.running, "the application runs", 120)
        at_head = cluster.head.host.address
        cluster.wait_until_answering(at_head)
        with start_night(cluster, file, model, log) as run:
            try:
                eventually(lambda: len(model.hashes()) > PAGES / 20 or run.poll() is not None, "the run embeds", 120)
                began = time.monotonic()
                with Load(cluster.url(at_head), pause_s=0) as load:
                    grown = eventually(lambda: sum(cluster.placed("Raydex").values()) == 3, "three replicas", 90)
                    assert run.poll() is None, "the run ended before the replicas had to grow"
                    run.wait(400)
                    took = time.monotonic() - began
            finally:
                run.kill()
        log.seek(0)
        assert run.returncode == 0, log.read().decode()
    ends = ", ".join(f"{count} {end}" for end, count in sorted(load.counts().items()))
    answers = f"{load.counts()[ANSWER] / took:.0f}"
    rows.append(("both", f"{took:.0f} s", f"{grown:.0f} s", f"{load.longest_s():.1f} s", answers, ends))
    leave_table(request.config, f"a night of {PAGES:,} texts beside 8 clients", HEAD, rows)
    assert set(load.counts()) == {ANSWER}
    assert len(set(model.hashes())) == PAGES
