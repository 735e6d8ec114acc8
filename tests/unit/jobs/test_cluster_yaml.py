"""Ray's cluster launcher accepts cluster.yaml and cluster-gcp.yaml, and their nodes can run a job."""

import copy
import os
import re
import shlex
import subprocess
from pathlib import Path

import jsonschema
import pytest
import yaml
from ray.autoscaler._private.util import prepare_config, validate_config
from ray.scripts.scripts import start

from pipelines.indexing.building.pools import plan_pools

ROOT = Path(__file__).parents[3]
START = ("head_start_ray_commands", "worker_start_ray_commands")


FILES = {"cluster.yaml": "aws", "cluster-gcp.yaml": "gcp"}
RULE = re.compile(r"gcloud compute firewall-rules create \S+.*?(?=\ngcloud|\n```)", re.DOTALL)


@pytest.fixture(params=FILES)
def file(request):
    return ROOT / request.param


@pytest.fixture
def config(file):
    return yaml.safe_load(file.read_text())


def test_schema_of_ray_accepts_it_and_would_reject_a_mistake(config):
    validate_config(prepare_config(copy.deepcopy(config)))
    config["available_node_types"]["head"]["instance"] = "m6i.xlarge"
    with pytest.raises(jsonschema.ValidationError):
        validate_config(prepare_config(config))


def test_files_differ_only_in_their_cloud(file, config):
    assert config["provider"]["type"] == FILES[file.name]
    first, second = (yaml.safe_load((ROOT / name).read_text()) for name in FILES)
    both = (set(first) | set(second)) - {"provider", "available_node_types", "head_setup_commands"}
    assert {key for key in both if first.get(key) != second.get(key)} == set()
    kinds = [one["available_node_types"] for one in (first, second)]
    of_cloud = {"node_config"}
    assert [
        {name: {key: value for key, value in kind.items() if key not in of_cloud} for name, kind in each.items()}
        for each in kinds
    ] == [
        {name: {key: value for key, value in kind.items() if key not in of_cloud} for name, kind in kinds[0].items()}
    ] * 2


def test_google_cloud_node_has_the_fields_that_ray_reads(config):
    if config["provider"]["type"] != "gcp":
        pytest.skip("of AWS")
    for name, kind in config["available_node_types"].items():
        node = kind["node_config"]
        cpus = int(node["machineType"].rsplit("-", 1)[-1])
        assert name == config["head_node_type"] or kind["resources"]["CPU"] == cpus
        [interface] = node["networkInterfaces"]  # set for all nodes: otherwise Ray looks for a network
        assert interface["subnetwork"].startswith(f"projects/{config['provider']['project_id']}/regions/")
        assert f"/regions/{config['provider']['region']}/" in interface["subnetwork"]
        [disk] = node["disks"]
        assert disk["boot"] and disk["autoDelete"] and disk["initializeParams"]["sourceImage"].startswith("projects/")
    assert config["provider"]["availability_zone"].startswith(config["provider"]["region"] + "-")


def test_head_has_scalable_cpu_and_gpu_workers(config):
    types = config["available_node_types"]
    assert config["head_node_type"] in types
    workers = {name: kind for name, kind in types.items() if name != config["head_node_type"]}
    for gpu in (False, True):
        kinds = [kind for kind in workers.values() if bool(kind["resources"].get("GPU")) == gpu]
        assert any(kind["max_workers"] > kind["min_workers"] for kind in kinds)
    assert sum(kind["max_workers"] for kind in workers.values()) <= config["max_workers"]
    assert config["upscaling_speed"] > 0


def test_job_fits_on_the_nodes_that_it_starts(config):
    nodes = [
        {name: float(value) for name, value in kind["resources"].items()}
        for name, kind in config["available_node_types"].items()
        for _ in range(1 if name == config["head_node_type"] else kind["min_workers"])
    ]
    pools, message = plan_pools(nodes)
    assert (pools.embedders, pools.gpus, message) == (4, 0.0, "")
    assert plan_pools([*nodes, {"CPU": 8.0, "GPU": 1.0}])[0].gpus == 1.0


@pytest.mark.parametrize("kind", ["head", "cpu_worker", "gpu_worker"])
def test_every_kind_of_node_installs_only_the_packages_of_a_run(config, kind):
    launched = prepare_config(copy.deepcopy(config))  # a node type's own list replaces all others
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

FREE_PORTS = range(32768, 61000)  # Linux's net.ipv4.ip_local_port_range: the ports meant by "any free port"
PORT_FLAGS = ("node-manager", "object-manager", "dashboard-agent-grpc", "runtime-env-agent", "metrics-export")


