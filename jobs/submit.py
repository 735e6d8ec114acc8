"""Runs a command on a Ray cluster whose nodes have Python and Ray, and follows its log.

`raydex submit index collections/ray.yaml` uploads Raydex itself and the files named in the command. The nodes install
their missing packages, in the versions installed here, once per node. Exits with the command's exit code.

--list, --status, --logs and --stop are for submitted jobs. They only use HTTP to the cluster's dashboard: Ray's own
commands connect to the cluster, and may look for a head at 127.0.0.1 that has another address of this machine.
"""

import asyncio
import importlib.util
import logging
import shlex
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Group, Parameter

from jobs.cli import DONE, FAILED, BadInput, finish, main, say
from jobs.environment import set_variables, variables
from jobs.flags import Json, at_most_one, command
from jobs.node import LACKING, REQUIREMENTS, walk_requirements
from pipelines import ray_internals
from pipelines.cluster import why_unreachable
from pipelines.text.sheets import Grid, Sheet

if TYPE_CHECKING:
    from ray.job_submission import JobDetails, JobSubmissionClient

ADDRESS = "http://127.0.0.1:8265"
PACKAGES = ("pipelines", "serve", "jobs")
NO_PYTHON = 127  # from the shell: `ray start` ran without a `python` on PATH; the built environment has one
# The variables of this environment that the command gets. RAYDEX_HOME is a folder of this machine, so it stays here.
PASSED = ("DATABASE_URL", "OPENAI_BASE_URL", "OPENAI_API_KEY", "SLACK_BOT_TOKEN")  # a night tells Slack
PASSED_PREFIX, KEPT_HERE = "RAYDEX_", {"RAYDEX_HOME"}
# Parts of torch's CUDA build. torch requires exact versions of them; its CPU build needs none.
OF_TORCH = ("nvidia-", "cuda-", "triton")
# How long a stopped job has to record its interruption. Ray's own 3 s are too short for its workers.
STOP_S = 30
ENDED = {"SUCCEEDED", "FAILED", "STOPPED"}
GOES_ON = "finished work is kept; submit the same command again to continue"


HEAD = ("job", "state", "began", "took", "command")
COMMAND = "command"  # key in a job's metadata: the command as typed
LOOK_S = 0.5
ADDRESS_REMEDY = "`deploy/start-cluster` starts one, --address URL names the dashboard of another"
TOKEN_REMEDY = "the token of that cluster must be in ~/.ray/auth_token or the file that RAY_AUTH_TOKEN_PATH names"


class NoCluster(RuntimeError):
    """The cluster can't be reached, rejects the job, or became unavailable during it."""


ON = f"the cluster's dashboard (default: RAY_API_SERVER_ADDRESS, else {ADDRESS})"
INSTALL = "packages to install on the nodes: auto adds missing ones, build installs all, none nothing"
INDEX = "a package index in addition to PyPI, such as the one with torch's CPU builds"
LOGS = "print the log of a job until it ends, and exit with its exit code"
STATUS = "show the state of a job; without one, the nodes of the cluster and what is free there"
JOBS = Group("Jobs that were submitted", sort_key=2)


class Submit(App):
    """The app of `raydex submit`: all that follows the verb belongs to the verb, flags too."""

    def parse_args(self, tokens: Any = None, **options: Any) -> Any:
        """Return what the tokens call, with the verb's own flags as words."""
        return super().parse_args(self.split(tokens), **options)

    def split(self, tokens: Sequence[str]) -> list[str]:
        """Return the tokens with `--` before the first word: that is the verb."""
        counts = {name: one.token_count()[0] for one in self.assemble_argument_collection() for name in one.names}
        at = 0
        while at < len(tokens) and tokens[at].startswith("-") and tokens[at] != "--":
            flag, takes = tokens[at], counts.get(tokens[at], 0)
            optional = flag == "--status" and at + 1 < len(tokens) and not tokens[at + 1].startswith("-")
            at += 1 + (optional if flag == "--status" else takes)
        rest = list(tokens[at:])
        return [*tokens[:at], *(["--"] if rest and rest[0] != "--" else []), *rest]


