"""Holders of a cluster's CPUs are named, with the way to free them."""

from pipelines.occupancy import describe

REPLICAS = [
    {"name": f"SERVE_REPLICA::raydex#{deployment}#{number}", "job_id": "01", "required_resources": {"CPU": cpus}}
    for deployment, cpus in (("Raydex", 0.5), ("Retriever", 0.5))
    for number in range(2)
]
JOBS = [
    {
        "job_id": "02",
        "submission_id": "raysubmit_x",
        "entrypoint": "python -m jobs",
        "metadata": {"command": "raydex x"},
    },
    {"job_id": "03", "submission_id": None, "entrypoint": "python train.py", "metadata": {}},
]


def actor(job, cpus, name=""):
    return {"name": name, "job_id": job, "required_resources": {"CPU": cpus} if cpus else {}}


def test_service_is_named_with_its_replicas_and_their_config_file():
    assert describe(REPLICAS, [], []) == (
        "The service raydex holds 2 CPUs (Raydex 2 × 0.5, Retriever 2 × 0.5): lower `num_cpus` or the number of "
        "replicas under `deployments` of its file, such as deploy/serve.yaml, and deploy that again"
    )


def test_jobs_are_named_by_their_commands_largest_holder_first():
    tasks = [actor("02", 1.0) | {"type": "NORMAL_TASK"}, actor("03", 7.0) | {"type": "ACTOR_TASK"}]
    said = describe([*REPLICAS, actor("02", 1.5), actor("03", 1.0)], tasks, JOBS)
    assert said.split(". ")[0] == (
        "The job raysubmit_x (`raydex x`) holds 2.5 CPUs: it ends by itself, or by `raydex submit --stop raysubmit_x`"
    )
    assert said.split(". ")[1].startswith("The service raydex holds 2 CPUs")
    assert said.split(". ")[2] == "The job 03 (`python train.py`) holds 1 CPU: wait for its end"


def test_idle_jobs_and_the_run_itself_are_not_named():
    proxies = [actor("01", 0, "SERVE_PROXY_ACTOR-x"), actor("01", 0, "SERVE_REPLICA::raydex#Slack#1")]
    assert describe([*proxies, actor("04", 1.0)], [], JOBS, own="04") == ""


def test_job_unknown_to_ray_is_named_by_its_number():
    assert describe([actor("0a", 0.25)], [], []) == "The job 0a holds 0.25 CPUs: wait for its end"
