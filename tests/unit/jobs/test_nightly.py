"""The nightly runs in deploy/ name jobs, files and flags that exist. No Kubernetes is involved."""

import shlex
from pathlib import Path

import pytest
import ray
import yaml

from jobs.nightly import arguments
from pipelines.indexing.collection import load_collection

ROOT = Path(__file__).parents[3]

# KubeRay v1.7's CRD reference: fields of RayCronJobSpec, of RayJobSpec and RayClusterSpec as far as they are used here.
CRON_JOB = {"schedule", "timeZone", "jobTemplate", "suspend"}
JOB = {
    "entrypoint", "shutdownAfterJobFinishes", "ttlSecondsAfterFinished", "activeDeadlineSeconds", "backoffLimit",
    "rayClusterSpec", "runtimeEnvYAML", "submissionMode", "submitterPodTemplate",
}  # fmt: skip
CLUSTER = {"rayVersion", "authOptions", "headGroupSpec", "workerGroupSpecs", "enableInTreeAutoscaling"}
WORKERS = {"groupName", "replicas", "minReplicas", "maxReplicas", "rayStartParams", "template"}


@pytest.fixture
def spec():
    manifest = yaml.safe_load((ROOT / "deploy" / "kuberay-nightly.yaml").read_text())
    assert (manifest["apiVersion"], manifest["kind"]) == ("ray.io/v1", "RayCronJob")
    assert manifest["metadata"]["name"]
    return manifest["spec"]


def pods(spec):
    cluster = spec["jobTemplate"]["rayClusterSpec"]
    return [group["template"]["spec"] for group in [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]]


def collection_of(command):
    """The collection file that a night's command names, after its flags were accepted."""
    words = shlex.split(command)
    flags = words[2:] if words[0].endswith("/raydex") else words[3:]
    assert words[: -len(flags)] in ([".venv/bin/raydex", "nightly"], ["python", "-m", "jobs.nightly"])
    return Path(arguments().parse_args(flags).file)


def check_schedule(text):
    assert len(text.split()) == 5
    assert all(set(part) <= set("0123456789*/,-") for part in text.split())


def test_the_manifest_has_the_fields_of_its_crd(spec):
    assert {"schedule", "jobTemplate"} <= set(spec) <= CRON_JOB
    job = spec["jobTemplate"]
    assert {"entrypoint", "rayClusterSpec"} <= set(job) <= JOB
    cluster = job["rayClusterSpec"]
    assert {"headGroupSpec", "rayVersion"} <= set(cluster) <= CLUSTER
    assert set(cluster["headGroupSpec"]) == {"rayStartParams", "template"}
    for group in cluster["workerGroupSpecs"]:
        assert set(group) == WORKERS
        assert group["minReplicas"] <= group["replicas"] <= group["maxReplicas"]
    check_schedule(spec["schedule"])


def test_the_manifest_runs_a_command_that_exists(spec):
    file = collection_of(spec["jobTemplate"]["entrypoint"])
    mounted = Path(pods(spec)[0]["containers"][0]["volumeMounts"][0]["mountPath"])
    assert file.parent == mounted
    assert load_collection(ROOT / "collections" / file.name).name


def test_every_pod_has_the_database_and_the_same_image(spec):
    containers = [pod["containers"][0] for pod in pods(spec)]
    assert len({container["image"] for container in containers}) == 1
    assert all({"secretRef": {"name": "raydex"}} in container["envFrom"] for container in containers)
    assert all(
        {mount["name"] for mount in pod["containers"][0]["volumeMounts"]}
        == {volume["name"] for volume in pod["volumes"]}
        for pod in pods(spec)
    )


def test_no_secret_stands_in_the_manifest():
    text = (ROOT / "deploy" / "kuberay-nightly.yaml").read_text()
    assert "auth_token:" not in text
    assert "postgresql://…" in text


def test_the_cluster_asks_for_a_token_and_the_installed_ray(spec):
    cluster = spec["jobTemplate"]["rayClusterSpec"]
    assert cluster["authOptions"] == {"mode": "token"}
    assert cluster["rayVersion"].split(".")[:2] == ray.__version__.split(".")[:2]


def test_the_crontab_is_one_line_that_exists():
    text = (ROOT / "deploy" / "crontab.example").read_text()
    (line,) = [line for line in text.splitlines() if line and not line.startswith("#")]
    check_schedule(" ".join(line.split()[:5]))
    assert "%" not in line  # cron reads a percent sign as the end of the command
    command = line.split("&& ", 1)[1].split(" >>", 1)[0]
    assert load_collection(ROOT / collection_of(command)).name