def listed_ports() -> set[int]:
    """Return the ports that SECURITY.md's table opens to nodes, launcher and readers. Postgres is not on the nodes."""
    table = (ROOT / "SECURITY.md").read_text().partition("\n## Ports of a cluster\n")[2]
    found: set[int] = set()
    for port, to in re.findall(r"^\| (\d+(?: to \d+)?)\b[^|]* \| [^|]* \| ([^|]*) \|$", table, re.MULTILINE):
        if to in ("nodes", "head, and who runs `ray up`", "the proxy that ends TLS, or readers"):
            first, _, last = port.partition(" to ")
            found |= set(range(int(first), int(last or first) + 1))
    return found - {5432}


def rules_of(config) -> list[tuple[str, int, int]]:
    """Return the open port ranges by source: AWS's rules in the file, Google's in the docs."""
    if config["provider"]["type"] == "aws":
        rules = config["provider"]["security_group"]["IpPermissions"]
        return [(each["CidrIp"], rule["FromPort"], rule["ToPort"]) for rule in rules for each in rule["IpRanges"]]
    found = []
    for command in RULE.findall((ROOT / "docs/running.md").read_text()):
        words = shlex.split(command)
        source, allowed = (words[words.index(flag) + 1] for flag in ("--source-ranges", "--allow"))
        ranges = [re.fullmatch(r"tcp:(\d+)(?:-(\d+))?", each) for each in allowed.split(",")]
        found += [(source, int(each[1]), int(each[2] or each[1])) for each in ranges]
    return found


def test_firewall_rules_open_only_the_ports_in_the_table(config):
    opened = {number for _, first, last in rules_of(config) for number in range(first, last + 1)}
    fixed = [set(map(int, re.findall(r"--[a-z-]+-port=(\d+)", config[key][-1]))) for key in START]
    assert fixed[0] == fixed[1]
    listed = listed_ports()
    assert {22, 6379, 8000, 10002, 19999, 52365} <= listed
    assert not {8265, 10001, 8404, 44217, 30000} & listed
    assert opened == listed | fixed[0] | set(FREE_PORTS)


def test_nothing_is_open_to_everybody(config):
    assert "0.0.0.0/0" not in {source for source, _, _ in rules_of(config)}


@pytest.mark.parametrize("key", START)
def test_nodes_start_with_a_token_fixed_ports_and_flags_known_to_ray(config, key):
    command = config[key][-1]
    assert "RAY_AUTH_MODE=token" in command
    assert "RAY_worker_niceness=0" in command
    assert ".venv/bin:$PATH" in command
    known = {option for parameter in start.params for option in parameter.opts}
    flags = {word.split("=")[0] for word in shlex.split(command) if word.startswith("--")}
    assert {f"--{name}-port" for name in PORT_FLAGS} <= flags <= known


def test_dashboard_is_reachable_only_on_the_head(config):
    assert "--dashboard-host=127.0.0.1" in config["head_start_ray_commands"][-1]


PASSWORD = re.compile(r"postgres(?:ql)?://[^/\s:@]+:[^@\s]+@")
SHIPPED = [*FILES, "serve/config.yaml", "docs/running.md", "docs/serving.md", "docs/kubernetes.md"]
SHIPPED += [str(path.relative_to(ROOT)) for path in (ROOT / "deploy").rglob("*") if path.is_file()]


@pytest.mark.parametrize("name", [name for name in SHIPPED if not name.endswith((".pyc", ".json"))])
def test_no_deployed_file_contains_a_password(name):
    found = PASSWORD.findall((ROOT / name).read_text())
    assert [url for url in found if "${" not in url] == [], "a variable of the environment, or a secret, holds it"


@pytest.mark.parametrize("key", START)
def test_service_variables_are_loaded_from_a_file_before_ray_starts(config, key):
    command = config[key][-1]
    mounted = [remote for remote, local in config["file_mounts"].items() if local == "~/.raydex.env"]
    assert mounted == [f"/home/{config['auth']['ssh_user']}/.raydex.env"]
    assert 0 < command.index("set -a; . ~/.raydex.env; set +a;") < command.index("ray start")


@pytest.mark.parametrize("value", ["postgresql://u:p@h/d?sslmode=require&application_name=x", "a b'c", "$HOME`id`"])
def test_any_value_survives_that_file(tmp_path, value):
    (tmp_path / ".raydex.env").write_text(f"DATABASE_URL={shlex.quote(value)}\n")
    line = 'set -a; . ~/.raydex.env; set +a; python3 -c \'import os; print(os.environ["DATABASE_URL"], end="")\''
    shell = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    assert subprocess.run(["sh", "-c", line], env=shell, capture_output=True, text=True, check=True).stdout == value
