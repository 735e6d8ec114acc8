"""The crontab and the systemd units in deploy/ name existing jobs, files and flags."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from jobs import serve
from jobs.flags import read_words
from jobs.nightly import app
from pipelines.indexing.collection import load_collection

ROOT = Path(__file__).parents[3]

UNITS = ROOT / "deploy" / "systemd"


def collection_of(command):
    """Return the collection file in a night's command, after its flags were accepted."""
    words = shlex.split(command)
    assert (words[0].endswith(".venv/bin/raydex"), words[1]) == (True, "nightly")
    return Path(read_words(app, words[2:])[1].arguments["source"])


def test_crontab_is_one_line_with_a_valid_command():
    text = (ROOT / "deploy" / "crontab.example").read_text()
    (line,) = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert all(set(part) <= set("0123456789*/,-") for part in line.split()[:5])
    assert "%" not in line  # cron reads a percent sign as the end of the command
    command = line.split("&& ", 1)[1].split(" >>", 1)[0]
    assert load_collection(ROOT / collection_of(command)).name


def test_units_run_existing_commands():
    [night] = re.findall(r"^ExecStart=(.*)", (UNITS / "raydex-nightly.service").read_text(), re.M)
    assert load_collection(ROOT / collection_of(night)).name
    [service] = re.findall(r"^ExecStart=(.*)", (UNITS / "raydex.service").read_text(), re.M)
    program, verb, *flags = shlex.split(service)
    assert (program, verb) == (night.split()[0], "serve")
    read_words(serve.app, flags)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze on this machine")
def test_systemd_accepts_the_units(tmp_path):
    for path in UNITS.iterdir():  # it also checks whether the programs exist
        (tmp_path / path.name).write_text(path.read_text().replace("/srv/raydex/.venv/bin/raydex", "/bin/true"))
    words = ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", *map(str, tmp_path.iterdir())]
    said = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (said.returncode, said.stderr) == (0, "")
