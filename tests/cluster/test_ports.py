"""A cluster indexes and serves with only SECURITY.md's ports open, all others dropped, and over a slow link."""

import re
import time

import pytest
import yaml
from kit.counting_model import CountingModel, IndexRun, counted_pages
from kit.databases import DatabaseServer
from kit.hosts import network
from kit.nodes import cluster
from kit.processes import eventually
from kit.reporting import leave_table
from kit.serving import ROOT, serving

from pipelines.indexing.building.pools import HERE_PAGES

pytestmark = [pytest.mark.exhaustive, pytest.mark.timeout(600)]

PAGES = HERE_PAGES + 200  # with fewer pages, the driver's process would embed everything


def open_to_nodes() -> tuple[list[str], list[str]]:
    """Return cluster.yaml's port flags, and the ports that its security group opens to nodes and readers."""
    config = yaml.safe_load((ROOT / "cluster.yaml").read_text())
    flags = re.findall(r"--[a-z-]+-port=\d+", config["worker_start_ray_commands"][-1])
    rules = config["provider"]["security_group"]["IpPermissions"]
    return flags, sorted({f"{rule['FromPort']}-{rule['ToPort']}" for rule in rules})


def test_listed_ports_are_enough_to_serve_and_index(tmp_path):
    flags, ports = open_to_nodes()
    with serving(tmp_path / "cluster", node_flags=flags, ports=ports) as served:
        for _ in range(2):
            served.add(cpus=3)
        for step in ("Raydex", "Retriever"):
            served.options(step, autoscaling_config=None, num_replicas=2, max_replicas_per_node=1)
        served.deploy()
        eventually(served.running, "the application runs", 120)
        served.wait_until_answering(served.head.host.address, *served.workers)
        assert len(served.placed("Retriever")) == 2
        with CountingModel(0.01) as model:
            env = served.nodes.environment(OPENAI_BASE_URL=served.net.publish(model.url))
            with IndexRun(counted_pages(tmp_path, PAGES, "pages"), env, served.head.host.enter) as run:
                eventually(lambda: any(node.pids("EmbedTexts") for node in served.workers.values()), "nodes embed", 120)
                assert run.finish()["chunks"]["embedded"] == PAGES
        refused = {host.host.address: host.refused() for host in served.net.hosts}
        assert not any(refused.values()), refused


@pytest.mark.parametrize("slow", [False, True])
def test_node_behind_a_slow_link_embeds(tmp_path, server: DatabaseServer, request, slow):
    with network() as net, cluster(tmp_path / "cluster", 0, (head := net.host()).host) as nodes:
        nodes.add(2, host=net.host().host)
        far = nodes.add(2, host=net.host(*((0.05, 10e6) if slow else ())).host)
        with server.database() as database, CountingModel(0.03) as model:
            env = nodes.environment(DATABASE_URL=net.publish(database), OPENAI_BASE_URL=net.publish(model.url))
            began = time.monotonic()
            with IndexRun(counted_pages(tmp_path, PAGES), env, head.host.enter) as run:
                eventually(lambda: bool(far.pids("EmbedTexts)")), "the far node embeds", 120)
                assert run.finish(300)["chunks"]["embedded"] == PAGES
            took = time.monotonic() - began
    link = "50 ms, 10 Mbit/s" if slow else "as fast as the others"
    leave_table(request.config, f"a node's link: {link}", ("texts", "whole run"), [(str(PAGES), f"{took:.0f} s")])
