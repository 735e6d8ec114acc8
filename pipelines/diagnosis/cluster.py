"""Checks Ray: its version, and whether one starts here or the cluster at the address answers.

`python -m pipelines.diagnosis.cluster ADDRESS` connects and prints what it found: in a process of its own, since
Ray waits long for an address where nothing is, and cannot be told not to.
"""

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.metadata import version

from pipelines.cluster import UnreachableDatabase, check_reach, connect_ray
from pipelines.diagnosis.check import Finding, failed, fine

LOCAL = "local"
CONNECT_S = 5.0


def check_ray(address: str, database_url: str, limit_s: float) -> Iterator[Finding]:
    """Connect to the Ray at `address` ("local": start one) and disconnect; raise nothing, wait `limit_s` at most."""
    what = f"Ray {version('ray')}"
    where = "here" if address == LOCAL else f"at {address}"
    began = time.monotonic()
    if problem := _unreachable(address):
        yield failed(f"{what}: {problem}", _remedy(address))
        return
    try:
        command = [sys.executable, "-m", __name__, address]
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit_s, check=False)
    except subprocess.TimeoutExpired:
        yield failed(f"{what} does not answer {where} within {limit_s:.0f} s", _remedy(address))
        return
    if done.returncode:
        yield failed(f"{what} does not start {where}: {_last_words(done.stderr)}", _remedy(address))
        return
    found = json.loads(done.stdout.splitlines()[-1])
    verb = "starts" if address == LOCAL else "answers"
    resources = f"{found['cpus']:g} CPUs, {found['gpus']:g} GPUs free on {found['machines']} machine(s)"
    try:
        check_reach(database_url, set(map(str, range(found["machines"]))))
    except UnreachableDatabase as error:
        yield failed(str(error), "set DATABASE_URL")
        return
    yield fine(f"{what} {verb} {where} in {time.monotonic() - began:.0f} s: {resources}")


def _unreachable(address: str) -> str:
    """Return why nothing can be at an address, "" if something listens there or it is a word such as `auto`."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not port.isdecimal():
        return ""
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_S).close()
    except OSError as error:
        return f"nothing answers at {address} ({error.strerror or error})"
    return ""


def _last_words(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:400] if lines else "it says nothing"


def _remedy(address: str) -> str:
    if address == LOCAL:
        return "end other programs (memory), and try `python -c 'import ray; ray.init()'`, which says more"
    return "`ray status` on the head shows the cluster; unset RAY_ADDRESS to use a Ray of your own"


def main() -> None:
    with connect_ray(sys.argv[1]) as cluster:
        free = cluster.free_resources().values()
        found = {"cpus": sum(node.get("CPU", 0) for node in free), "gpus": sum(node.get("GPU", 0) for node in free)}
        print(json.dumps({**found, "machines": len(cluster.machines())}))


if __name__ == "__main__":
    main()
