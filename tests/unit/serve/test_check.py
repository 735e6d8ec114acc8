"""`raydex serve --check` reports every fault of a Serve config file before deployment, and Serve shows one line."""

from pathlib import Path

import pytest

from serve.app import NotDeployable, build, deployment_names
from serve.check import check_file
from serve.settings import Settings

ROOT = Path(__file__).parents[3]
FILE = "applications: [{name: raydex, import_path: 'serve.app:build', ARGS}]"


@pytest.mark.parametrize(("args", "said"), [
    ("args: {placment: {retriever: deployment}}", "applications.0.args.placment is unknown: did you mean placement?"),
    ("args: {port: 70000}", "applications.0.args.port is 70000: it must be at most 65,535"),
    ("args: {leg_depth: 5}", "applications.0.args.leg_depth is unknown: it belongs under retrieval"),
    ("deployments: [{name: Raydx}]",
     "applications.0.deployments.0.name is 'Raydx', which `args` do not make: did you mean Raydex?"),
    ("deployments: [{name: Retriever}]",
     "applications.0.deployments.0.name is 'Retriever', which `args` do not make: there are: Raydex"),
    ("route_prefx: /", "applications.0.route_prefx is unknown: did you mean route_prefix?"),
])  # fmt: skip
def test_mistake_is_reported_in_one_line(tmp_path: Path, args: str, said: str) -> None:
    (path := tmp_path / "serve.yaml").write_text(FILE.replace("ARGS", args))
    assert check_file(path) == [said]


def test_bundled_files_are_valid() -> None:
    assert check_file(ROOT / "deploy" / "serve.yaml") == check_file(ROOT / "serve" / "config.yaml") == []


def test_unusable_file_is_reported_in_one_line(tmp_path: Path) -> None:
    (path := tmp_path / "serve.yaml").write_text("a: [")
    assert len(check_file(path)) == len(check_file(tmp_path / "absent.yaml")) == 1


def test_misspelled_key_is_reported_to_serve_in_one_line() -> None:
    with pytest.raises(NotDeployable, match=r"^setting placment is unknown: did you mean placement\?$"):
        build({"placment": {}})


def test_names_match_the_created_deployments() -> None:
    settings = Settings(database_url="postgresql://", placement={"retriever": "deployment"})
    assert deployment_names(settings) == ["Raydex", "Retriever"]
