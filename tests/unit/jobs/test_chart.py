"""deploy/helm/raydex: its values match the project's names, and the rendered manifests fit their schemas.

Rendering needs `pip install helm-python-sdk kubernetes-validate` (75 MB), which the project does not install. No
Kubernetes is involved. `tests/kit/crds.py` makes `tests/data/crds.json`.
"""

import io
import json
import re
import runpy
import shlex
import sys
import urllib.error
import urllib.request
from pathlib import Path

import jsonschema
import pytest
import ray
import yaml

from jobs.flags import read_words
from jobs.nightly import app
from pipelines.indexing.collection import load_collection
from serve.settings import Settings

ROOT = Path(__file__).parents[3]
CHART = ROOT / "deploy" / "helm" / "raydex"
VALUES = yaml.safe_load((CHART / "values.yaml").read_text())
SCHEMA = json.loads((CHART / "values.schema.json").read_text())
OVERLAYS = {path.stem: yaml.safe_load(path.read_text()) for path in CHART.glob("values-*.yaml")}
TEMPLATES = "".join(path.read_text() for path in sorted([*CHART.glob("templates/*"), CHART / "files" / "serve.yaml"]))
CRDS = {name.split()[-1]: schema for name, schema in json.loads((ROOT / "tests/data/crds.json").read_text()).items()}
# Equals `--set-file collections.ray=collections/ray.yaml`.
RAY = {"collections": {"ray": (ROOT / "collections" / "ray.yaml").read_text()}}
BY_URL, BY_SECRET = {"database": {"url": "postgresql://x@y/z"}}, {"existingSecret": "mine"}
BY_OPERATOR = {"database": {"cloudnativepg": {"enabled": True}}}


def paths(values, under=()):
    """Return every path in a tree of values. An empty mapping is a leaf that accepts anything."""
    for key, value in values.items():
        yield (*under, key)
        if isinstance(value, dict):
            yield from paths(value, (*under, key))


def merged(*trees):
    """Merge value files like Helm."""
    result = {}
    for tree in trees:
        for key, value in tree.items():
            result[key] = merged(result.get(key) or {}, value) if isinstance(value, dict) else value
    return result


def is_open(path):
    """Return whether the values below a path are free: `env: {}` and the service's settings."""
    value = VALUES
    for key in path:
        if value == {} or path[:2] == ("service", "args"):
            return True
        value = value.get(key, {}) if isinstance(value, dict) else None
    return False


@pytest.mark.parametrize("name", OVERLAYS)
def test_size_file_sets_only_existing_values(name):
    known = set(paths(VALUES))
    assert [path for path in paths(OVERLAYS[name]) if path not in known and not is_open(path)] == []


def test_templates_and_values_refer_to_each_other():
    known = {".".join(path) for path in paths(VALUES)}
    named = set(re.findall(r"[Vv]alues\.(\w+(?:\.\w+)*)", TEMPLATES))
    assert named - known == set()
    # Other values are read through a parent: by their own name, as `.cpu` of a worker, or together with their siblings.
    whole = tuple(re.findall(r"toJson [.$\w]*?[Vv]alues\.([\w.]+)", TEMPLATES))
    unread = {path for path in known - named if not path.startswith(whole)}
    assert [path for path in unread if not re.search(rf"\.{path.rsplit('.', 1)[-1]}\b", TEMPLATES)] == []


def test_every_value_has_a_comment_on_its_line():
    lines = (CHART / "values.yaml").read_text().splitlines()
    assert [line for line in lines if line and "# " not in line and not line.endswith(":")] == []


def described(schema, under=()):
    """Return every path named in the values' schema except `global`, which a parent chart may set."""
    while "$ref" in schema:
        schema = SCHEMA["$defs"][schema["$ref"].rsplit("/", 1)[-1]]
    for key, below in schema.get("properties", {}).items():
        if key != "global":
            yield (*under, key)
            yield from described(below, (*under, key))


