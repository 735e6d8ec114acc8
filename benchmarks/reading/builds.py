"""Builds the sites in `reading_builds.yaml`: sources and a generator from their registries, and a command.

Each build has a folder in the cache, named after its entry: `work/` has the sources, `site/` the generator's output,
and `done` is written last. So a finished build is never repeated, unless its entry changes. Python tools share one
virtual environment per set of packages.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import venv
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import yaml

from benchmarks.reading.packages import NoSource, unpack
from benchmarks.reading.rendered import NotRendered, render

BUILDS = Path(__file__).parents[1] / "reading_builds.yaml"
INSTALL_S, BUILD_S = 1200, 1800
NICE = 10  # builds run at a lower priority than other processes
MEMORY = "--max-old-space-size=3000"  # MB for a Node process


class NoBuild(RuntimeError):
    """A site that cannot be built here. `reason` says why, and `log` has the whole output."""

    def __init__(self, reason: str, log: Path | None = None) -> None:
        super().__init__(f"{reason}; see {log}" if log else reason)
        self.reason = reason


@dataclass(frozen=True)
class Build:
    """An entry of the table. `folder` is read as sources, and `base` is the path of its root on the site.

    `sources` are packages to unpack (see packages.py), each into its folder of `work`. `needs` are required commands,
    `pip` and `npm` packages to install, and `files` texts to write into `work`. Then the commands in `build` run in its
    folder `inside`, with `$SITE` as the output folder; otherwise the site is in `built` afterwards. A generator that
    runs in the reader's browser has `rendered`: Chromium renders the pages of `folder`.
    `url_style` is the flag that a folder needs whose generator has no configuration.
    `only` matches the paths of compared pages on the site, `without` the excluded ones, and `why` explains the
    exclusion.
    """

    name: str
    generator: str
    build: Sequence[str]
    folder: str = "."
    base: str = ""
    prefix: str = ""
    url_style: str = ""
    sources: Mapping[str, str] = field(default_factory=dict)
    inside: str = "."
    needs: Sequence[str] = ()
    pip: Sequence[str] = ()
    npm: Sequence[str] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    built: str = ""
    rendered: bool = False
    only: str = ""
    without: str = ""
    why: str = ""

    @property
    def kind(self) -> str:
        """The generator's name without the theme in parentheses."""
        return self.generator.partition(" (")[0]

    def counts(self, path: str) -> bool:
        """Return whether the page at a path of the site is compared."""
        return bool(re.search(self.only, path)) and not (self.without and re.search(self.without, path))

    @property
    def key(self) -> str:
        """The name of its folder, which depends on the recipe: the fields that it sets, except how it is compared."""
        recipe = {key: value for key, value in asdict(self).items() if value and key not in _NO_RECIPE}
        return f"{self.name}-{hashlib.sha256(json.dumps(recipe, sort_keys=True).encode()).hexdigest()[:8]}"


_NO_RECIPE = ("generator", "folder", "base", "prefix", "url_style", "built", "only", "without", "why")


@dataclass(frozen=True)
class Built:
    """A built site: the folder of its sources, and the folder of its pages."""

    build: Build
    work: Path
    site: Path

    @property
    def sources(self) -> Path:
        """The folder that Raydex reads."""
        return self.work / self.build.folder


def all_builds() -> list[Build]:
    """Return the entries of the table next to this package."""
    table: dict[str, dict[str, Any]] = yaml.safe_load(BUILDS.read_text("utf-8"))
    return [Build(name, **entry) for name, entry in table.items()]


def built(build: Build, cache: Path) -> Built:
    """Return a site, built into `cache` if necessary. Raises NoBuild with the reason."""
    place = cache / "builds" / build.key
    site = place / "work" / build.built if build.built else place / "site"
    done = Built(build, place / "work", site)
    if not (place / "done").exists():
        if missing := [command for command in build.needs if not shutil.which(command)]:
            raise NoBuild(f"no {', '.join(missing)} on this machine")
        shutil.rmtree(place, ignore_errors=True)
        (place / "work").mkdir(parents=True)
        try:
            _make(done, place, _environment(build, cache, place))
        finally:
            _drop_tools(done.work)
        (place / "done").touch()
    return done