def run(
    *words: Annotated[str, Parameter("verb", help="the command: a verb of `raydex` with its words and flags")],
    address: Annotated[str | None, Parameter(help=ON)] = None,
    install: Annotated[Literal["auto", "build", "none"], Parameter("--environment", help=INSTALL)] = "auto",
    index: Annotated[str | None, Parameter(help=INDEX)] = None,
    env: Annotated[tuple[str, ...], Parameter(help="a variable for the command, as NAME=VALUE; repeatable")] = (),
    show: Annotated[bool, Parameter("--list", group=JOBS, help="list the jobs of the cluster")] = False,
    logs: Annotated[str | None, Parameter(group=JOBS, help=LOGS)] = None,
    stop: Annotated[str | None, Parameter(group=JOBS, help="end a job; its finished work is kept")] = None,
    status: Annotated[
        list[str] | None, Parameter(group=JOBS, consume_multiple=(0, 1), negative=(), help=STATUS)
    ] = None,
    as_json: Json = False,
) -> int:
    given = variables()
    set_variables({"RAY_AUTH_MODE": given.get("RAY_AUTH_MODE") or "token"})
    where = address or given.get("RAY_API_SERVER_ADDRESS") or ADDRESS
    if show or logs or stop or status is not None:
        at_most_one(list=show, logs=logs, stop=stop, status=status is not None)
        if words:
            raise BadInput(f"{' '.join(words)}: --list, --logs, --stop and --status take no command to run")
        jobs = Jobs(where, open_client(where))
        if logs:
            return jobs.follow(logs)
        if stop:
            return jobs.stop(stop)
        told, text = jobs.describe_all() if show else jobs.describe_state("".join(status or ()))
        finish(told, as_json, text)
        return DONE
    if as_json:
        raise BadInput("--json belongs to --list and --status; put the --json of a verb after the verb")
    if not words:
        raise BadInput("name a command, such as `raydex submit index collections/ray.yaml`")
    passed = variables_to_pass(given, env)
    check_database(passed)
    job = Job(where, words, passed)
    code = job.run(check=install == "auto", pins=list_pins(index) if install == "build" else [])
    if install == "auto" and code in (LACKING, NO_PYTHON):
        say("raydex submit: they install what is missing: minutes the first time, later runs use it again")
        code = job.run(check=False, pins=list_pins(index))
    return code


def variables_to_pass(given: Mapping[str, str], named: Sequence[str]) -> dict[str, str]:
    """Return the variables for the command on the cluster: some of those `given` here, and `named` NAME=VALUE."""
    passed = {
        name: value
        for name, value in given.items()
        if value and name not in KEPT_HERE and (name in PASSED or name.startswith(PASSED_PREFIX))
    }
    if wrong := [each for each in named if not each.partition("=")[1]]:
        raise BadInput(f"--env {wrong[0]}: write NAME=VALUE")
    return passed | {name: value for name, _, value in (each.partition("=") for each in named)}


def check_database(passed: Mapping[str, str]) -> None:
    """Raise BadInput unless a command with these variables has a database."""
    if not passed.get("DATABASE_URL"):
        raise BadInput(
            "DATABASE_URL is not set: give a Postgres that every node reaches. On one machine `raydex database` keeps "
            "the embedded one running and prints its URL"
        )


def list_requirements() -> list[str]:
    """Return Raydex's requirements, without its extras. Raises BadInput if it is not installed here."""
    try:
        lines = requires("raydex") or []
    except PackageNotFoundError as error:
        raise BadInput("raydex is not installed here, so its requirements are not known: `pip install .`") from error
    return [line for line in lines if "extra ==" not in line]


def list_pins(index: str | None) -> list[str]:
    """Return the lines of a requirements file: `name==version` of all of Raydex's packages as installed here."""
    from packaging.utils import canonicalize_name

    versions = {canonicalize_name(wanted.name): version for wanted, version in walk_requirements(list_requirements())}
    # torch without its build tag (2.13.0+cpu), so that the node's package index decides the build.
    pins = [f"{name}=={version.partition('+')[0]}" for name, version in sorted(versions.items()) if version]
    return [*([f"--extra-index-url {index}"] if index else []), *(pin for pin in pins if not pin.startswith(OF_TORCH))]


