"""Runs a command on a Ray cluster whose nodes have Python and Ray, and follows its log.

`raydex submit index collections/ray.yaml` uploads Raydex itself and the files that the command names. What else the
nodes lack, they install: the versions that are installed here, once for each node. Exits with the command's exit code.
"""

import argparse
import asyncio
import importlib.util
import shlex
import shutil
import signal
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jobs.cli import DONE, FAILED, BadInput, command, main, say
from jobs.environment import set_variables, variables
from jobs.node import LACKING, REQUIREMENTS, walk_requirements

if TYPE_CHECKING:
    from ray.job_submission import JobSubmissionClient

ADDRESS = "http://127.0.0.1:8265"
PACKAGES = ("pipelines", "serve", "jobs")
NO_PYTHON = 127  # of the shell: `ray start` ran without a `python` on PATH; the built environment has one
# What of this environment the command sees; RAYDEX_HOME is a folder of this machine.
PASSED, PASSED_PREFIX, KEPT_HERE = ("DATABASE_URL", "OPENAI_BASE_URL", "OPENAI_API_KEY"), "RAYDEX_", {"RAYDEX_HOME"}
# Parts of torch's build for CUDA. torch names the exact versions that it needs; its build for CPUs needs none.
OF_TORCH = ("nvidia-", "cuda-", "triton")
GOES_ON = "what was done is kept, and goes on when the same is submitted again"


class NoCluster(RuntimeError):
    """The cluster can't be reached, refuses the job, or went away during it."""


def arguments() -> argparse.ArgumentParser:
    parser = command("submit", __doc__)
    add = parser.add_argument
    add("--address", help=f"the cluster's dashboard (default: RAY_API_SERVER_ADDRESS, else {ADDRESS})")
    add(
        "--environment",
        choices=["auto", "build", "none"],
        default="auto",
        help="what the nodes install: auto asks them what they lack, build installs all, none nothing (%(default)s)",
    )
    add("--index", metavar="URL", help="a package index beside PyPI, such as that of torch's builds for CPUs")
    add("--env", metavar="NAME=VALUE", action="append", default=[], help="a variable for the command (may be repeated)")
    add("words", nargs=argparse.REMAINDER, metavar="VERB …", help="the command: a verb of `raydex` with its flags")
    return parser


def run(args: argparse.Namespace) -> int:
    given = variables()
    if not args.words:
        raise BadInput("name a command, such as `raydex submit index collections/ray.yaml`")
    passed = variables_to_pass(given, args.env)
    if not passed.get("DATABASE_URL"):
        raise BadInput(
            "DATABASE_URL is not set: give a Postgres that every node reaches. On one machine `raydex database` keeps "
            "the embedded one running and prints its URL"
        )
    set_variables({"RAY_AUTH_MODE": given.get("RAY_AUTH_MODE") or "token"})
    job = Job(args.address or given.get("RAY_API_SERVER_ADDRESS") or ADDRESS, args.words, passed)
    code = job.run(check=args.environment == "auto", pins=list_pins(args.index) if args.environment == "build" else [])
    if args.environment == "auto" and code in (LACKING, NO_PYTHON):
        say("raydex submit: they install what is missing: minutes the first time, later runs use it again")
        code = job.run(check=False, pins=list_pins(args.index))
    return code


def variables_to_pass(given: Mapping[str, str], named: Sequence[str]) -> dict[str, str]:
    """Return the variables that the command sees on the cluster: of those `given` here, and the `named` NAME=VALUE."""
    passed = {
        name: value
        for name, value in given.items()
        if value and name not in KEPT_HERE and (name in PASSED or name.startswith(PASSED_PREFIX))
    }
    if wrong := [each for each in named if not each.partition("=")[1]]:
        raise BadInput(f"--env {wrong[0]}: write NAME=VALUE")
    return passed | {name: value for name, _, value in (each.partition("=") for each in named)}


def list_requirements() -> list[str]:
    """Return what Raydex requires, without its extras. Raises BadInput if it is not installed here."""
    try:
        lines = requires("raydex") or []
    except PackageNotFoundError as error:
        raise BadInput("raydex is not installed here, so its requirements are not known: `pip install .`") from error
    return [line for line in lines if "extra ==" not in line]


def list_pins(index: str | None) -> list[str]:
    """Return the lines of a requirements file: `name==version` of all that Raydex needs, as it is installed here."""
    from packaging.utils import canonicalize_name

    versions = {canonicalize_name(wanted.name): version for wanted, version in walk_requirements(list_requirements())}
    # torch without its build tag (2.13.0+cpu): which build it is, the node's package index decides.
    pins = [f"{name}=={version.partition('+')[0]}" for name, version in sorted(versions.items()) if version]
    return [*([f"--extra-index-url {index}"] if index else []), *(pin for pin in pins if not pin.startswith(OF_TORCH))]


def pack(folder: Path, words: Sequence[str]) -> None:
    """Copy into `folder` what the job's working directory holds: our packages, and files that `words` name."""
    for package in PACKAGES:
        spec = importlib.util.find_spec(package)
        assert spec and spec.submodule_search_locations, package
        origin = spec.submodule_search_locations[0]
        shutil.copytree(origin, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / REQUIREMENTS).write_text("\n".join(list_requirements()))
    for path in map(Path, (word.partition("=")[2] if word.startswith("--") else word for word in words)):
        if not path.is_absolute() and path.is_file():
            if ".." in path.parts:
                raise BadInput(f"{path} lies outside of this folder: call `raydex submit` from a folder above it")
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, folder / path)


@dataclass(frozen=True)
class Job:
    """A command of `raydex` for the cluster at `address`, with the variables that it sees there."""

    address: str
    words: Sequence[str]
    variables: Mapping[str, str]

    def run(self, check: bool, pins: Sequence[str]) -> int:
        """Run it in an environment with `pins` installed, or in the nodes' own, and return its exit code.

        With `check` it does not start where nodes lack something: LACKING or NO_PYTHON. Raises NoCluster.
        """
        from ray.exceptions import AuthenticationError
        from ray.job_submission import JobSubmissionClient

        entrypoint = shlex.join(["python", "-m", "jobs", *self.words])
        environment: dict[str, Any] = {"env_vars": dict(self.variables)}
        if pins:
            # Without pip's --no-cache-dir, Ray's default: a node whose Ray restarts downloads nothing again.
            environment["pip"] = {"packages": list(pins), "pip_install_options": ["--disable-pip-version-check"]}
        try:
            client = JobSubmissionClient(self.address)
            with tempfile.TemporaryDirectory() as folder:
                pack(Path(folder), self.words)
                job = client.submit_job(
                    entrypoint=f"python -m jobs.node && exec {entrypoint}" if check else entrypoint,
                    runtime_env=environment | {"working_dir": folder},
                )
        except (AuthenticationError, ConnectionError, RuntimeError) as error:
            raise NoCluster(f"the cluster at {self.address}: {error}") from error
        return asyncio.run(follow(client, job))


async def follow(client: "JobSubmissionClient", job: str) -> int:
    """Print the log of a job until its end, and return its exit code. Raises NoCluster."""
    from ray.exceptions import AuthenticationError

    say(f"raydex submit: job {job}; Ctrl-C leaves it running, `ray job stop {job}` ends it")
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


if __name__ == "__main__":
    main(arguments(), run)
