"""Provides the corpus: sites from Debian packages, unpacked into a cache folder and served on loopback."""

import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

import yaml

SITES = Path(__file__).parents[1] / "reading_sites.yaml"
LEAST_BYTES, MOST_BYTES = 1500, 250_000  # shorter: a redirect or a frame; longer: slow to render
SKIP = re.compile(r"(^|/)(genindex|search|py-modindex|modindex|index-all|allclasses|allpackages)[^/]*\.x?html?$")


class NoPackage(RuntimeError):
    """A package that is not available here."""


@dataclass(frozen=True)
class Site:
    """A site of the corpus. `folder` is its root among the files, and `only` matches the paths of its pages."""

    name: str
    generator: str
    packages: Sequence[str]
    folder: str
    only: str = ""
    extra: Sequence[str] = field(default=())

    def pages(self, root: Path) -> list[str]:
        """Return the sorted paths of its pages below `root`."""
        top = (root / self.folder.lstrip("/")).resolve()
        names = (path for path in top.rglob("*") if path.suffix in (".html", ".htm", ".xhtml") and path.is_file())
        found = sorted(str(path.relative_to(top)) for path in names if LEAST_BYTES < path.stat().st_size < MOST_BYTES)
        return [name for name in found if re.search(self.only, name) and not SKIP.search(name)]

    def file(self, root: Path, page: str) -> Path:
        """Return the file of a page."""
        return root / self.folder.lstrip("/") / page

    def url(self, base: str, page: str) -> str:
        """Return a page's URL if `base` serves the root."""
        return f"{base}{quote(self.folder)}/{quote(page)}"


def all_sites() -> list[Site]:
    """Return the sites of the table next to this package."""
    table: dict[str, dict[str, Any]] = yaml.safe_load(SITES.read_text("utf-8"))
    return [Site(name, **{"packages": [], **entry}) for name, entry in table.items()]


def fetch(site: Site, root: Path) -> None:
    """Unpack a site's packages into `root`, each once, without installing them. Raises NoPackage with the reason."""
    for package in (*site.packages, *site.extra):
        marker = root / ".packages" / package
        if marker.exists():
            continue
        if not (shutil.which("apt-get") and shutil.which("dpkg")):
            raise NoPackage(f"{package}: no apt-get here")
        marker.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=marker.parent) as folder:
            done = subprocess.run(
                ["apt-get", "download", "-q", package], cwd=folder, capture_output=True, text=True, check=False
            )
            files = list(Path(folder).glob("*.deb"))
            if done.returncode or not files:
                raise NoPackage(f"{package}: {(done.stderr.strip().splitlines() or ['no file'])[-1]}")
            subprocess.run(["dpkg", "-x", str(files[0]), str(root)], check=True, capture_output=True)
        marker.touch()


class Quiet(SimpleHTTPRequestHandler):
    """Serves a folder without logging."""

    protocol_version = "HTTP/1.1"  # keeps connections open

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def served(root: Path, handler: type[Quiet] = Quiet) -> Iterator[str]:
    """Serve a folder on loopback and yield the base of its URLs."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=str(root)))
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
