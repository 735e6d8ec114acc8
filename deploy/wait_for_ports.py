"""Waits until a Ray head's ports are free, and prints the dashboard flag for `raydex submit`.

An ending head may hold its ports for another 30 s. If one is taken, Ray silently moves its dashboard to another port,
or fails with a traceback.
"""

import argparse
import contextlib
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from pipelines.ray_ports import RAYS_OWN_LISTEN, is_free

# Flags of `ray start` and their defaults.
PORTS = {
    "port": 6379,
    "dashboard-port": 8265,
    "ray-client-server-port": 10001,
    "dashboard-agent-listen-port": RAYS_OWN_LISTEN,
}
PATIENCE_S = 40.0


def read_ports(words: list[str]) -> dict[str, int]:
    """Return the ports of a head started by `ray start` with these flags, by flag name."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for name, default in PORTS.items():
        parser.add_argument(f"--{name}", dest=name, type=int, default=default)
    return vars(parser.parse_known_args(words)[0])


def main() -> None:
    with contextlib.suppress(KeyboardInterrupt):
        ports, until, waiting = read_ports(sys.argv[1:]), time.monotonic() + PATIENCE_S, False
        while taken := {name: port for name, port in ports.items() if port and not is_free(port)}:
            named = " and ".join(f"port {port} (--{name})" for name, port in taken.items())
            if time.monotonic() > until:
                sys.exit(f"start-cluster: {named} in use: end what listens there, or choose another port by that flag")
            if not waiting:
                print(f"start-cluster: waiting up to {PATIENCE_S:.0f} s for {named}, in use", file=sys.stderr)
            waiting = True
            time.sleep(0.5)
        dashboard = ports["dashboard-port"]
        print("" if dashboard == PORTS["dashboard-port"] else f"--address http://127.0.0.1:{dashboard} ", end="")
        return
    sys.exit(130)


if __name__ == "__main__":
    main()
