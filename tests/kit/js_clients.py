"""Runs JavaScript clients of OpenAI's API (in tests/data), which npm installs once into the virtual environment."""

import functools
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPTS = Path(__file__).parents[1] / "data" / "clients"
FOLDER = Path(sys.prefix) / "js-clients"
INSTALL_S, ASK_S = 300, 120


@functools.cache
def installed() -> Path:
    """Return the folder with the scripts and their packages. Skips the test without npm or without its registry."""
    if not shutil.which("npm"):
        pytest.skip("npm is not installed")
    FOLDER.mkdir(exist_ok=True)
    wanted, done = (SCRIPTS / "package.json").read_text(), FOLDER / "installed.json"
    for script in SCRIPTS.iterdir():
        shutil.copy(script, FOLDER)
    if not done.is_file() or done.read_text() != wanted:
        npm("install", "--no-package-lock", "--no-audit", "--no-fund")
        done.write_text(wanted)
    return FOLDER


def npm(*arguments: str) -> None:
    """Run npm. Skips the test if it fails."""
    try:
        subprocess.run(["npm", *arguments], cwd=FOLDER, check=True, capture_output=True, text=True, timeout=INSTALL_S)
    except (subprocess.SubprocessError, OSError) as error:
        pytest.skip(f"npm can't install the clients: {getattr(error, 'stderr', '') or error}")


def ask_by(client: str, base_url: str, key: str) -> Any:
    """Run a client's script and return its output."""
    command = ["node", "run.mjs", client, base_url, key]
    ran = subprocess.run(command, check=False, cwd=installed(), capture_output=True, text=True, timeout=ASK_S)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def bundle(client: str) -> str:
    """Return a client's script as a bundle for a page, which calls it as `clients.run`."""
    command = ["npx", "--no-install", "esbuild", f"{client}.mjs", "--bundle", "--format=iife", "--global-name=clients"]
    ran = subprocess.run(command, check=False, cwd=installed(), capture_output=True, text=True, timeout=ASK_S)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout
