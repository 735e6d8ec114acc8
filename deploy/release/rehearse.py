"""Runs the steps of a release against registries on this machine: an index of Python packages, a registry of images
and a repository of Helm charts, each on 127.0.0.1. Nothing leaves the machine but downloads.

    make release-check

A step whose program is missing is skipped and says what to install. .github/workflows/release.yaml runs the same steps
against PyPI and ghcr.io. The image takes Docker with a running daemon. Without one, buildah builds it on a stand-in:
`--stand-in FOLDER` is a root folder of Debian 12 with Python, as `debootstrap` makes it (deploy/docker/stand-in-images
has the command). The packages of that image are only those that `raydex --version` needs.
"""

import argparse
import contextlib
import functools
import http.server
import os
import re
import shutil
import socket
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

from versions import ROOT, mistakes, project_version

TOOLS = ("pypiserver==2.4.2", "twine==7.0.0", "helm-python-sdk==0.2.2")
CHART = ROOT / "deploy" / "helm" / "raydex"
BASE = "python:3.11-slim-bookworm"
# What `raydex --version` imports, instead of all packages. With the secrets of the Dockerfile.
STAND_IN_PACKAGES = (
    "FROM {base} AS packages\n"
    "RUN --mount=type=secret,id=pip,target=/etc/pip.conf --mount=type=secret,id=certificates "
    "python -m venv /opt/raydex && /opt/raydex/bin/pip install dumb-init==1.2.5.post1 pyyaml\n"
)


class Skipped(Exception):
    """A step can't run here; the message names the missing program."""


