"""Runs a Ray head with a token in its own process, and commands in other shells that use it."""

import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import httpx
import pytest

ROOT = Path(__file__).parents[2]
START_TIMEOUT_S = 90.0


@dataclass(frozen=True)
class HeadProcess:
    address: str
    token: str
    environment: dict[str, str]

    def run(self, *command: str, timeout: float = 150.0, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a command in another shell, with the cluster's address and token and additional variables."""
        return subprocess.run(
            command, cwd=ROOT, env=self.environment | environment, text=True, timeout=timeout, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def start(self, *command: str, output: IO[str], **environment: str) -> "subprocess.Popen[str]":
        """Like `run`, but without waiting for the end."""
        return subprocess.Popen(
            command, cwd=ROOT, env=self.environment | environment, text=True, stdout=output, stderr=subprocess.STDOUT
        )

    def get(self, path: str, **headers: str) -> httpx.Response:
        return httpx.get(self.address + path, headers=headers, timeout=10)


def free_ports(count: int) -> list[str]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [str(each.getsockname()[1]) for each in sockets]


@contextmanager
def run_head(
    command: Sequence[str], token: Path, without: tuple[str, ...] = ("RAY",), folder: Path = ROOT, **own: str
) -> Iterator[HeadProcess]:
    """Start a head with `command` on free ports, in `folder`. At the end, stop only the processes started here.

    Variables with a prefix in `without` reach neither the head nor the commands. `own` variables reach only the head.
    """
    temporary = Path(tempfile.mkdtemp(prefix="rdx-", dir="/tmp"))  # it contains sockets, so its path must be short
    gcs, dashboard, client, agent = free_ports(4)
    address, log = f"http://127.0.0.1:{dashboard}", temporary / "head.log"
    flags = [f"--port={gcs}", f"--dashboard-port={dashboard}", f"--ray-client-server-port={client}",
             f"--dashboard-agent-listen-port={agent}", f"--temp-dir={temporary}", "--num-cpus=2",
             f"--object-store-memory={200 * 2**20}"]  # fmt: skip
    environment = {name: value for name, value in os.environ.items() if not name.startswith(without)}
    environment |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(token), "RAY_API_SERVER_ADDRESS": address}
    with log.open("w") as output:
        head = subprocess.Popen(
            [*command, *flags], cwd=folder, env=environment | own, stdout=output, stderr=output, start_new_session=True
        )
    try:
        wait_for_jobs_api(address, token, head, log)
        yield HeadProcess(address, token.read_text(), environment)
    finally:
        end(head)
        shutil.rmtree(temporary, ignore_errors=True)


def wait_for_jobs_api(address: str, token: Path, head: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline and head.poll() is None:
        try:
            headers = {"Authorization": f"Bearer {token.read_text()}"}
            if httpx.get(f"{address}/api/jobs/", headers=headers, timeout=5).status_code == httpx.codes.OK:
                return
        except (OSError, httpx.HTTPError):
            pass
        time.sleep(0.5)
    pytest.fail(f"the cluster did not come up: {log.read_text()[-3000:]}")


def end(head: "subprocess.Popen[bytes]") -> None:
    """Send Ctrl-C, then kill. The process group contains the launcher and every Ray process that it started."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        if head.poll() is not None:
            return
        os.killpg(head.pid, number)
        try:
            head.wait(20)
        except subprocess.TimeoutExpired:
            continue


def summary_of(output: str) -> dict:
    """Return the last JSON object that the job printed. Ray's own lines surround it."""
    lines = [line for line in output.splitlines() if line.startswith("{")]
    assert lines, output
    return json.loads(lines[-1])
