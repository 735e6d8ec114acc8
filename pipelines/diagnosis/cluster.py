"""Checks Ray: its version, and whether one starts here or the cluster at the address responds.

`python -m pipelines.diagnosis.cluster ADDRESS` connects and prints the result. It runs as a separate process, because
Ray waits a long time for an address where nothing listens, and has no option against that.
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.metadata import version

from pipelines.cluster import (
    BUSY_REMEDY,
    REMEDY,
    UnreachableCluster,
    UnreachableDatabase,
    check_place,
    check_reach,
    connect_ray,
    why_unreachable,
)
from pipelines.diagnosis.check import Finding, failed, fine, warning
from pipelines.text.counts import counted

LOCAL = "local"


def check_ray(address: str, database_url: str, limit_s: float) -> Iterator[Finding]:
    """Connect to the Ray at `address` ("local": start one) and disconnect; raise nothing, wait `limit_s` at most."""
    what = f"Ray {version('ray')}"
    here = "here", "starts", BUSY_REMEDY
    where, verb, remedy = here if address == LOCAL else (f"at {address}", "answers", REMEDY)
    if address == LOCAL:
        try:
            for problem in check_place().warnings:
                yield warning(problem, "see docs/running.md, Where Ray works on this machine")
        except UnreachableCluster as error:
            yield failed(error.problem, error.remedy)
            return
    began = time.monotonic()
    if problem := why_unreachable(address):
        yield failed(f"{what}: {problem}", remedy)
        return
    try:
        command = [sys.executable, "-m", __name__, address]
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit_s, check=False)
    except subprocess.TimeoutExpired:
        yield failed(f"{what} does not answer {where} within {limit_s:.0f} s", remedy)
        return
    if done.returncode:
        said = done.stderr.strip().splitlines() or ["it says nothing"]
        yield failed(f"{what}: {said[-1].strip()[:400]}", remedy)
        return
    found = json.loads(done.stdout.splitlines()[-1])
    resources = (
        f"{counted(found['cpus'], 'CPU')}, {counted(found['gpus'], 'GPU')} free on "
        f"{counted(found['machines'], 'machine')}"
    )
    try:
        check_reach(database_url, set(map(str, range(found["machines"]))))
    except UnreachableDatabase as error:
        yield failed(str(error), "set DATABASE_URL")
        return
    yield fine(f"{what} {verb} {where} in {time.monotonic() - began:.0f} s: {resources}")


def main() -> None:
    try:
        with connect_ray(sys.argv[1]) as cluster:
            free = cluster.free_resources().values()
            found = {"cpus": sum(node.get("CPU", 0) for node in free), "gpus": sum(node.get("GPU", 0) for node in free)}
            print(json.dumps({**found, "machines": len(cluster.machines())}))
    except UnreachableCluster as error:
        sys.exit(error.problem)


if __name__ == "__main__":
    main()
