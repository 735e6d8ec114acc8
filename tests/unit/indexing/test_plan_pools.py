"""The plan always fits the free resources: pools shrink with a message, and an impossible one fails immediately."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.indexing.building.pools import (
    ClusterTooSmall,
    ImpossiblePool,
    Pools,
    count_gpu_slots,
    held_by_others,
    plan_pools,
)
from pipelines.indexing.gather import for_tasks


def cpus_at_once(pools: Pools) -> float:
    """Return the CPUs of all actors, one reading task, one storing task and every crawl that may run with them."""
    return pools.embedders * pools.cpus + pools.task_cpus + pools.light_cpus * (1 + pools.crawls)


@pytest.mark.parametrize(("cpus", "embedders", "threads"), [(1, 1, 1), (2, 1, 2), (4, 1, 4), (8, 2, 4), (64, 16, 4)])
def test_cpus_become_actors_with_room_left_for_reading(cpus, embedders, threads):
    pools, message = plan_pools([{"CPU": float(cpus)}])
    assert (pools.embedders, pools.threads, pools.gpus, message) == (embedders, threads, 0.0, "")
    assert cpus_at_once(pools) <= cpus + 1e-6
    assert pools.crawls >= 4


@pytest.mark.parametrize("held", [0.6, 1.2, 1.8])
def test_run_uses_what_a_service_leaves_of_two_cpus(held):
    pools, message = plan_pools([{"CPU": 2 - held}])
    assert (pools.embedders, pools.threads, message) == (1, 1, "")
    assert cpus_at_once(pools) <= 2 - held + 1e-6
    assert pools.crawls >= 4


def test_error_names_the_cpu_holders_and_the_way_without_them():
    said = str(ClusterTooSmall([{"CPU": 0.0}, {}], "The service docs holds 2 CPUs: lower it"))
    assert said == (
        "CPUs free on the cluster's nodes: 0, 0. A run needs 0.2 on one of them. The service docs holds 2 CPUs: "
        "lower it. Or embed in the process of the command: --no-ray"
    )


@pytest.mark.parametrize("cpus", [1, 2, 8, 64])
@pytest.mark.parametrize(("gpus", "each", "embedders"), [(1, 1.0, 1), (2, 1.0, 2), (2, 0.5, 4), (2, 0.4, 4), (4, 2, 2)])
def test_gpus_become_actors(cpus, gpus, each, embedders):
    pools, message = plan_pools([{"CPU": float(cpus), "GPU": float(gpus)}], None, each)
    assert (pools.embedders, pools.gpus, message) == (embedders, each, "")
    assert pools.cpus <= 1.0
    assert cpus_at_once(pools) <= cpus + 1e-6


@pytest.mark.parametrize("cpus", [1, 2, 8, 64])
@pytest.mark.parametrize("gpus", [0, 2])
def test_too_many_embedders_are_reduced_with_a_message(cpus, gpus):
    node = {"CPU": float(cpus), "GPU": float(gpus)}
    most = plan_pools([node])[0].embedders
    pools, message = plan_pools([node], 1000)
    assert pools.embedders == most
    assert "1,000 embedding actors do not fit" in message
    assert f"using {most}" in message


def test_fewer_embedders_than_fit_are_used_as_requested():
    pools, message = plan_pools([{"CPU": 64.0}], 3)
    assert (pools.embedders, message) == (3, "")


def test_actor_must_fit_a_single_node_and_a_multi_node_run_can_have_one():
    """On one node, all actors are lost together or not at all."""
    pools, _ = plan_pools([{"CPU": 2.0}] * 4)
    assert (pools.embedders, pools.cpus, pools.least) == (4, 1.0, 1)
    pools, _ = plan_pools([{"CPU": 16.0}])
    assert pools.least == pools.embedders > 1


def test_small_head_does_not_shrink_the_actors_of_big_workers():
    pools, _ = plan_pools([{"CPU": 2.0}, {"CPU": 16.0}, {"CPU": 16.0}])
    assert pools.cpus > 3
    assert pools.embedders >= 8


def test_fraction_of_a_gpu_comes_from_one_gpu():
    assert count_gpu_slots(2.0, 0.4) == 4  # not 5: the fifth would need the rest of both GPUs
    assert count_gpu_slots(1.5, 0.5) == 3
    assert count_gpu_slots(0.3, 0.1) == 3
    assert count_gpu_slots(0.5, 1.0) == 0
    assert count_gpu_slots(3.0, 2.0) == 1


def test_gpus_in_use_by_others_are_not_waited_for():
    pools, message = plan_pools([{"CPU": 8.0, "GPU": 0.5}])
    assert pools.gpus == 0.0
    assert pools.embedders == 2
    assert "embedding on CPUs" in message


@pytest.mark.parametrize("nodes", [[], [{}], [{"CPU": 0.0}], [{"CPU": 0.15, "GPU": 8.0}], [{"CPU": 0.1}] * 9])
def test_cluster_without_room_is_an_error_with_the_free_resources(nodes):
    with pytest.raises(ClusterTooSmall, match=r"A run needs 0\.2 on one of them"):
        plan_pools(nodes)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        *(({"embedders": 0}, "0 embedding actors"), ({"embedders": -1}, "-1 embedding actors")),
        *(({"max_embedders": 0}, "0 embedding actors"), ({"gpus": 0.0}, "0 GPUs")),
        *(({"gpus": -0.5}, "-0.5 GPUs"), ({"gpus": 1.5}, "1.5 GPUs")),
    ],
)
def test_impossible_pool_is_refused(asked, words):
    with pytest.raises(ImpossiblePool, match=words):
        plan_pools([{"CPU": 8.0, "GPU": 2.0}], **asked)


free = st.floats(0, 128).map(lambda value: round(value, 4))
some_nodes = st.lists(
    st.fixed_dictionaries({"CPU": free, "GPU": st.sampled_from([0, 0, 0.5, 1, 2, 8])}), min_size=1, max_size=6
)


@given(some_nodes, st.none() | st.integers(1, 300), st.sampled_from([0.1, 0.25, 0.4, 0.5, 1, 2]))
def test_every_plan_fits_every_placement(nodes, embedders, gpus):
    """In any distribution of the actors over the nodes, one node has room for all tasks."""
    try:
        pools, _ = plan_pools(nodes, embedders, gpus)
    except ClusterTooSmall:
        assert all(node["CPU"] < 0.2 for node in nodes)
        return
    assert pools.embedders >= 1
    assert pools.crawls >= 1
    tasks = cpus_at_once(pools) - pools.embedders * pools.cpus
    for order in (sorted, lambda rows, key: sorted(rows, key=key, reverse=True)):
        rooms, to_place = [], pools.embedders
        for node in order(nodes, key=lambda node: node["CPU"]):
            cpu = node["CPU"]
            fits = count_gpu_slots(node["GPU"], pools.gpus) if pools.gpus else to_place
            placed = min(to_place, fits, int(cpu / pools.cpus + 1e-6))
            to_place -= placed
            rooms.append(cpu - placed * pools.cpus)
        assert to_place == 0
        assert max(rooms) >= tasks - 1e-4


@pytest.mark.parametrize(
    ("asked", "embedders", "most"),
    [({}, 2, 64), ({"max_embedders": 5}, 2, 5), ({"embedders": 1}, 1, 1), ({"max_embedders": 1}, 1, 1)],
)
def test_pool_grows_with_the_cluster_unless_its_size_is_given(asked, embedders, most):
    pools, _ = plan_pools([{"CPU": 8.0}], **asked)
    assert (pools.embedders, pools.most) == (embedders, most)


def test_reading_is_limited_to_the_demand_of_all_embedders():
    pools, _ = plan_pools([{"CPU": 8.0}], max_embedders=40)
    assert pools.tasks == 14  # 40 actors of 3.5 CPUs; reading takes a twentieth, in tasks of half a CPU
    assert plan_pools([{"CPU": 8.0, "GPU": 1.0}])[0].tasks is None


@pytest.mark.parametrize(("parts", "actors", "size"), [(1, 1, 1), (40, 1, 2), (40, 4, 1), (400, 1, 4), (400, 16, 1)])
def test_task_takes_at_most_a_twentieth_of_the_work_of_an_actor(parts, actors, size):
    ranges = [{"first": f"{part:03}", "last": f"{part:03}~"} for part in range(parts)]
    tasks = for_tasks(ranges, actors)
    assert [tasks[0]["first"], tasks[-1]["last"]] == ["000", f"{parts - 1:03}~"]
    assert len(tasks) == -(-parts // size)


def test_resources_held_by_a_service_are_not_counted_as_free():
    assert held_by_others({"CPU": 4.0, "memory": 9.0}, [{"CPU": 1.0}, {"CPU": 1.5}]) == {"CPU": 1.5, "GPU": 0.0}
    assert held_by_others({"CPU": 2.0}, [{"CPU": 2.0}, {"CPU": 2.0}])["CPU"] == 0  # a node has joined meanwhile
