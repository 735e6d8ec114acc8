"""kill -9 of whole nodes in the middle of a run loses nothing and repeats at most a block of work."""

import shutil
import subprocess
import time
from collections.abc import Iterator

import pytest
from kit.cluster import free_port
from kit.databases import DatabaseServer
from kit.hosts import network
from kit.node_kills import SPIDER, Case, NodeBench, node_bench
from kit.processes import eventually

pytestmark = [pytest.mark.exhaustive, pytest.mark.timeout(900)]

# Like deploy/start-cluster and cluster.yaml: a silent node counts as dead after 31 s.
HEALTH = {"RAY_health_check_period_ms": "300", "RAY_health_check_failure_threshold": "3"}


@pytest.fixture(scope="module")
def bench(
    server: DatabaseServer, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[NodeBench]:
    with node_bench(tmp_path_factory, server, request.config) as bench:
        yield bench


@pytest.fixture
def redis(tmp_path) -> Iterator[str]:
    """Yield the address of a Redis that outlives the head."""
    if shutil.which("redis-server") is None:
        pytest.skip("no redis-server: on Debian, as root: apt-get install redis-server")
    port = free_port()
    command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--dir", str(tmp_path), "--save", ""]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        yield f"127.0.0.1:{port}"
        process.kill()


def finish(case: Case, by: str = "the same run") -> None:
    run = case.commands[-1]
    assert run.wait() == 0, run.said()
    case.report(by)


def test_run_outlives_the_node_that_embeds(bench):
    with bench.case("node that embeds") as case:
        case.run()
        case.until(0.3, 0.2)
        case.kill(case.worker("EmbedTexts", crawls=False).kill)
        finish(case)


def test_run_outlives_the_node_that_crawls(bench):
    with bench.case("node that crawls") as case:
        case.run()
        case.until(0.3, 0.1)
        case.kill(case.worker(SPIDER).kill)
        finish(case)


def test_second_run_continues_after_the_node_of_the_driver_died(bench):
    with bench.case("node of the driver") as case:
        [first, _] = case.nodes.nodes
        case.run(first)
        case.until(0.3, 0.2)
        case.kill(first.kill)
        assert case.commands[0].wait() != 0
        case.run()
        finish(case, "the next run")


def test_run_outlives_a_node_during_publish(bench):
    with bench.case("node during publish") as case:
        case.run()
        case.publishing()
        case.kill(case.nodes.nodes[0].kill)
        finish(case)


def test_run_continues_on_a_restarted_cluster_after_the_head_died(bench):
    """Without its state all nodes end. A restarted cluster continues with the same collection."""
    with bench.case("head") as case:
        case.run()
        case.until(0.3, 0.2)
        case.kill(case.nodes.head.kill)
        assert case.commands[0].wait() != 0
        eventually(lambda: not any(node.pids("raylet/raylet") for node in case.nodes.nodes), "its nodes end", 120)
        case.restart_head()
        case.add(2, 2)
        case.run()
        finish(case, "the next run")


def test_killing_a_head_with_state_in_redis(bench, redis):
    with bench.case("head with its state in Redis", RAY_REDIS_ADDRESS=redis) as case:
        case.run(case.nodes.nodes[0])
        case.until(0.3, 0.2)
        case.kill(case.nodes.head.kill)
        case.restart_head()
        finish(case)


@pytest.mark.parametrize("seconds", [5, None], ids=["5-s", "for-good"])
def test_run_ends_well_after_a_host_is_cut_off(bench, seconds):
    name = f"host cut off {f'{seconds} s' if seconds else 'for good'}"
    with network() as net, bench.case(name, net=net, **HEALTH) as case:
        case.run()
        case.until(0.3, 0.2)
        node = case.worker("EmbedTexts", crawls=False)
        [host] = [each for each in net.hosts if each.host == node.host]
        case.kill(host.cut)
        if seconds:
            time.sleep(seconds)
            host.mend()
        finish(case)
        assert time.monotonic() - case.began < bench.quiet_s + 100
