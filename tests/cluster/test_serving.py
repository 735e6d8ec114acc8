"""Raydex served on several nodes by deploy/serve.yaml: spread, scaled, killed and replaced under eight clients."""

import contextlib
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from kit.counting_model import CountingModel, IndexRun, counted_pages
from kit.processes import eventually
from kit.reporting import leave_table
from kit.serving import ANSWER, COME_BACK, ENDED, ROOT, Load, Serving, ask, ask_streamed, serving

from pipelines.indexing.building.pools import HERE_PAGES
from pipelines.indexing.settings import INDEX

pytestmark = [pytest.mark.exhaustive, pytest.mark.timeout(600)]

STEPS = ("Raydex", "Retriever")
ONE_EACH = {"autoscaling_config": None, "num_replicas": 2, "max_replicas_per_node": 1}
# For a run next to the service. With fewer pages, the driver's process would embed everything.
PAGES, SECONDS_PER_TEXT = HERE_PAGES + 200, 0.05
ROWS: list[tuple[str, ...]] = []


@pytest.fixture(scope="module", autouse=True)
def table(request: pytest.FixtureRequest) -> None:
    yield
    head = (
        "what happened",
        "last question with a 503 or a wait 1 s longer began after",
        "longest wait",
        "how the questions ended",
    )
    leave_table(request.config, "serving on several nodes, 8 clients", head, ROWS)


def note(what: str, load: Load, since: float = 0.0) -> None:
    """Add a row. `since` is the time of the disturbance, if there was one."""
    disturbed = f"{load.disturbed_s(since):.1f} s" if since else "-"
    ends = ", ".join(f"{count} {end}" for end, count in sorted(load.counts(since).items()))
    ROWS.append((what, disturbed, f"{load.longest_s(since):.1f} s", ends))


@contextlib.contextmanager
def served_by_two(folder: Path, **args: str) -> Iterator[Serving]:
    """Start a cluster that serves with a replica of each step on each of two nodes, with additional settings."""
    with serving(folder) as cluster:
        cluster.args.update(args)
        for _ in range(2):
            cluster.add()
        for step in STEPS:
            cluster.options(step, **ONE_EACH)
        cluster.deploy()
        eventually(cluster.running, "the application runs", 120)
        cluster.wait_until_answering(cluster.head.host.address, *cluster.workers)
        yield cluster


def test_each_node_has_its_own_replicas_proxy_and_bm25_folder(tmp_path):
    with served_by_two(tmp_path) as cluster:
        for step in STEPS:
            assert cluster.placed(step) == dict.fromkeys(cluster.workers, 1)
        proxies = {proxy["node_ip"] for proxy in cluster.status()["proxies"].values()}
        assert proxies == {cluster.head.host.address, *cluster.workers}
        for node in cluster.workers.values():
            assert list(node.home.glob("lexical/*/*")), f"no BM25 folder below {node.home}"


@pytest.mark.parametrize(("asked", "ends"), [(ask, {ANSWER, COME_BACK}), (ask_streamed, {ANSWER, COME_BACK, ENDED})])
def test_dead_node_costs_at_most_two_seconds_of_503(tmp_path, asked, ends):
    with served_by_two(tmp_path) as cluster:
        lost, kept = cluster.workers
        with Load(cluster.url(kept), cluster.url(cluster.head.host.address), ask=asked) as load:
            time.sleep(10)
            killed = time.monotonic()
            cluster.workers[lost].kill()
            time.sleep(30)
        how = "streamed answers" if asked is ask_streamed else "searches"
        note(f"a node with a replica of each step was killed ({how})", load, killed)
        assert set(load.counts()) <= ends, [end for end in load.ends if end[2] not in ends][:3]
        assert load.disturbed_s(killed) < 2


def test_nightly_run_and_service_leave_each_other_resources(tmp_path):
    with served_by_two(tmp_path, collection="docs") as cluster, CountingModel(SECONDS_PER_TEXT) as model:
        clients = {"clients": 2, "pause_s": 0.2}
        with Load(*map(cluster.url, cluster.workers), **clients) as alone:
            time.sleep(15)
        with Load(*map(cluster.url, cluster.workers), **clients) as load:
            began = time.monotonic()
            environment = cluster.nodes.environment(OPENAI_BASE_URL=cluster.net.publish(model.url))
            with IndexRun(counted_pages(tmp_path, PAGES, "night"), environment, cluster.head.host.enter) as run:
                eventually(
                    lambda: any(node.pids("EmbedTexts") for node in cluster.workers.values()), "nodes embed", 120
                )
                run.finish(240)
            took = time.monotonic() - began
        assert len(set(model.hashes())) == PAGES
        for what, each in (("nothing", alone), (f"a run of {PAGES} texts, {took:.0f} s", load)):
            median, p95 = (1000 * each.percentile_s(share) for share in (50, 95))
            note(f"beside {what}: median {median:.0f} ms, p95 {p95:.0f} ms", each)
        assert set(load.counts()) == {ANSWER}


def test_answers_continue_while_the_head_is_down(tmp_path):
    with served_by_two(tmp_path) as cluster:
        with Load(*map(cluster.url, cluster.workers)) as load:
            time.sleep(10)
            killed = time.monotonic()
            cluster.nodes.head.kill()
            time.sleep(30)
        note("the head, with Serve's controller, was killed (30 s)", load, killed)
        assert set(load.counts()) == {ANSWER}


