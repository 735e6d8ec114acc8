"""Runs the command `ray` with the given arguments, making the node wait long enough for its agents."""

import os
import sys
from pathlib import Path

from ray.scripts.scripts import main

sys.path.insert(0, str(Path(__file__).parents[1]))

from pipelines.ray_ports import AGENT_START_MS, given_ports

if __name__ == "__main__":
    os.environ.setdefault("RAY_agent_register_timeout_ms", str(AGENT_START_MS))
    with given_ports():
        main()