def test_schema_lists_the_values_and_accepts_each_size():
    for overlay in [{}, *OVERLAYS.values()]:
        jsonschema.validate(merged(VALUES, overlay), SCHEMA)
    free = (("service", "args"), ("containerSecurityContext",), ("podSecurityContext",))
    unnamed = set(paths(VALUES)) - set(described(SCHEMA))
    assert {path for path in unnamed if path[:2] not in free and path[:1] not in free} == set()


def served(values):
    """Return Serve's configuration with these values, without Helm, because its templates contain only values."""

    def look_up(match):
        value = values
        for key in match[1].split("."):
            value = value[key]
        return json.dumps(value)

    text = (CHART / "files" / "serve.yaml").read_text()
    return yaml.safe_load(re.sub(r"{{ (?:toJson )?\.Values\.([\w.]+) }}", look_up, text))


def test_service_equals_the_one_in_serve_yaml():
    ours, plain = served(VALUES), yaml.safe_load((ROOT / "deploy" / "serve.yaml").read_text())
    [application], [expected] = ours.pop("applications"), plain.pop("applications")
    assert ours == plain
    for deployment in expected["deployments"]:
        deployment["max_replicas_per_node"] = 1  # two replicas on two nodes
        deployment["ray_actor_options"].setdefault("num_gpus", 0)
    application["deployments"][0]["ray_actor_options"]["num_gpus"] = 0
    assert application == expected


@pytest.mark.parametrize("name", ["values", *OVERLAYS])
def test_service_settings_exist_and_replicas_fit_their_pods(name):
    values = merged(VALUES, OVERLAYS.get(name, {}))
    [application] = served(values)["applications"]
    settings = Settings(database_url="postgresql://x", **application["args"])
    assert settings.placement.retriever == "deployment"
    assert (settings.embedding.device == "cuda") is bool(values["service"]["retrieverGpus"])
    asked = [deployment["ray_actor_options"] for deployment in application["deployments"]]
    assert sum(options["num_cpus"] for options in asked) <= float(values["service"]["worker"]["cpu"])
    assert sum(options.get("num_gpus", 0) for options in asked) <= values["service"]["worker"]["gpus"]


def test_night_runs_a_raydex_command():
    [line] = re.findall(r"entrypoint: (.*)", TEMPLATES)
    program, verb, *flags = shlex.split(line.replace("{{ .name }}", "ray"))
    assert (program, verb) == ("raydex", "nightly")
    file = Path(read_words(app, flags)[1].arguments["source"])
    assert f"mountPath: {file.parent}," in TEMPLATES
    assert load_collection(ROOT / "collections" / file.name).name


def test_variables_and_versions_match_the_project():
    names = set(re.findall(r"name: (RAY_\w+)", TEMPLATES))
    start = "".join((ROOT / "deploy" / name).read_text() for name in ("start-cluster", "start_ray.py"))
    set_there = {*re.findall(r"export (\w+)=", start), *re.findall(r'environ\.setdefault\("(\w+)"', start)}
    assert names - set_there == {"RAY_USAGE_STATS_ENABLED"}
    assert VALUES["rayVersion"].split(".")[:2] == ray.__version__.split(".")[:2]
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert f'version = "{chart["appVersion"]}"' in (ROOT / "pyproject.toml").read_text()
    assert VALUES["image"].endswith(f":{chart['appVersion']}")


@pytest.fixture
def create_night(tmp_path, monkeypatch):
    """Run files/night.py like the CronJob's pod, with a given answer from Kubernetes, and return its request."""
    for name, text in {"token": "t", "namespace": "docs", "ca.crt": "", "rayjob.json": '{"metadata": {}}'}.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setenv("JOB_NAME", "raydex-night-ray-1")
    monkeypatch.setenv("JOB_UID", "u-1")
    monkeypatch.setattr(sys, "argv", ["night.py", str(tmp_path / "rayjob.json"), str(tmp_path)])
    monkeypatch.setattr("ssl.create_default_context", lambda cafile: cafile)
    asked = []

    def create(answer):
        monkeypatch.setattr("urllib.request.urlopen", lambda request, context: asked.append(request) or answer())
        runpy.run_path(str(CHART / "files" / "night.py"))
        return asked[0]

    return create


def test_night_belongs_to_the_job_that_creates_it(create_night, capsys):
    request = create_night(io.BytesIO)
    assert request.full_url == "https://kubernetes.default.svc/apis/ray.io/v1/namespaces/docs/rayjobs"
    assert (request.get_method(), request.headers["Authorization"]) == ("POST", "Bearer t")
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "raydex-night-ray-1", "uid": "u-1"}
    assert json.loads(request.data) == {"metadata": {"name": "raydex-night-ray-1-run", "ownerReferences": [owner]}}
    assert "kubectl logs -f job/raydex-night-ray-1-run" in capsys.readouterr().out


def test_night_refused_by_kubernetes_says_why(create_night):
    def refuse():
        raise urllib.error.HTTPError("https://k", 403, "Forbidden", {}, io.BytesIO(b"rayjobs is forbidden"))

    with pytest.raises(SystemExit, match="was not created: HTTP Error 403: Forbidden: rayjobs is forbidden"):
        create_night(refuse)


@pytest.fixture(scope="module")
def render():
    reason = "renders charts: pip install helm-python-sdk kubernetes-validate"
    helm = pytest.importorskip("helm_python", reason=reason)
    pytest.importorskip("kubernetes_validate", reason=reason)
    with helm.Chart.load(str(CHART)) as chart:

        def manifests(*values):
            rendered = chart.render(merged(*values), name="raydex", namespace="docs")
            texts = [text for name, text in rendered.items() if name.endswith(".yaml")]
            return [one for text in texts for one in yaml.safe_load_all(text) if one]

        yield manifests


def of_kind(manifests, kind):
    found = [one for one in manifests if one["kind"] == kind]
    if kind == "RayJob":
        found = [json.loads(one["data"]["rayjob.json"]) for one in manifests if "rayjob.json" in one.get("data", {})]
    return found


def cluster_of(manifest):
    return manifest["spec"].get("rayClusterConfig") or manifest["spec"]["rayClusterSpec"]


def pods(manifest):
    """Return a Ray cluster's pods by group name."""
    cluster = cluster_of(manifest)
    groups = {"head": cluster["headGroupSpec"]} | {group["groupName"]: group for group in cluster["workerGroupSpecs"]}
    return {name: group["template"] for name, group in groups.items()}


def validate(manifests):
    validate_built_in = pytest.importorskip("kubernetes_validate").validate
    for one in [*manifests, *of_kind(manifests, "RayJob")]:
        if one["kind"] in CRDS:
            jsonschema.validate(one["spec"], CRDS[one["kind"]])
        else:
            validate_built_in(one, "1.34", strict=True)
    for one in [*of_kind(manifests, "RayService"), *of_kind(manifests, "RayJob")]:
        for name, template in pods(one).items():
            metadata = template["metadata"] | {"name": name}
            validate_built_in(
                {"apiVersion": "v1", "kind": "Pod", **template, "metadata": metadata}, "1.34", strict=True
            )


@pytest.mark.parametrize(("names", "database"), [
    ([], BY_URL), (["values-s"], BY_OPERATOR), (["values-m", "values-gpu"], BY_SECRET), (["values-l"], BY_OPERATOR),
])  # fmt: skip
def test_rendered_manifests_fit_the_schemas(render, names, database):
    from ray.serve.schema import ServeDeploySchema

    size = merged(*(OVERLAYS[name] for name in names))
    manifests = render(size, database, RAY)
    validate(manifests)
    [service], [night] = of_kind(manifests, "RayService"), of_kind(manifests, "RayJob")
    config = yaml.safe_load(service["spec"]["serveConfigV2"])
    assert config == served(merged(VALUES, size))
    ServeDeploySchema.model_validate(config)
    assert "cpu" in pods(night)
    assert ("gpu" in pods(night)) is ("values-gpu" in names)
    [schedule] = of_kind(manifests, "CronJob")
    assert schedule["spec"]["schedule"] == VALUES["night"]["schedule"]


