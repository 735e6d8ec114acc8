"""Checks that everything that names the version of Raydex says what pyproject.toml says.

    python deploy/release/versions.py             all files
    python deploy/release/versions.py v0.1.0      the tag of a release too

Needs only Python: the release runs it before anything is installed.
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# The first match in each file; later ones may name other versions, as an upgrade does.
PLACES = {
    "CHANGELOG.md": r"^## \[(\d[^\]]*)\]",
    "deploy/helm/raydex/Chart.yaml": r"^version: (\S+)",
    "deploy/helm/raydex/Chart.yaml (appVersion)": r'^appVersion: "(\S+)"',
    "deploy/helm/raydex/values.yaml": r"^image: \S+/raydex:(\S+)",
    "deploy/compose.yaml": r"RAYDEX_IMAGE:-raydex:([^}]+)}",
    "docs/howto.md": r"`Raydex/(\S+) \(",
    "docs/docker.md": r"\braydex:(\d[\w.]*)",
    "docs/kubernetes.md": r"/raydex:(\d[\w.]*)",
}


def project_version(root: Path = ROOT) -> str:
    """Return the version in pyproject.toml, the only place where a release changes it by hand."""
    return str(tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"])


def mistakes(tag: str = "", root: Path = ROOT) -> list[str]:
    """Return a line for each place, and for the tag, that names another version."""
    version = project_version(root)
    named = {place: _first(root / place.partition(" ")[0], pattern) for place, pattern in PLACES.items()}
    if tag:
        named[f"the tag {tag}"] = tag.removeprefix("v")
    return [f"{place} says {said}, pyproject.toml says {version}" for place, said in named.items() if said != version]


def _first(path: Path, pattern: str) -> str:
    found = re.search(pattern, path.read_text(), re.MULTILINE)
    return found[1] if found else "no version"


if __name__ == "__main__":
    lines = mistakes(*sys.argv[1:2])
    sys.exit("\n".join(lines) if lines else print(f"everything says {project_version()}"))
