"""Runs `ray` with these words, so that the node which it starts has the time that its agents take (see ray_ports)."""

import sys
from pathlib import Path

from ray.scripts.scripts import main

sys.path.insert(0, str(Path(__file__).parents[1]))

from pipelines.ray_ports import given_ports

if __name__ == "__main__":
    with given_ports():
        main()
