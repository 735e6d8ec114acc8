"""Clients of OpenAI's API in JavaScript, which npm installs once into the virtual environment; tests/data has them."""

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
    """The folder with the scripts and their packages. Skips the test where there is no npm, or no registry for it."""
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
    """Run npm. Skips the test where it fails."""
    try:
        subprocess.run(["npm", *arguments], cwd=FOLDER, check=True, capture_output=True, text=True, timeout=INSTALL_S)
    except (subprocess.SubprocessError, OSError) as error:
        pytest.skip(f"npm can't install the clients: {getattr(error, 'stderr', '') or error}")


def ask_by(client: str, base_url: str, key: str) -> Any:
    """What the script of a client prints."""
    command = ["node", "run.mjs", client, base_url, key]
    ran = subprocess.run(command, check=False, cwd=installed(), capture_output=True, text=True, timeout=ASK_S)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def bundle(client: str) -> str:
    """The script of a client for a page, whose `clients.run` it is."""
    command = ["npx", "--no-install", "esbuild", f"{client}.mjs", "--bundle", "--format=iife", "--global-name=clients"]
    ran = subprocess.run(command, check=False, cwd=installed(), capture_output=True, text=True, timeout=ASK_S)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout
