"""Everything that names the version says what pyproject.toml says, and the workflow of a release runs what exists."""

import re
import runpy
import shutil
from pathlib import Path

import pytest
import yaml

from pipelines.indexing.crawling.crawl import CrawlSettings
from pipelines.version import raydex_version

ROOT = Path(__file__).parents[3]
VERSIONS = runpy.run_path(str(ROOT / "deploy" / "release" / "versions.py"))
PLACES: dict[str, str] = VERSIONS["PLACES"]


def test_everything_names_the_version_of_the_project():
    assert VERSIONS["mistakes"]() == []
    assert raydex_version() == VERSIONS["project_version"]()
    assert CrawlSettings.model_fields["user_agent"].default.startswith(f"Raydex/{raydex_version()} (")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the files that name the version."""
    for name in {"pyproject.toml", *(place.partition(" ")[0] for place in PLACES)}:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


@pytest.mark.parametrize("place", PLACES)
def test_another_version_in_any_place_is_found(copy: Path, place: str):
    path = copy / place.partition(" ")[0]
    text = path.read_text()
    found = re.search(PLACES[place], text, re.MULTILINE)
    assert found
    path.write_text(text[: found.start(1)] + "9.8.7" + text[found.end(1) :])
    (line,) = VERSIONS["mistakes"]("", copy)
    assert line.startswith(f"{place} says 9.8.7")


@pytest.mark.parametrize("tag", ["v0.0.9", "0.0.9", "latest"])
def test_tag_of_another_version_is_found(tag: str):
    (line,) = VERSIONS["mistakes"](tag)
    assert line.startswith(f"the tag {tag} says")


def test_workflows_run_files_and_targets_that_exist():
    commands = []
    for path in (ROOT / ".github" / "workflows").glob("*.yaml"):
        for job in yaml.safe_load(path.read_text())["jobs"].values():
            commands += [step["run"] for step in job.get("steps", ()) if "run" in step]
    text = "\n".join(commands)
    named = set(re.findall(r"\b(?:deploy|docs)/[\w./-]+", text))
    assert {"deploy/release/versions.py", "deploy/helm/raydex"} <= named
    assert [name for name in named if not (ROOT / name).exists()] == []
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"^make ([\w-]+)", text, re.MULTILINE)) <= targets
