"""If one of Ray's private names is missing or changed, Ray's own behavior stays and one line says so."""

import logging
import os
from typing import Any

import pytest
import ray
from ray._private import parameter, ray_constants, services
from ray.serve._private import long_poll, replica

from pipelines import cluster, ray_internals
from pipelines.ray_internals import OF_CLUSTERS, OF_SERVE, Internal, find
from serve.proxy import listening
from serve.proxy.replicas import RunningReplicas

REPLACED = (ray_internals.OPEN_PORT, ray_internals.START_HTTP)


@pytest.mark.parametrize("internal", [*OF_CLUSTERS, *OF_SERVE], ids=str)
def test_ray_used_in_tests_has_each_name(internal: Internal):
    assert find(internal) is not None


def test_each_name_is_in_a_group_checked_at_startup():
    named = {one for one in vars(ray_internals).values() if isinstance(one, Internal)}
    assert named == {*OF_CLUSTERS, *OF_SERVE}


@pytest.fixture
def other_ray(monkeypatch: pytest.MonkeyPatch):
    """Remove names from Ray, like a later version that never had them."""

    def take(*internals: Internal) -> None:
        for internal in internals:
            monkeypatch.delattr(internal.owner, internal.name.partition(".")[0])

    ray_internals.warn_of_missing.cache_clear()
    return take


def test_missing_or_changed_name_is_reported_as_missing(other_ray: Any, monkeypatch: pytest.MonkeyPatch):
    other_ray(ray_internals.FREE_RESOURCES)
    monkeypatch.setattr(replica, "add_port_to_grpc_server", lambda server, port, host: 0)
    monkeypatch.setattr(long_poll, "LongPollClient", None)
    gone = Internal("ray.serve._private.no_such_module", "name", "nothing is lost")
    for internal in (ray_internals.FREE_RESOURCES, ray_internals.OPEN_PORT, ray_internals.LISTEN, gone):
        assert find(internal) is None


def test_one_line_names_missing_names_and_lost_features(other_ray: Any, caplog: pytest.LogCaptureFixture):
    ray_internals.warn_of_missing(OF_SERVE)
    assert caplog.messages == []
    other_ray(ray_internals.LISTEN, ray_internals.ROUTES)
    ray_internals.warn_of_missing.cache_clear()
    with caplog.at_level(logging.WARNING):
        ray_internals.warn_of_missing(OF_SERVE)
        ray_internals.warn_of_missing(OF_SERVE)
    [line] = caplog.messages
    assert "LongPollClient(host_actor" in line and "LongPollNamespace.ROUTE_TABLE" in line
    assert line.count(ray_internals.PROXY) == 1


def test_requests_use_the_ray_proxy_if_running_deployments_are_unknown(other_ray: Any):
    other_ray(ray_internals.TARGETS)
    assert RunningReplicas().ports_for("/query") == []


class OtherNode:
    """A node's start parameters in a Ray that names its agents' ports differently."""


def test_starting_ray_without_private_names_changes_nothing(other_ray: Any, monkeypatch: pytest.MonkeyPatch):
    seen: dict[str, Any] = {}

    def init(**_: Any) -> None:
        seen.update(clusters=ray_constants.ENABLE_RAY_CLUSTER, dashboard=services.start_api_server)
        seen.update(node=parameter.RayParams)

    monkeypatch.setattr(ray, "init", init)
    monkeypatch.setattr(cluster, "keep_token_private", lambda: None)
    own = services.start_api_server
    cluster.start_local_ray()
    assert not seen["clusters"] and seen["dashboard"] is not own
    assert seen["node"]().metrics_agent_port >= 20000 and parameter.RayParams().metrics_agent_port is None
    monkeypatch.setattr(parameter, "RayParams", OtherNode)
    monkeypatch.setattr(services, "start_api_server", lambda something_else: None)
    other_ray(ray_internals.CLUSTERS_VARIABLE)
    own, before = services.start_api_server, dict(os.environ)
    cluster.start_local_ray()
    assert seen["clusters"] and seen["dashboard"] is own and dict(os.environ) == before
    assert seen["node"] is OtherNode


def test_all_node_resources_count_as_free_if_ray_reports_no_others(other_ray: Any, monkeypatch: Any):
    other_ray(ray_internals.FREE_RESOURCES)
    node = {"Alive": True, "NodeID": "a", "Resources": {"CPU": 2.0}}
    monkeypatch.setattr(ray, "nodes", lambda: [node, {**node, "NodeID": "b", "Alive": False}])
    assert cluster.RayCluster("").free_resources() == {"a": {"CPU": 2.0}}


@pytest.mark.parametrize("internal", REPLACED, ids=str)
def test_replica_keeps_the_ray_address_if_loopback_is_impossible(internal, monkeypatch):
    def other(something: object, else_: object) -> None: ...

    monkeypatch.setattr(ray.util, "get_node_ip_address", lambda: "127.0.0.1")
    for each in REPLACED:
        monkeypatch.setattr(each.owner, each.name, find(each))  # given back at the end
    monkeypatch.setattr(internal.owner, internal.name, other)
    listening.keep_ports_on_loopback()
    [kept] = set(REPLACED) - {internal}
    assert getattr(internal.owner, internal.name) is other
    assert getattr(kept.owner, kept.name).__module__ == listening.__name__


@pytest.mark.parametrize(("proxies", "host"), [({"node": "HEALTHY"}, "0.0.0.0"), ({}, None)])
def test_serve_with_an_unknown_address_counts_as_reachable_by_all(proxies, host, other_ray, monkeypatch):
    other_ray(ray_internals.HTTP_CONFIG)
    monkeypatch.setattr(listening.serve, "status", lambda: type("Status", (), {"proxies": proxies}))
    address = listening.running_address()
    assert (address and address.host) == host