def _make(done: Built, place: Path, environment: Mapping[str, str]) -> None:
    build, work = done.build, done.work
    log = place / "log"
    for name, package in build.sources.items():
        print(f"  {package}", file=sys.stderr, flush=True)
        try:
            unpack(package, work / name, environment)
        except NoSource as error:
            raise NoBuild(str(error)) from error
    for name, text in build.files.items():
        path = work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    inside = work / build.inside
    inside.mkdir(parents=True, exist_ok=True)
    if build.npm:
        command = [
            "npm",
            "install",
            "--no-audit",
            "--no-fund",
            "--loglevel=error",
            "--legacy-peer-deps",
            "--fetch-retries=5",
            *build.npm,
        ]
        _run(command, inside, environment, log, INSTALL_S)
    for line in build.build:
        _run(["bash", "-c", line], inside, environment, log, BUILD_S)
    if build.rendered:
        try:
            render(done.sources, done.site)
        except NotRendered as error:
            raise NoBuild(str(error)) from error
    if not any(done.site.rglob("*.html")):
        raise NoBuild("no page in the output folder", log)


def _drop_tools(work: Path) -> None:
    """Delete the packages that npm installed, up to 1 GB per site. Nothing needs them after the build."""
    for tools in [path for path in work.rglob("node_modules") if "node_modules" not in path.parent.parts]:
        shutil.rmtree(tools, ignore_errors=True)


def _environment(build: Build, cache: Path, place: Path) -> dict[str, str]:
    paths = [str(place / "work" / build.inside / "node_modules" / ".bin")]
    if build.pip:
        paths.insert(0, str(_tools(build.pip, cache) / "bin"))
    return {
        **os.environ,
        "PATH": os.pathsep.join([*paths, os.environ.get("PATH", "")]),
        "SITE": str(place / "site"),
        "NODE_OPTIONS": MEMORY,
        "CI": "1",
        "ASTRO_TELEMETRY_DISABLED": "1",
        "NEXT_TELEMETRY_DISABLED": "1",
        "UV_USE_IO_URING": "0",
    }


def _tools(packages: Sequence[str], cache: Path) -> Path:
    """Return a virtual environment with these packages, created once."""
    place = cache / "tools" / hashlib.sha256("\n".join(sorted(packages)).encode()).hexdigest()[:12]
    if not (place / "done").exists():
        shutil.rmtree(place, ignore_errors=True)
        venv.create(place, with_pip=True)
        command = [str(place / "bin" / "python"), "-m", "pip", "install", "-q", *packages]
        _run(command, cache, os.environ, place / "log", INSTALL_S)
        (place / "done").touch()
    return place


def _run(command: Sequence[str], folder: Path, environment: Mapping[str, str], log: Path, seconds: int) -> None:
    """Run a command at low priority with its output in `log`. Raises NoBuild with the last output line."""
    shown = command[-1] if command[0] == "bash" else " ".join(command)
    print(f"  {shown[:110]}", file=sys.stderr, flush=True)
    nice = ["nice", "-n", str(max(0, NICE - os.nice(0)))] if shutil.which("nice") else []
    with log.open("a", encoding="utf-8") as file:
        print(f"$ {shown}", file=file, flush=True)
        try:
            done = subprocess.run(
                [*nice, *command], cwd=folder, env=dict(environment), stdin=subprocess.DEVNULL, stdout=file,
                stderr=subprocess.STDOUT, timeout=seconds, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise NoBuild(f"`{shown[:80]}` took more than {seconds} s", log) from error
    if done.returncode:
        last = [line.strip() for line in log.read_text("utf-8", "replace").splitlines() if line.strip()][-1]
        raise NoBuild(f"`{shown[:80]}` failed: {last[:160].replace(str(log.parent), '…')}", log)
