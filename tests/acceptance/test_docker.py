"""The image as its users run it: unprivileged, on a read-only root, through a kill, and with a timely stop.

Run it with `RAYDEX_IMAGE=raydex:0.1.0 make test-all`, for an image made from deploy/docker/Dockerfile. docs/docker.md
explains how.
"""

import json
import os
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.exhaustive

IMAGE = os.environ.get("RAYDEX_IMAGE")
NAME = f"raydex-test-{os.getpid()}"
PAGE = "https://docs.test/scaling.md#scaling"
RIGHTS = ["--read-only", "--tmpfs=/tmp", "--cap-drop=ALL", "--security-opt=no-new-privileges"]


def run_docker(*words: str) -> str:
    """Run a docker command and return its output. Its failure ends the test with that output."""
    done = subprocess.run(["docker", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"docker {' '.join(words)}: {done.stderr}{done.stdout}"
    return done.stdout.strip()


def ask() -> str:
    """Ask over the published port, and return the first source of the answer, or the reason why there is none yet."""
    try:
        address = run_docker("port", NAME, "8000/tcp")
        body = json.dumps({"question": "Which setting do replicas follow?"}).encode()
        request = urllib.request.Request(f"http://{address}/query", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request) as reply:
            return json.load(reply)["citations"][0]["source"]
    except (AssertionError, OSError) as error:
        return str(error)


def wait_for(look: Callable[[], str], wanted: str) -> None:
    """Call `look` until it returns the wanted text, which takes seconds on an idle machine."""
    deadline = time.monotonic() + 100
    while (seen := look()) != wanted and time.monotonic() < deadline:
        time.sleep(0.5)
    assert seen == wanted


@pytest.fixture
def volumes(tmp_path: Path) -> Iterator[list[str]]:
    """Return the volumes of a container NAME, which is removed at the end: its data, and a page to index."""
    if not shutil.which("docker"):
        pytest.skip("docker is not installed")
    if subprocess.run(["docker", "info"], capture_output=True, check=False).returncode:
        pytest.skip("no Docker daemon answers")
    if not IMAGE:
        pytest.skip("RAYDEX_IMAGE names no image: docs/docker.md says how one is built")
    (tmp_path / "scaling.md").write_text("# Scaling\n\nThe number of replicas follows the setting `target_requests`.\n")
    tmp_path.chmod(0o755)  # the image's user is a different one
    yield [f"--volume={NAME}:/var/lib/raydex", f"--volume={tmp_path}:/docs:ro"]
    for words in (["rm", "--force", NAME], ["volume", "rm", "--force", NAME]):
        subprocess.run(["docker", *words], capture_output=True, check=False)


def test_container_answers_unprivileged_survives_a_kill_and_stops_in_time(volumes):
    assert IMAGE
    run_docker("run", "--detach", f"--name={NAME}", *RIGHTS, *volumes, "--shm-size=1g", "--publish=127.0.0.1::8000",
               "--env=RAYDEX_PUBLIC=true", IMAGE)  # fmt: skip
    index = "raydex index --path /docs --base-url https://docs.test/ --collection docs --no-ray"
    run_docker("exec", NAME, *index.split())
    wait_for(ask, PAGE)
    assert run_docker("exec", NAME, "id", "-u") != "0"
    assert run_docker("exec", NAME, "bash", "-c", "command -v cc gcc c++ clang make || echo none") == "none"
    run_docker("kill", NAME)
    run_docker("start", NAME)
    wait_for(ask, PAGE)
    wait_for(lambda: run_docker("inspect", "--format={{.State.Health.Status}}", NAME), "healthy")
    run_docker("stop", "--time=30", NAME)
    assert run_docker("inspect", "--format={{.State.ExitCode}}", NAME) == "0"
