"""`deploy/start-cluster` waits for its head's ports, and prints a line that finds the head."""

import runpy
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from kit.head_process import free_ports

ROOT = Path(__file__).parents[3]
SCRIPT = ROOT / "deploy" / "wait_for_ports.py"


def flags(**ports: str) -> list[str]:
    """Return flags with free ports for all ports not given."""
    names = ["port", "dashboard-port", "ray-client-server-port", "dashboard-agent-listen-port"]
    free = dict(zip(names, free_ports(len(names)), strict=True))
    return [f"--{name}={port}" for name, port in (free | ports).items()]


def test_printed_flag_names_a_non_default_dashboard() -> None:
    (port,) = free_ports(1)
    done = subprocess.run(
        [sys.executable, SCRIPT, *flags(**{"dashboard-port": port}), "--num-cpus=2", "--head"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == (f"--address http://127.0.0.1:{port} ", "")


@pytest.mark.parametrize("name", ["port", "dashboard-port", "ray-client-server-port", "dashboard-agent-listen-port"])
def test_occupied_port_is_reported(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        script = runpy.run_path(str(SCRIPT))
        monkeypatch.setitem(script["main"].__globals__, "PATIENCE_S", 0.0)
        monkeypatch.setattr(sys, "argv", ["wait_for_ports.py", *flags(**{name: str(port)})])
        with pytest.raises(SystemExit, match=rf"port {port} \(--{name}\) in use: end what listens there"):
            script["main"]()


def test_port_that_becomes_free_is_waited_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        words = flags(port=str(taken.getsockname()[1]))
        waiting = subprocess.Popen([sys.executable, SCRIPT, *words], stderr=subprocess.PIPE, stdout=subprocess.PIPE)
        assert waiting.stderr is not None
        assert b"waiting up to 40 s" in waiting.stderr.readline()
    assert waiting.communicate(timeout=60)[0].startswith(b"--address") and waiting.returncode == 0


def test_default_ports_and_port_zero_are_left_to_ray() -> None:
    script = runpy.run_path(str(SCRIPT))
    assert script["read_ports"](["--port", "0", "--num-cpus", "4"])["port"] == 0
    assert script["read_ports"]([]) == script["PORTS"]
