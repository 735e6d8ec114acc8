"""`raydex status` on a real database shows its content and starts without imports that only other verbs need."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
HEAVY = ("ray", "torch", "sklearn", "scipy", "pandas", "transformers", "scrapy", "onnxruntime")
STATUS = f"""
import sys
from jobs.__main__ import raydex
try:
    raydex(["status", "--json"])
except SystemExit as ended:
    print(ended.code, [name for name in {HEAVY} if name in sys.modules])
"""


def test_status_loads_no_heavy_package(database_url):
    done = subprocess.run([sys.executable, "-c", STATUS], cwd=ROOT, text=True, capture_output=True, check=True,
                          env=os.environ | {"DATABASE_URL": database_url})  # fmt: skip
    status, loaded = done.stdout.splitlines()
    assert json.loads(status)["collections"] == {}
    assert loaded == "0 []"


def test_closed_pipe_ends_a_command_quietly(database_url, warm):
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([sys.executable, "-m", "jobs", "status"], cwd=ROOT, stdout=writer, stderr=subprocess.PIPE,
                          env=os.environ | {"DATABASE_URL": database_url}, check=False)  # fmt: skip
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")
