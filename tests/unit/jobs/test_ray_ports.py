"""The ports of a Ray node's agents, and the node's knowledge of them."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from pipelines.ray_ports import (
    AGENT_START_MS,
    CHOSEN,
    LISTEN,
    PORTS,
    RAYS_OWN_LISTEN,
    unused_ports,
    with_listen_port,
    with_ports,
)


def test_port_is_chosen_if_none_is_given() -> None:
    given = with_ports(dict, metrics_export_port=9464, runtime_env_agent_port=0, num_cpus=2)
    assert (given["metrics_export_port"], given["num_cpus"]) == (9464, 2)
    chosen = {given[name] for name in CHOSEN if name != "metrics_export_port"}
    assert len(chosen) == 2 and chosen <= {*PORTS}


def test_second_ray_listens_on_another_port() -> None:
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind(("", RAYS_OWN_LISTEN))
            taken.listen()
        except OSError:
            pass  # a Ray on this machine uses it
        assert with_ports(dict)[LISTEN] in PORTS
        assert with_ports(dict, dashboard_agent_listen_port=RAYS_OWN_LISTEN)[LISTEN] in PORTS
        assert with_ports(dict, dashboard_agent_listen_port=4711)[LISTEN] == 4711


def test_only_a_node_is_told_the_port_of_its_agent() -> None:
    node = [
        "raylet",
        "--dashboard_agent_command=python agent.py --grpc-port=0 --listen-port=4711 --node-id=1",
        "--head",
    ]

    def start(command, kind, **options):
        return command, kind, options

    command, kind, options = with_listen_port(start, node, "raylet", fate_share=True)
    assert command == [*node, f"--{LISTEN}=4711"] and (kind, options) == ("raylet", {"fate_share": True})
    for other in (["gcs_server", "--listen-port=4711"], [node[1].replace("4711", "0")]):
        assert with_listen_port(start, other, "x")[0] == other


def test_port_is_chosen_once_and_never_one_in_use() -> None:
    port = next(unused_ports())
    with socket.create_server(("", port)):
        free = [*unused_ports()]
    assert port not in free and len(free) == len({*free}) > 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "used"),
    [
        ({}, str(AGENT_START_MS)),
        pytest.param({"RAY_agent_register_timeout_ms": "5"}, "5", marks=pytest.mark.exhaustive),
    ],
)
def test_node_waits_for_its_agents_with_any_start_command(given: dict[str, str], used: str) -> None:
    """A node's processes inherit the environment of the command that starts it."""
    start = Path(__file__).parents[3] / "deploy" / "start_ray.py"
    script = (
        "import atexit, os, runpy, sys\n"
        "atexit.register(lambda: print(os.environ['RAY_agent_register_timeout_ms']))\n"
        "sys.argv = ['ray', '--version']\n"
        f"runpy.run_path({str(start)!r}, run_name='__main__')\n"
    )
    own = {name: value for name, value in os.environ.items() if name != "RAY_agent_register_timeout_ms"}
    done = subprocess.run([sys.executable, "-c", script], env=own | given, capture_output=True, text=True, check=True)
    assert done.stdout.split()[-1] == used
