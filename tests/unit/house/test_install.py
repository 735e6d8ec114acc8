"""`make install` chooses the right torch and starts only with enough room. pip, uv and the GPU are simulated."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pipelines.embedding.cpu import has_gpu

ROOT = Path(__file__).parents[3]
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
# Creates an environment whose Python is this script. It records each call of pip and uv; pip installs an empty torch.
STAND_IN = f"""#!/bin/sh
here=$(dirname "$(dirname "$0")")
case "$*" in
  "-m venv "*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
  "-m pip config list") echo "global.index-url='$PIP_INDEX'" | grep http ;;
  "-m pip install "* | "-m uv pip install "*)
    echo "$*" >> "$PIP_CALLS"
    case "$*" in
      *"$UNREACHABLE"*) exit 1 ;;
      *constraints.txt*) mkdir -p "$here/lib/python3.11/site-packages/torch"
                          touch "$here/lib/python3.11/site-packages/torch/version.py" ;;
    esac ;;
  *) exec '{sys.executable}' "$@" ;;
esac
"""


class Checkout:
    """A folder with the files that `make install` reads. Its `bin` comes first in PATH."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.bin, self._calls = folder / "with a space", folder / "bin", folder / "calls"
        self.folder.mkdir()
        self.bin.mkdir()
        for name in ("Makefile", "pyproject.toml", "constraints.txt"):
            shutil.copy(ROOT / name, self.folder)
        self.command("python", STAND_IN)

    def command(self, name: str, script: str) -> None:
        (self.bin / name).write_text(script)
        (self.bin / name).chmod(0o755)

    def install(self, *flags: str, unreachable: str = "nothing", index: str = "") -> subprocess.CompletedProcess[str]:
        """Run the part of `make install` that installs packages. Calls that contain `unreachable` fail.

        `index` is the package index in pip's settings. No disk is needed unless `flags` say so: this machine's may be
        full.
        """
        variables = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "TORCH_INDEX")}
        variables |= {"PATH": f"{self.bin}:{os.environ['PATH']}", "PIP_CALLS": str(self._calls), "PIP_INDEX": index}
        return subprocess.run(
            ["make", ".venv/.installed", f"PYTHON={self.bin / 'python'}", "DISK_CPU=0", "DISK_CUDA=0", *flags],
            cwd=self.folder, env=variables | {"UNREACHABLE": unreachable}, capture_output=True, text=True, check=False,
        )  # fmt: skip

    def calls(self) -> list[str]:
        """Return the calls of pip and uv since the last time, except those that install pip and uv."""
        lines = self._calls.read_text().splitlines() if self._calls.exists() else []
        self._calls.unlink(missing_ok=True)
        return [line for line in lines if " pip==" not in line]


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


@pytest.fixture
def no_gpu(checkout: Checkout) -> None:
    if has_gpu() or shutil.which("nvidia-smi"):
        pytest.skip("this machine has an NVIDIA driver")
    checkout.command("uname", "#!/bin/sh\necho Linux\n")


def test_cpu_torch_is_installed_without_a_gpu_then_the_rest_from_pypi(checkout, no_gpu):
    assert checkout.install().returncode == 0
    torch, rest = checkout.calls()
    assert f"--index-url {CPU_INDEX} " in torch and torch.endswith("--no-deps -c constraints.txt torch")
    assert "index-url" not in rest and rest.endswith("-c constraints.txt -e .[dev]")


def test_installed_packages_are_not_fetched_again(checkout, no_gpu):
    checkout.install()
    checkout.calls()
    assert checkout.install().returncode == 0 and checkout.calls() == []
    (checkout.folder / "pyproject.toml").touch()
    os.utime(checkout.folder / ".venv/.installed", (0, 0))
    assert checkout.install("DISK_CPU=1000000").returncode == 0  # it needs no room for torch now
    assert len(checkout.calls()) == 1


def test_unreachable_index_costs_one_line(checkout, no_gpu):
    done = checkout.install(unreachable=CPU_INDEX)
    assert done.returncode == 0 and f"no torch comes from {CPU_INDEX}" in done.stdout
    _, torch, rest = checkout.calls()
    assert "index-url" not in torch and torch.endswith("--no-deps -c constraints.txt torch")
    assert rest.endswith("-e .[dev]")


def test_uv_uses_the_package_index_of_pip(checkout):
    checkout.install(index="https://packages.example.com/simple")
    rest = checkout.calls()[-1]
    assert rest.startswith("-m uv pip install ") and " --default-index https://packages.example.com/simple " in rest
    (checkout.folder / ".venv/.installed").unlink()
    checkout.install()
    assert "index" not in checkout.calls()[-1]


@pytest.mark.parametrize("unreachable", ["-m uv pip", "uv"])  # uv fails, or cannot be installed
def test_pip_installs_if_uv_does_not(checkout, unreachable):
    done = checkout.install(unreachable=unreachable)
    assert done.returncode == 0 and checkout.calls()[-1].startswith("-m pip install ")
    assert (checkout.folder / ".venv/.installed").exists()


def test_failed_install_is_reported_and_leaves_no_marker(checkout, no_gpu):
    done = checkout.install(unreachable="-e .")
    assert done.returncode == 2
    assert not (checkout.folder / ".venv/.installed").exists()


@pytest.mark.parametrize("command", ["nvidia-smi", "uname"])
def test_default_torch_is_installed_with_a_gpu_and_on_macos(checkout, command):
    checkout.command(command, "#!/bin/sh\necho Darwin\n")
    assert checkout.install().returncode == 0
    assert not [call for call in checkout.calls() if "index" in call]


def test_torch_index_can_be_chosen(checkout):
    checkout.install("TORCH_INDEX=https://download.pytorch.org/whl/cu130")
    assert "--index-url https://download.pytorch.org/whl/cu130 " in checkout.calls()[0]


@pytest.mark.parametrize(("flags", "unreachable"), [(["DISK_CPU=1000000"], ""), (["DISK_CUDA=1000000"], CPU_INDEX)])
def test_too_small_disk_is_reported_before_anything_is_installed(checkout, no_gpu, flags, unreachable):
    done = checkout.install(*flags, unreachable=unreachable or "nothing")
    assert done.returncode == 2
    message = done.stderr.splitlines()[0]
    assert message.startswith(f"the install needs 1000000 GB of disk in {checkout.folder}")
    assert " GB: free some" in message and "Traceback" not in done.stderr
    assert not [call for call in checkout.calls() if "-e .[dev]" in call]


def test_outdated_python_is_reported(checkout):
    checkout.command("python", "#!/bin/sh\nexec " + sys.executable + " -c 'import sys; sys.exit(\"too old\")'\n")
    done = checkout.install()
    assert done.returncode == 2 and done.stderr.startswith("too old")
