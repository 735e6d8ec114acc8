"""Clusters of several nodes: work lands where its resources are, and a node dies alone."""

import json
import subprocess
import sys

import pytest
from kit.nodes import cluster
from kit.processes import eventually

pytestmark = [pytest.mark.slow, pytest.mark.exhaustive]

WHERE = """
import json, os, ray
ray.init(log_to_driver=False)
@ray.remote(num_gpus=1)
def where():
    return ray.util.get_node_ip_address(), os.environ["RAYDEX_HOME"]
nodes = [(node["NodeManagerAddress"], node["Alive"]) for node in ray.nodes()]
print(json.dumps({"task": ray.get(where.remote(), timeout=60), "nodes": nodes}))
"""


def test_work_lands_on_the_node_that_has_what_it_needs(tmp_path):
    with cluster(tmp_path, cpus=0) as nodes:
        worker = nodes.add(cpus=1, gpus=1)
        done = subprocess.run(
            [sys.executable, "-c", WHERE], env=nodes.environment(), capture_output=True, text=True, check=True
        )
        told = json.loads(done.stdout.splitlines()[-1])
        assert told["task"] == [worker.host.address, str(worker.home)]
        assert sorted(told["nodes"]) == sorted([[nodes.head.host.address, True], [worker.host.address, True]])
        worker.kill()
        assert nodes.head.process.poll() is None
        eventually(lambda: not worker.pids(), "all processes of the node are gone")
