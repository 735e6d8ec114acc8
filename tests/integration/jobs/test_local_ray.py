"""A Ray started by a job or the service is local: it reports to nobody and runs at low priority.

test_answering_service.py checks that nobody else can reach it.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from kit.cluster import free_port
from kit.web import Site

from pipelines.cluster import connect_ray

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
RUN = """
import os, ray, sys, time
from pipelines.cluster import SERVICE_NICENESS, connect_ray
with connect_ray("local", *([SERVICE_NICENESS] if sys.argv[1] == "service" else []), metrics=int(sys.argv[2])):
    print("metrics", ray.nodes()[0]["MetricsExportPort"])
    print("niceness", ray.get(ray.remote(lambda: os.nice(0)).remote()) - os.nice(0))
    time.sleep(3)
"""
METRICS = free_port()
# Ray 2.60 asks these about its cloud as soon as the process that counts usage is running.
METADATA = ("169.254.169.254", "metadata.google.internal")


def run_locally(what: str, **variables: str) -> tuple[str, list[str]]:
    """Run a job or a service on its own Ray with a proxy for all requests, and return its output and its requests."""
    with Site({}) as proxy:
        proxied = {name: proxy.url for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY")}
        environment = {name: value for name, value in os.environ.items() if "USAGE_STATS" not in name}
        command, environment = [sys.executable, "-c", RUN, what, str(METRICS)], environment | proxied | variables
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=True
        )
        return done.stdout, [request.path for request in proxy.requests]


@pytest.mark.parametrize(("what", "niceness"), [pytest.param("service", 0, marks=pytest.mark.exhaustive), ("job", 15)])
def test_local_ray_contacts_no_cloud_and_its_job_runs_at_low_priority(what, niceness):
    said, asked = run_locally(what)
    assert f"niceness {min(niceness, 19 - os.nice(0))}" in said  # 19 is the highest
    assert f"metrics {METRICS}" in said
    assert [path for path in asked if any(name in path for name in METADATA)] == []


@pytest.mark.exhaustive
def test_user_can_enable_usage_statistics():
    _, asked = run_locally("job", RAY_USAGE_STATS_ENABLED="1")
    assert [path for path in asked if any(name in path for name in METADATA)] != []


def test_another_process_joins_a_local_ray_by_its_address(local_ray: None) -> None:
    join = "import sys; from pipelines.cluster import connect_ray\nwith connect_ray(sys.argv[1]): print('joined')"
    with connect_ray() as cluster:
        command = [sys.executable, "-c", join, cluster.address]
        joined = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert joined.stdout == "joined\n", joined.stderr


WORK = """
import logging; logging.basicConfig(format="%(message)s")
import numpy, ray
from pipelines.cluster import connect_ray
with connect_ray():
    print("sum", ray.get(ray.remote(lambda ones: ones.sum()).remote(ray.put(numpy.ones(1_000_000)))))
"""


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("wrapper", "variables", "said"),
    [
        ("mount -t tmpfs -o ro none /dev/shm", {}, "/dev/shm can't be written (Read-only file system)"),
        ("mount -t tmpfs -o ro none /var/tmp", {"RAY_TMPDIR": "/var/tmp"}, "/var/tmp/ray can't be made"),
        ("true", {"TMPDIR": "/tmp/slurm/a-job-whose-name-is-long/123456789"}, "is too long a path"),
    ],
)
def test_ray_starts_even_if_its_usual_folders_are_unusable(wrapper, variables, said, tmp_path: Path) -> None:
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("mounts need root and `unshare`")
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", f'{wrapper} && exec "$@"', "sh", sys.executable, "-c", WORK],
        cwd=ROOT, env=os.environ | variables, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.stdout == "sum 1000000.0\n", done.stderr
    assert said in done.stderr
