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

ROOT = Path(__file__).parents[2]


@pytest.fixture
def config():
    return yaml.safe_load((ROOT / "cluster.yaml").read_text())


def test_rays_own_schema_accepts_it(config):
    validate_config(prepare_config(copy.deepcopy(config)))


def test_the_schema_would_refuse_a_mistake(config):
    config["available_node_types"]["head"]["instance"] = "m6i.xlarge"
    with pytest.raises(jsonschema.ValidationError):
        validate_config(prepare_config(config))


def test_there_is_a_head_and_there_are_cpu_and_gpu_workers_from_the_start(config):
    types = config["available_node_types"]
    assert config["head_node_type"] in types
    workers = {name: kind for name, kind in types.items() if name != config["head_node_type"]}
    assert any(kind["resources"].get("GPU") and kind["min_workers"] for kind in workers.values())
    assert any(not kind["resources"].get("GPU") and kind["min_workers"] for kind in workers.values())
    assert sum(kind["max_workers"] for kind in workers.values()) <= config["max_workers"]


def test_a_job_finds_room_on_the_nodes_that_it_starts(config):
    nodes = [
        {name: float(value) for name, value in kind["resources"].items()}
        for name, kind in config["available_node_types"].items()
        for _ in range(1 if name == config["head_node_type"] else kind["min_workers"])
    ]
    pools, message = plan_pools(nodes)
    assert (pools.embedders, pools.gpus, message) == (1, 1.0, "")
    without_gpu = [node for node in nodes if not node.get("GPU")]
    assert plan_pools(without_gpu)[0].embedders == 8


def test_setup_installs_as_the_makefile_does(config):
    commands = " ; ".join(config["setup_commands"])
    assert "make install" in commands
    assert re.search(r"^install:", (ROOT / "Makefile").read_text(), re.MULTILINE)


@pytest.mark.parametrize("key", ["head_start_ray_commands", "worker_start_ray_commands"])
def test_nodes_start_with_a_token_and_flags_that_ray_knows(config, key):
    command = config[key][-1]
    assert "RAY_AUTH_MODE=token" in command
    assert ".venv/bin:$PATH" in command
    known = {option for parameter in start.params for option in parameter.opts}
    flags = {word.split("=")[0] for word in shlex.split(command) if word.startswith("--")}
    assert flags
    assert flags <= known


def test_the_dashboard_answers_on_the_head_alone(config):
    assert "--dashboard-host=127.0.0.1" in config["head_start_ray_commands"][-1]