def pack(folder: Path, words: Sequence[str]) -> None:
    """Copy into `folder` the contents of the job's working directory: our packages, and files named in `words`."""
    for package in PACKAGES:
        spec = importlib.util.find_spec(package)
        assert spec and spec.submodule_search_locations, package
        origin = spec.submodule_search_locations[0]
        shutil.copytree(origin, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / REQUIREMENTS).write_text("\n".join(list_requirements()))
    for path in map(Path, (word.partition("=")[2] if word.startswith("--") else word for word in words)):
        if not path.is_absolute() and path.is_file():
            if ".." in path.parts:
                raise BadInput(f"{path} is outside this folder: call `raydex submit` from a folder above it")
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, folder / path)


@dataclass(frozen=True)
class Job:
    """A command of `raydex` for the cluster at `address`, with its variables there."""

    address: str
    words: Sequence[str]
    variables: Mapping[str, str]

    def run(self, check: bool, pins: Sequence[str]) -> int:
        """Run it in an environment with `pins` installed, or in the nodes' own, and return its exit code.

        With `check` it does not start if nodes lack something, and returns LACKING or NO_PYTHON. Raises NoCluster.
        """
        entrypoint = shlex.join(["python", "-m", "jobs", *self.words])
        environment: dict[str, Any] = {"env_vars": {"RAY_JOB_STOP_WAIT_TIME_S": str(STOP_S), **self.variables}}
        if pins:
            # Omits --no-cache-dir, which is Ray's default, so that a node whose Ray restarts downloads nothing again.
            environment["pip"] = {"packages": list(pins), "pip_install_options": ["--disable-pip-version-check"]}
        client = open_client(self.address)
        with reaching(self.address), tempfile.TemporaryDirectory() as folder:
            pack(Path(folder), self.words)
            job = client.submit_job(
                entrypoint=f"python -m jobs.node && exec {entrypoint}" if check else entrypoint,
                runtime_env=environment | {"working_dir": folder},
                metadata={COMMAND: shlex.join(["raydex", *self.words])},
            )
        return asyncio.run(follow(client, job, self.address))


@contextmanager
def reaching(address: str) -> Iterator[None]:
    """Turn errors of Ray's client into NoCluster."""
    from ray.exceptions import AuthenticationError

    try:
        yield
    except AuthenticationError as error:
        refused = str(error).splitlines()[0]
        raise NoCluster(f"the cluster at {address}: {refused}: {TOKEN_REMEDY}") from error
    except (ConnectionError, RuntimeError) as error:
        raise NoCluster(f"the cluster at {address}: {error}") from error


def open_client(address: str) -> "JobSubmissionClient":
    """Return a client of the dashboard at `address`. Raises NoCluster."""
    if problem := why_unreachable(address):
        raise NoCluster(f"{problem}: {ADDRESS_REMEDY}")
    from ray.job_submission import JobSubmissionClient

    with reaching(address):
        client = JobSubmissionClient(address)
    logging.getLogger("ray").setLevel(logging.WARNING)  # it logs each upload and each closed connection
    return client


