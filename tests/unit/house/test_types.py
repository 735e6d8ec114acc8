"""`make check-types` reports wrong and missing annotations and needless ignores, like a strict checker."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FAULTS = {
    "def untyped(a): ...": ("implicit-any-parameter", "unannotated-return"),
    "def number(text: str) -> int:\n    return text": ("bad-return",),
    "def halve(n: int) -> None: ...\nhalve('a')": ("bad-argument-type",),
    "def halve(n: int) -> None: ...\nhalve(1, 2)": ("bad-argument-count",),
    "import re\nre.match('a', 'b').group()": ("missing-attribute",),
    "def add(n: int | None) -> int:\n    return n + 1": ("unsupported-operation",),
    "n: int = 5  # type: ignore[assignment]": ("unused-type-ignore",),
    "n: int = 5  # pyrefly: ignore[bad-assignment]": ("unused-ignore",),
    "values: list = []": ("implicit-any-type-argument",),
    "from typing import cast\nn: int = 5\ncast(int, n)": ("redundant-cast",),
    "import nosuchmodule": ("missing-import",),
    "async def work() -> None: ...\nasync def main() -> None:\n    work()": ("unused-coroutine",),
}


@pytest.fixture(scope="module")
def reports(tmp_path_factory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("faults")
    files = {folder / f"fault_{n}.py": text for n, text in enumerate(FAULTS)}
    for path, text in files.items():
        path.write_text(text + "\n")
    command = [str(Path(sys.executable).with_name("pyrefly")), "check", "--config", str(ROOT / "pyproject.toml")]
    done = subprocess.run([*command, "--output-format", "min-text", *map(str, files)], cwd=ROOT, capture_output=True,
                          text=True, check=False)  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    return {text: "\n".join(line for line in lines if path.name in line) for path, text in files.items()}


@pytest.mark.parametrize("fault", FAULTS)
def test_type_error_is_an_error(reports, fault):
    kinds = FAULTS[fault]
    assert all(f"[{kind}]" in reports[fault] for kind in kinds) and len(reports[fault].splitlines()) == len(kinds)