def test_schemas_reject_a_mistake(render):
    manifests = render(BY_OPERATOR, RAY, {"service": {"gcsFaultToleranceOptions": {"redis": "redis:6379"}}})
    with pytest.raises(jsonschema.ValidationError, match="'redis' was unexpected"):
        validate(manifests)
    with pytest.raises(Exception, match="'hold' was unexpected"):
        validate(render(BY_URL, {"containerSecurityContext": {"hold": True}}))


def test_two_replicas_run_on_two_nodes_and_one_stays_during_disruptions(render):
    [service] = of_kind(manifests := render(BY_URL), "RayService")
    [group] = cluster_of(service)["workerGroupSpecs"]
    assert (group["minReplicas"], group["maxReplicas"]) == (2, 4)
    worker = group["template"]
    [spread] = worker["spec"]["topologySpreadConstraints"]
    assert (spread["whenUnsatisfiable"], spread["maxSkew"], spread["minDomains"]) == ("DoNotSchedule", 1, 2)
    labels = worker["metadata"]["labels"] | {"ray.io/node-type": "worker"}  # KubeRay adds this label
    assert spread["labelSelector"]["matchLabels"] == labels
    assert worker["spec"]["containers"][0]["readinessProbe"]["httpGet"] == {"path": "/-/healthz", "port": 8000}
    [budget] = of_kind(manifests, "PodDisruptionBudget")
    assert budget["spec"] == {"minAvailable": 1, "selector": {"matchLabels": labels}}


def test_network_policy_opens_only_the_port_of_the_service(render):
    policies = {one["metadata"]["name"]: one["spec"] for one in of_kind(render(BY_URL, RAY), "NetworkPolicy")}
    assert set(policies) == {"raydex-serve", "raydex-night"}
    for policy in policies.values():
        peers, operator, *more = policy["ingress"]
        assert peers == {"from": [{"podSelector": policy["podSelector"]}]}
        assert operator["ports"] == [{"port": 8265}]
        [source] = operator["from"]
        assert set(source) == {"namespaceSelector", "podSelector"}
        assert more in ([{"ports": [{"port": 8000}]}], [])
    assert len(policies["raydex-serve"]["ingress"]) == 3


@pytest.mark.parametrize("host", ["", "ask.example.com"])
def test_only_named_clients_and_the_ingress_reach_the_service(render, host):
    clients = [{"ipBlock": {"cidr": "10.0.0.0/8"}}]
    manifests = render(BY_URL, {"networkPolicy": {"clients": clients}, "ingress": {"host": host}})
    [policy] = of_kind(manifests, "NetworkPolicy")[:1]
    controller = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "ingress-nginx"}}}
    assert policy["spec"]["ingress"][2] == {"ports": [{"port": 8000}], "from": [*clients, *[controller] * bool(host)]}