@dataclass(frozen=True)
class Jobs:
    """The jobs submitted to the cluster at `address`."""

    address: str
    client: "JobSubmissionClient"

    def submitted(self) -> "list[JobDetails]":
        """Return them in order of their start. Raises NoCluster."""
        with reaching(self.address):
            jobs = [job for job in self.client.list_jobs() if job.submission_id]
        return sorted(jobs, key=lambda job: job.start_time or 0)

    def find(self, job: str) -> "JobDetails":
        """Return a job. Raises BadInput if it does not exist, NoCluster."""
        found = {one.submission_id: one for one in self.submitted()}
        if job not in found:
            raise BadInput(f"there is no job {job!r} at {self.address}: `{spell(self.address, '--list')}` lists them")
        return found[job]

    def describe_all(self) -> tuple[dict[str, Any], Sheet | str]:
        """Return all jobs, as data and as text. Raises NoCluster."""
        jobs = self.submitted()
        table = Sheet("", [Grid(HEAD, list(map(row_of, jobs)), "<<<><")])
        return {"jobs": list(map(as_fields, jobs))}, table if jobs else "no jobs yet"

    def describe_state(self, job: str) -> tuple[dict[str, Any], Sheet | str]:
        """Return the state of a job, or of the cluster for "", as data and as text. Raises BadInput, NoCluster."""
        if not job:
            status = self.describe_cluster()
            return {"status": status}, status
        found = self.find(job)
        message = [found.message] if found.message else []
        return as_fields(found), Sheet("", [Grid(HEAD, [row_of(found)], "<<<><"), *message])

    def follow(self, job: str) -> int:
        """Print the log of a job until its end, and return its exit code. Raises BadInput, NoCluster."""
        self.find(job)
        return asyncio.run(follow(self.client, job, self.address))

    def stop(self, job: str) -> int:
        """End a job, wait until it has ended, and print its final state."""
        if str(self.find(job).status) in ENDED:
            say(f"raydex submit: job {job} has ended before ({self.find(job).status})")
            return DONE
        with reaching(self.address):
            self.client.stop_job(job)
        until = time.monotonic() + 2 * STOP_S
        while str((found := self.find(job)).status) not in ENDED:
            if time.monotonic() > until:
                raise NoCluster(f"job {job} has not ended within {2 * STOP_S} s: {GOES_ON}")
            time.sleep(LOOK_S)
        say(f"raydex submit: job {job} has ended ({found.status}); {GOES_ON}")
        return DONE

    def describe_cluster(self) -> str:
        """Return the output of `ray status`. Raises NoCluster."""
        ask = ray_internals.find(ray_internals.ASK_DASHBOARD)
        if ask is None:
            raise NoCluster(f"this version of Ray shows its nodes only in a browser, at {self.address}")
        with reaching(self.address):
            reply = ask(self.client, "GET", "/api/cluster_status?format=1")
        if not reply.ok:
            raise NoCluster(
                f"the cluster at {self.address} does not report its status: {reply.status_code} {reply.text}"
            )
        return str(reply.json()["data"]["clusterStatus"])


def as_fields(job: "JobDetails") -> dict[str, Any]:
    """Return the data to show for a job."""
    began, ended = (datetime.fromtimestamp(at / 1000, UTC) if at else None for at in (job.start_time, job.end_time))
    command = (job.metadata or {}).get(COMMAND, job.entrypoint)
    return {
        "job": job.submission_id, "state": str(job.status), "began": began, "ended": ended, "command": command,
        "exit_code": job.driver_exit_code, "message": job.message,
    }  # fmt: skip


def row_of(job: "JobDetails") -> tuple[str, ...]:
    """Return the cells of a job, in the order of HEAD."""
    told = as_fields(job)
    took = f"{((told['ended'] or datetime.now(UTC)) - told['began']).total_seconds():.0f} s" if told["began"] else ""
    began = f"{told['began'].astimezone():%Y-%m-%d %H:%M:%S}" if told["began"] else "not yet"
    return told["job"], told["state"], began, took, told["command"]


def spell(address: str, words: str) -> str:
    """Return the command line for `words` of `raydex submit` on the cluster at `address`, usable in a new shell too."""
    token = variables().get("RAY_AUTH_TOKEN_PATH")
    raydex = "raydex" if shutil.which("raydex") else str(Path(sys.executable).with_name("raydex"))
    where = [] if address == ADDRESS else ["--address", address]
    line = shlex.join([raydex, "submit", *where, *words.split()])
    return f"RAY_AUTH_TOKEN_PATH={shlex.quote(token)} {line}" if token else line


async def follow(client: "JobSubmissionClient", job: str, address: str) -> int:
    """Print the log of a job until its end, and return its exit code. Raises NoCluster."""
    from ray.exceptions import AuthenticationError

    say(f"raydex submit: job {job}; Ctrl-C leaves it running, `{spell(address, f'--stop {job}')}` ends it")
    try:
        async for lines in client.tail_job_logs(job):
            print(lines, end="", flush=True)
        ended = client.get_job_info(job)
    except (AuthenticationError, ConnectionError, RuntimeError) as error:
        raise NoCluster(f"the cluster went away ({error}): {GOES_ON}") from error
    code = ended.driver_exit_code or 0
    if ended.status == "SUCCEEDED":
        return DONE
    if code < 0:
        say(f"raydex submit: the command was ended ({signal.strsignal(-code) or f'signal {-code}'}); {GOES_ON}")
        return 128 - code
    if not code and ended.message:
        say(f"raydex submit: {ended.message}")
    return code or FAILED


app = command("submit", __doc__, run, kind=Submit)


if __name__ == "__main__":
    main(app)