class Rehearsal:
    """A release of the checked-out tree; its files are in `folder`."""

    def __init__(self, folder: Path, stand_in: Path | None) -> None:
        self.version, self._folder, self._stand_in = project_version(), folder, stand_in
        self._dist = folder / "dist"
        self._tools = Path(sys.executable).parent / "release"

    def steps(self) -> dict[str, Callable[[], str]]:
        """Return the steps by name, in order. Each returns its result, or raises Skipped or CalledProcessError."""
        return {
            "versions": self.compare_versions,
            "build": self.build,
            "metadata": self.check_metadata,
            "package index": self.publish_package,
            "image": self.publish_image,
            "chart": self.publish_chart,
        }

    def compare_versions(self) -> str:
        """Compare the places that name the version, and a tag of that version."""
        if lines := mistakes(f"v{self.version}"):
            raise SystemExit("\n".join(lines))
        return f"all say {self.version}"

    def build(self) -> str:
        """Build the wheel, and the sdist."""
        run(sys.executable, "-m", "hatchling", "build", "-d", self._dist)
        return ", ".join(f"{path.name} ({path.stat().st_size / 1e6:.1f} MB)" for path in sorted(self._dist.iterdir()))

    def check_metadata(self) -> str:
        """Check the metadata as PyPI does, and whether the README renders there."""
        if not (self._tools / "-".join(TOOLS)).exists():
            run(sys.executable, "-m", "venv", self._tools)
            run(self._tools / "bin" / "python", "-m", "pip", "install", "--quiet", *TOOLS)
            (self._tools / "-".join(TOOLS)).touch()
        return run(self._tools / "bin" / "twine", "check", "--strict", *self._dist.iterdir()).replace("\n", "; ")

    def publish_package(self) -> str:
        """Upload both to an index, install from there into a new environment, and ask for the version.

        The sdist is fetched too, and built as far as its metadata.
        """
        (packages := self._folder / "packages").mkdir()
        port = free_port()
        server = [self._tools / "bin" / "pypi-server", "run", "-i", "127.0.0.1", "-p", str(port), "-P", ".", "-a", "."]
        url = f"http://127.0.0.1:{port}/"
        with running(*server, packages, url=url):
            account = {"TWINE_USERNAME": "", "TWINE_PASSWORD": "", "TWINE_NON_INTERACTIVE": "1"}
            twine = self._tools / "bin" / "twine"
            run(twine, "upload", "--repository-url", url, *self._dist.iterdir(), env=account)
            run(sys.executable, "-m", "venv", fresh := self._folder / "fresh")
            python = fresh / "bin" / "python"
            wanted = f"raydex=={self.version}"
            only = ("--isolated", "--no-cache-dir", "--no-deps", "--index-url", f"{url}simple/")
            run(python, "-m", "pip", "install", "--quiet", *only, wanted)
            # Installing dependencies takes minutes, so this environment's packages are found after the installed wheel.
            (site,) = fresh.glob("lib/python3*/site-packages")
            (site / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
            run(python, "-m", "pip", "download", "--quiet", *only, "--no-binary", ":all:", "--no-build-isolation",
                "-d", self._folder / "sdist", wanted)  # fmt: skip
        said = run(fresh / "bin" / "raydex", "--version", env={"PYTHONPATH": ""}, cwd=self._folder)
        where = run(python, "-c", "import jobs; print(jobs.__file__)", env={"PYTHONPATH": ""}, cwd=self._folder)
        if said != f"raydex {self.version}" or not Path(where).is_relative_to(fresh):
            raise SystemExit(f"the installed package says {said!r} and is at {where}")
        return f"uploaded, installed from {url}simple/: {said}"

    def publish_image(self) -> str:
        """Build the image, push it to a registry, pull it from there, and ask for the version."""
        if not shutil.which("docker-registry"):
            raise Skipped("needs docker-registry (`apt-get install docker-registry`)")
        builder = Docker() if has_docker() else Buildah(self._folder, self._stand_in)
        port = free_port()
        config = self._folder / "registry.yaml"
        storage = f"filesystem: {{rootdirectory: {self._folder / 'registry'}}}"
        config.write_text(
            f"version: 0.1\nlog: {{level: warn}}\nstorage: {{{storage}}}\nhttp: {{addr: '127.0.0.1:{port}'}}\n"
        )
        name = f"127.0.0.1:{port}/raydex:{self.version}"
        with running("docker-registry", "serve", config, url=f"http://127.0.0.1:{port}/v2/"):
            how = builder.build(name)
            builder.push(name)
            tags = urllib.request.urlopen(f"http://127.0.0.1:{port}/v2/raydex/tags/list").read().decode().strip()
            said = builder.run_pulled(name)
        if said != f"raydex {self.version}":
            raise SystemExit(f"the image says {said!r}")
        return f"{how}; the registry has {tags}; pulled: {said}"

    def publish_chart(self) -> str:
        """Package the chart; publish it in a repository and in a registry of images, and pull it from both."""
        (repository := self._folder / "charts").mkdir()
        script = ROOT / "deploy" / "release" / "chart.py"
        with serving(repository) as url, contextlib.ExitStack() as stack:
            registry = ""
            if shutil.which("docker-registry"):
                port, config = free_port(), self._folder / "charts.yaml"
                root = self._folder / "chart-registry"
                config.write_text(
                    f"version: 0.1\nlog: {{level: warn}}\nstorage: {{filesystem: {{rootdirectory: {root}}}}}\n"
                    f"http: {{addr: '127.0.0.1:{port}'}}\n"
                )
                stack.enter_context(running("docker-registry", "serve", config, url=f"http://127.0.0.1:{port}/v2/"))
                registry = f"oci://127.0.0.1:{port}/charts"
            python = self._tools / "bin" / "python"
            return run(python, script, CHART, self.version, repository, url, registry, env=dict(HOME=str(self._folder)))


class Docker:
    """Builds with a running Docker daemon."""

    def build(self, name: str) -> str:
        """Build the image; return how."""
        run("docker", "build", "-f", "deploy/docker/Dockerfile", "-t", name, ".")
        return "built by Docker"

    def push(self, name: str) -> None:
        """Push the image."""
        run("docker", "push", name)

    def run_pulled(self, name: str) -> str:
        """Pull the image and return the version it prints."""
        run("docker", "image", "rm", name)
        return run("docker", "run", "--rm", name, "--version")


class Buildah:
    """Builds without a daemon, on a stand-in for the base image and with few packages."""

    def __init__(self, folder: Path, stand_in: Path | None) -> None:
        if not shutil.which("buildah"):
            raise Skipped("needs a running Docker, or buildah (`apt-get install buildah`) and `--stand-in FOLDER`")
        if stand_in is None:
            raise Skipped("needs a running Docker, or `--stand-in FOLDER` for buildah: `--help` says more")
        self._folder, self._stand_in = folder, stand_in
        self._storage = ("--storage-driver", "vfs", "--root", folder / "images", "--runroot", folder / "containers")

    def _run(self, *words: str | Path) -> str:
        return run("buildah", *self._storage, *words)

    def build(self, name: str) -> str:
        """Build the image from the stages of the Dockerfile, but for its packages; return how."""
        base = self._import_base()
        text = (ROOT / "deploy" / "docker" / "Dockerfile").read_text()
        packages = re.search(r"^FROM \S+ AS packages\n.*?(?=^FROM )", text, re.MULTILINE | re.DOTALL)
        if packages is None:
            raise SystemExit("the Dockerfile has no stage `packages`")
        text = text.replace(packages[0], STAND_IN_PACKAGES.format(base=BASE)).replace(BASE, base)
        (dockerfile := self._folder / "Dockerfile").write_text(text)
        ignored = ROOT / "deploy" / "docker" / "Dockerfile.dockerignore"
        words = ("--isolation", "chroot", "--format", "docker", "--ignorefile", ignored, "-f", dockerfile, "-t", name)
        self._run("bud", *words, *self._secrets(), ROOT)
        return "built by buildah without a daemon, on a stand-in for the base image and with few packages"

    def _secrets(self) -> list[str]:
        """Return the secrets of the Dockerfile: this environment's index of packages, and its certificates."""
        lines, words = ["[global]"], list[str]()
        if index := os.environ.get("PIP_INDEX_URL"):
            lines.append(f"index-url = {index}")
        if bundle := os.environ.get("PIP_CERT") or os.environ.get("SSL_CERT_FILE"):
            lines.append("cert = /run/secrets/certificates")
            words += ["--secret", f"id=certificates,src={bundle}"]
        (config := self._folder / "pip.conf").write_text("\n".join(lines) + "\n")
        return [*words, "--secret", f"id=pip,src={config}"]

    def _import_base(self) -> str:
        container = self._run("from", "scratch")
        self._run("copy", "--quiet", container, self._stand_in, "/")
        link = "ln -sf /usr/bin/python3 /usr/local/bin/python3 && ln -sf python3 /usr/local/bin/python"
        self._run("run", "--isolation", "chroot", container, "--", "sh", "-c", link)
        self._run("commit", "--quiet", container, "stand-in:base")
        return "localhost/stand-in:base"

    def push(self, name: str) -> None:
        """Push the image."""
        self._run("push", "--quiet", "--tls-verify=false", name, f"docker://{name}")

    def run_pulled(self, name: str) -> str:
        """Pull the image and return the version it prints."""
        self._run("rmi", "--force", name)
        container = self._run("from", "--quiet", "--tls-verify=false", f"docker://{name}").splitlines()[-1]
        return self._run("run", "--isolation", "chroot", container, "--", "raydex", "--version")


def has_docker() -> bool:
    """Return whether a Docker daemon answers."""
    done = shutil.which("docker") and subprocess.run(["docker", "info"], capture_output=True, check=False)
    return bool(done) and done.returncode == 0 and b"ERROR" not in done.stdout


def run(*words: str | Path, env: dict[str, str] | None = None, cwd: Path = ROOT) -> str:
    """Return a command's output. The output of a failed command is printed."""
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, check=False, cwd=cwd,
                          env=os.environ | (env or {}))  # fmt: skip
    if done.returncode:
        raise SystemExit(f"`{' '.join(map(str, words))}` failed:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.stdout.strip()


def free_port() -> int:
    """Return a free port of this machine."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextlib.contextmanager
def running(*words: str | Path, url: str) -> Iterator[None]:
    """Run a server until the end of the block; it has started when `url` answers."""
    with tempfile.TemporaryFile() as log:
        server = subprocess.Popen(list(map(str, words)), stdout=log, stderr=log)
        try:
            deadline = time.monotonic() + 60
            while True:
                try:
                    urllib.request.urlopen(url).close()
                    break
                except OSError as error:
                    if server.poll() is not None or time.monotonic() > deadline:
                        log.seek(0)
                        raise SystemExit(f"{words[0]} did not start: {error}\n{log.read().decode()}") from error
                    time.sleep(0.1)
            yield
        finally:
            server.terminate()
            server.wait()


@contextlib.contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Serve the files of a folder; yield the URL."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def main() -> int:
    """Run the steps, and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stand-in", type=Path, metavar="FOLDER", help="a root folder of Debian for buildah")
    args = parser.parse_args()
    skipped = 0
    with tempfile.TemporaryDirectory(prefix="raydex-release-") as folder:
        for name, step in Rehearsal(Path(folder), args.stand_in).steps().items():
            started = time.monotonic()
            try:
                said = step()
            except Skipped as reason:
                said, skipped = f"SKIPPED: {reason}", skipped + 1
            print(f"{name} ({time.monotonic() - started:.0f} s): {said}", flush=True)
    print(f"the release was rehearsed{f', but for {skipped} steps' if skipped else ''}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