def test_ingress_routes_its_host_to_the_service(render):
    assert of_kind(render(BY_URL), "Ingress") == []
    annotations = {"cert-manager.io/cluster-issuer": "letsencrypt"}
    values = {"host": "ask.example.com", "tlsSecret": "ask-tls", "className": "nginx", "annotations": annotations}
    validate(manifests := render(BY_URL, {"ingress": values}))
    [ingress] = of_kind(manifests, "Ingress")
    assert ingress["metadata"]["annotations"] == annotations
    backend = {"service": {"name": "raydex-serve-svc", "port": {"number": 8000}}}
    assert ingress["spec"] == {
        "ingressClassName": "nginx",
        "tls": [{"hosts": ["ask.example.com"], "secretName": "ask-tls"}],
        "rules": [
            {"host": "ask.example.com", "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}}
        ],
    }
    validate(manifests := render(BY_URL, {"ingress": {"host": "ask.example.com"}}))
    assert set(of_kind(manifests, "Ingress")[0]["spec"]) == {"rules"}


@pytest.mark.parametrize("database", [BY_URL, BY_OPERATOR, BY_SECRET], ids=["url", "cloudnativepg", "secret"])
def test_every_pod_has_the_database_the_image_and_the_labels(render, database):
    manifests = render(database, RAY, {"secrets": {} if database is BY_SECRET else {"OPENAI_API_KEY": "sk"}})
    for one in [*of_kind(manifests, "RayService"), *of_kind(manifests, "RayJob")]:
        assert cluster_of(one)["authOptions"] == {"mode": "token"}
        for pod in pods(one).values():
            [container] = pod["spec"]["containers"]
            variables = {variable["name"]: variable for variable in container["env"]}
            [source] = container["envFrom"]
            assert container["image"] == VALUES["image"]
            assert source["secretRef"]["name"] == ("mine" if database is BY_SECRET else "raydex")
            assert ("DATABASE_URL" in variables) is (database is BY_OPERATOR)
            assert pod["metadata"]["labels"]["app.kubernetes.io/instance"] == "raydex"
    secrets = [one["stringData"] for one in of_kind(manifests, "Secret")]
    expected = [{"OPENAI_API_KEY": "sk"} | ({"DATABASE_URL": BY_URL["database"]["url"]} if database is BY_URL else {})]
    assert secrets == ([] if database is BY_SECRET else expected)


@pytest.mark.parametrize("claim", ["", "caches"])
def test_every_pod_has_a_volume_for_its_build_files(render, claim):
    validate(manifests := render(BY_URL, RAY, {"home": {"claim": claim}}))
    for one in [*of_kind(manifests, "RayService"), *of_kind(manifests, "RayJob")]:
        for pod in pods(one).values():
            [container] = pod["spec"]["containers"]
            [home] = [each["value"] for each in container["env"] if each["name"] == "RAYDEX_HOME"]
            [name] = [each["name"] for each in container["volumeMounts"] if each["mountPath"] == home]
            [volume] = [volume for volume in pod["spec"]["volumes"] if volume["name"] == name]
            own = {"emptyDir": {"sizeLimit": "10Gi"}}
            assert volume == {"name": name} | ({"persistentVolumeClaim": {"claimName": claim}} if claim else own)
            assert pod["spec"]["securityContext"]["fsGroup"] == 1000


def test_volume_is_the_build_folder_of_the_image_and_owned_by_its_user():
    dockerfile = (ROOT / "deploy/docker/Dockerfile").read_text()
    assert f"RAYDEX_HOME={VALUES['home']['path']} " in dockerfile
    assert f"USER {VALUES['podSecurityContext']['fsGroup']}\n" in dockerfile


@pytest.mark.parametrize(("values", "message"), [
    ({}, "no database is set"),
    (merged(BY_URL, {"home": {"path": "home"}}), "'/home/path'.*does not match pattern"),
    (merged(BY_URL, {"home": {"claims": "caches"}}), "'/home'.*additional properties 'claims' not allowed"),
    (merged(BY_URL, BY_SECRET), "database.url and existingSecret are both set"),
    (merged(BY_URL, BY_OPERATOR), "database.url and database.cloudnativepg.enabled are both set"),
    (merged(BY_SECRET, {"secrets": {"A": "b"}}), "secrets and existingSecret are both set"),
    (merged(BY_URL, {"collections": {"a" * 22: "name: a"}}), "choose shorter names"),
    (merged(BY_URL, {"service": {"minReplica": 3}}), "'/service'.*additional properties 'minReplica' not allowed"),
    (merged(BY_URL, {"service": {"minReplicas": "3"}}), "'/service/minReplicas'.*got string, want integer"),
    (merged(BY_URL, {"ingress": {"host": "https://a.example"}}), "'/ingress/host'.*does not match pattern"),
    (merged(BY_URL, {"night": {"schedule": "02:30"}}), "'/night/schedule'.*does not match pattern"),
    (merged(BY_URL, {"head": {"memory": "4 GB"}}), "'/head/memory'.*does not match pattern"),
    ({"database": {"url": "mysql://x"}}, "'/database/url'.*does not match pattern"),
])  # fmt: skip
def test_contradictory_values_are_refused(render, values, message):
    with pytest.raises(Exception, match=message):
        render(values)


def test_changed_secret_makes_a_new_cluster(render):
    first, second = (of_kind(render(BY_URL, {"secrets": {"A": value}}), "RayService")[0] for value in "bc")
    assert pods(first)["serve"]["metadata"]["annotations"] != pods(second)["serve"]["metadata"]["annotations"]