def test_replicas_scale_to_four_under_load_and_back_to_one(tmp_path):
    with serving(tmp_path) as cluster:
        for _ in range(2):
            cluster.add()
        scaling = {"min_replicas": 1, "max_replicas": 4, "target_ongoing_requests": 1, "upscale_delay_s": 2,
                   "downscale_delay_s": 5, "metrics_interval_s": 1, "look_back_period_s": 3}  # fmt: skip
        for step in STEPS:
            cluster.options(step, autoscaling_config=scaling)
        cluster.deploy()
        eventually(cluster.running, "the application runs", 120)
        cluster.wait_until_answering(cluster.head.host.address)
        assert sum(cluster.placed("Raydex").values()) == 1
        began = time.monotonic()
        with Load(cluster.url(cluster.head.host.address), pause_s=0) as load:
            grown = eventually(lambda: sum(cluster.placed("Raydex").values()) == 4, "four replicas", 90)
            assert len(cluster.placed("Raydex")) == 2
            time.sleep(5)
        note(f"one to four replicas in {grown:.0f} s", load, began)
        assert set(load.counts()) == {ANSWER}
        with Load(cluster.url(cluster.head.host.address), clients=1, pause_s=0.2) as load:
            idle = time.monotonic()
            shrunk = eventually(lambda: sum(cluster.placed("Raydex").values()) == 1, "one replica again", 120)
        note(f"four to one replica in {shrunk:.0f} s, one client", load, idle)
        assert set(load.counts()) == {ANSWER}


def test_ingress_load_starts_a_second_replica_on_another_node(tmp_path):
    """Uses deploy/serve.yaml's target and delays. The first replica is alone, and the second may not share its node."""
    with serving(tmp_path) as cluster:
        for _ in range(2):
            cluster.add()
        scaling = cluster.scaling("Raydex")
        for step in STEPS:
            cluster.options(step, autoscaling_config=scaling | {"min_replicas": 1}, max_replicas_per_node=1)
        cluster.deploy()
        eventually(cluster.running, "the application runs", 120)
        cluster.wait_until_answering(cluster.head.host.address)
        assert sum(cluster.placed("Raydex").values()) == 1
        began = time.monotonic()
        clients = 3 * scaling["target_ongoing_requests"]
        with Load(cluster.url(cluster.head.host.address), clients=clients, pause_s=0) as load:
            grown = eventually(lambda: len(cluster.placed("Raydex")) == 2, "a second replica", 180)
        note(f"a second replica on another node in {grown:.0f} s, {clients} clients", load, began)
        assert set(load.counts()) <= {ANSWER, COME_BACK}


def test_two_replicas_share_a_gpu_and_fall_back_to_the_cpu_without_cuda(tmp_path):
    with serving(tmp_path, model=INDEX.model) as cluster:
        cluster.add()
        gpu = cluster.add(gpus=1)
        cluster.args["embedding_device"] = "cuda"
        options = {"ray_actor_options": {"num_cpus": 0.1, "num_gpus": 0.5}, "autoscaling_config": None}
        cluster.options("Retriever", num_replicas=2, **options)
        cluster.options("Raydex", autoscaling_config=None, num_replicas=1)
        cluster.deploy()
        eventually(cluster.running, "the application runs", 120)
        assert cluster.placed("Retriever") == {gpu.host.address: 2}
        cluster.wait_until_answering(cluster.head.host.address)
        log = "\n".join(path.read_text() for path in Path(f"/tmp/rdx/{gpu.mark}").rglob("worker-*.err"))
        assert "torch sees no CUDA: embedding on the CPU instead" in log


@pytest.mark.parametrize("change", ["settings", "code"])
def test_deploying_a_new_version_fails_no_question(tmp_path, change):
    with served_by_two(tmp_path) as cluster:
        with Load(*map(cluster.url, cluster.workers)) as load:
            time.sleep(2)
            began = time.monotonic()
            if change == "settings":
                cluster.args["frame_ancestors"] = ["self"]
            else:
                cluster.config["applications"][0]["runtime_env"] = {"working_dir": changed_code(tmp_path)}
            cluster.deploy()
            eventually(lambda: not cluster.running(), "the new version is on its way", 30)
            took = eventually(cluster.running, "the new version runs", 120)
            time.sleep(3)
        note(f"a new version (changed {change}) in {took:.0f} s", load, began)
        assert set(load.counts()) == {ANSWER}
        name, value = {"settings": ("X-Frame-Options", "SAMEORIGIN"), "code": ("X-Release", "2")}[change]
        for address in cluster.workers:
            assert httpx.get(cluster.url(address)).headers[name] == value


def changed_code(folder: Path) -> str:
    """Return the URI of an archive with the service's code that puts its release into each reply."""
    code = folder / "code"
    for package in ("serve", "pipelines"):
        shutil.copytree(ROOT / package, code / package, ignore=shutil.ignore_patterns("__pycache__"))
    headers = code / "serve/guard/headers.py"
    headers.write_text(headers.read_text().replace("DEFAULTS = {", 'DEFAULTS = {"X-Release": "2",', 1))
    return f"file://{shutil.make_archive(str(folder / 'release2'), 'zip', code)}"
