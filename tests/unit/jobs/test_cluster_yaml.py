"""cluster.yaml is what Ray's own cluster launcher accepts, and starts nodes that can run a job."""

import copy
import re
import shlex
from pathlib import Path

import jsonschema
import pytest
import yaml
from ray.autoscaler._private.util import prepare_config, validate_config
from ray.scripts.scripts import start

from pipelines.indexing.building.pools import plan_pools

ROOT = Path(__file__).parents[3]
START = ("head_start_ray_commands", "worker_start_ray_commands")


@pytest.fixture
def config():
    return yaml.safe_load((ROOT / "cluster.yaml").read_text())


def test_rays_own_schema_accepts_it_and_would_refuse_a_mistake(config):
    validate_config(prepare_config(copy.deepcopy(config)))
    config["available_node_types"]["head"]["instance"] = "m6i.xlarge"
    with pytest.raises(jsonschema.ValidationError):
        validate_config(prepare_config(config))


def test_there_is_a_head_with_cpu_and_gpu_workers_that_may_come_and_go(config):
    types = config["available_node_types"]
    assert config["head_node_type"] in types
    workers = {name: kind for name, kind in types.items() if name != config["head_node_type"]}
    for gpu in (False, True):
        kinds = [kind for kind in workers.values() if bool(kind["resources"].get("GPU")) == gpu]
        assert any(kind["max_workers"] > kind["min_workers"] for kind in kinds)
    assert sum(kind["max_workers"] for kind in workers.values()) <= config["max_workers"]
    assert config["upscaling_speed"] > 0


def test_a_job_finds_room_on_the_nodes_that_it_starts(config):
    nodes = [
        {name: float(value) for name, value in kind["resources"].items()}
        for name, kind in config["available_node_types"].items()
        for _ in range(1 if name == config["head_node_type"] else kind["min_workers"])
    ]
    pools, message = plan_pools(nodes)
    assert (pools.embedders, pools.gpus, message) == (4, 0.0, "")
    assert plan_pools([*nodes, {"CPU": 8.0, "GPU": 1.0}])[0].gpus == 1.0


@pytest.mark.parametrize("kind", ["head", "cpu_worker", "gpu_worker"])
def test_every_kind_of_node_installs_what_a_run_needs_and_no_more(config, kind):
    launched = prepare_config(copy.deepcopy(config))  # a kind's own list replaces all others
    own = launched["available_node_types"][kind].get("worker_setup_commands", launched["worker_setup_commands"])
    commands = launched["head_setup_commands"] if kind == config["head_node_type"] else own
    packages = [index for index, command in enumerate(commands) if "apt-get install" in command]
    (install,) = [index for index, command in enumerate(commands) if "make install" in command]
    assert packages and packages[0] < install
    assert commands[install].endswith("make install EXTRAS=")
    assert ("whl/cpu" in commands[install]) == (kind != "gpu_worker")
    makefile = (ROOT / "Makefile").read_text()
    assert re.search(r"^install:", makefile, re.MULTILINE)
    assert "-e '.$(EXTRAS)'" in makefile
    assert re.search(r"^EXTRAS \?= \[dev\]$", makefile, re.MULTILINE)


def test_nodes_get_all_files_that_the_installation_reads(config):
    excluded = {name.rstrip("/") for name in config["rsync_exclude"]}
    read = {"Makefile", "pyproject.toml", "constraints.txt", "README.md", "LICENSE", "pipelines", "serve", "jobs"}
    assert not read & excluded
    assert {".*", "tests", "benchmarks"} <= excluded


# ---------------------------------------------------------------------------------------------- ports

FREE_PORTS = range(32768, 61000)  # Linux's net.ipv4.ip_local_port_range: those of "any free port"
PORT_FLAGS = ("node-manager", "object-manager", "dashboard-agent-grpc", "runtime-env-agent", "metrics-export")


def listed_ports() -> set[int]:
    """The numbers that SECURITY.md's table opens to nodes, launcher and readers; Postgres is none of the nodes."""
    table = (ROOT / "SECURITY.md").read_text().partition("\n## Ports of a cluster\n")[2]
    found: set[int] = set()
    for port, to in re.findall(r"^\| (\d+(?: to \d+)?)\b[^|]* \| [^|]* \| ([^|]*) \|$", table, re.MULTILINE):
        if to in ("nodes", "head, and who runs `ray up`", "the proxy that ends TLS, or readers"):
            first, _, last = port.partition(" to ")
            found |= set(range(int(first), int(last or first) + 1))
    return found - {5432}


def test_the_security_group_opens_the_ports_of_the_table_and_no_others(config):
    opened = {
        number
        for rule in config["provider"]["security_group"]["IpPermissions"]
        for number in range(rule["FromPort"], rule["ToPort"] + 1)
    }
    fixed = [set(map(int, re.findall(r"--[a-z-]+-port=(\d+)", config[key][-1]))) for key in START]
    assert fixed[0] == fixed[1]
    listed = listed_ports()
    assert {22, 6379, 8000, 10002, 19999, 52365} <= listed
    assert not {8265, 10001, 8404, 44217, 30000} & listed
    assert opened == listed | fixed[0] | set(FREE_PORTS)


def test_nothing_is_open_to_everybody(config):
    ranges = [each for rule in config["provider"]["security_group"]["IpPermissions"] for each in rule["IpRanges"]]
    assert "0.0.0.0/0" not in {each["CidrIp"] for each in ranges}


@pytest.mark.parametrize("key", START)
def test_nodes_start_with_a_token_on_ports_that_are_set_and_with_flags_that_ray_knows(config, key):
    command = config[key][-1]
    assert "RAY_AUTH_MODE=token" in command
    assert ".venv/bin:$PATH" in command
    known = {option for parameter in start.params for option in parameter.opts}
    flags = {word.split("=")[0] for word in shlex.split(command) if word.startswith("--")}
    assert {f"--{name}-port" for name in PORT_FLAGS} <= flags <= known


def test_the_dashboard_answers_on_the_head_alone(config):
    assert "--dashboard-host=127.0.0.1" in config["head_start_ray_commands"][-1]
