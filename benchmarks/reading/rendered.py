"""Renders a site that exists only in its readers' browsers, such as docsify's, to HTML files."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from benchmarks.reading.chromium import BINARY, FLAGS
from benchmarks.reading.sites import Quiet, served

PAGE_S, SETTLE_MS = 60, 10_000  # the second in the page's own time, which passes faster


class NotRendered(RuntimeError):
    """A page that the browser does not show."""


class _Fallback(Quiet):
    """Serves the index page at every path without a file, as a site with routes in its script requires."""

    def translate_path(self, path: str) -> str:
        found = super().translate_path(path)
        is_route = "." not in unquote(urlsplit(path).path).rpartition("/")[2] and not Path(found).is_dir()
        return super().translate_path("/index.html") if is_route else found


def render(sources: Path, site: Path) -> None:
    """Write each Markdown file of `sources`, which has the site's `index.html`, to `site` as the browser shows it."""
    if BINARY is None:
        raise NotRendered("no chromium on this machine")
    with served(sources, _Fallback) as base:
        for route in _routes(sources):
            page = _shown(f"{base}/{quote(route)}").replace(f"{base}/", "/").replace("?id=", "#")  # docsify's anchors
            to = site / f"{route or 'index'}.html"
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_text(page, encoding="utf-8")


def _routes(sources: Path) -> Iterator[str]:
    for file in sorted(sources.rglob("*.md")):
        route = str(file.relative_to(sources).with_suffix(""))
        yield "" if route == "README" else route


def _shown(url: str) -> str:
    command = [str(BINARY), *FLAGS, "--headless", f"--virtual-time-budget={SETTLE_MS}", "--dump-dom", url]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PAGE_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise NotRendered(f"{url}: not shown in {PAGE_S} s") from error
    if done.returncode or not done.stdout.strip():
        raise NotRendered(f"{url}: {(done.stderr.strip().splitlines() or ['nothing shown'])[-1]}")
    return done.stdout
