"""Serves Raydex's own documentation as a small HTML site, for the demo to crawl."""

import contextlib
import html
import posixpath
import re
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from mdit_py_plugins.anchors import anchors_plugin

from jobs.cli import BadInput

# Page URLs include the port: with the same one, the next demo finds its pages unchanged.
PORT, OTHER_PORTS = 8765, 20
BESIDE = ("CONTRIBUTING.md", "SECURITY.md")
# The source tree and transcripts: their words would match questions about usage.
LISTING = r"(?ms)^## (?:The tree|A transcript)\n.*?^<!-- end.*?-->\n"
LAYOUT = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title} — Raydex</title></head>
<body><nav>{links}</nav><main>{body}</main><footer>Raydex documentation</footer></body></html>
"""


@contextlib.contextmanager
def serve_documentation(root: Path) -> Iterator[str]:
    """Serve the documentation at `root` on loopback; yield the site's URL. Raises BadInput."""
    with tempfile.TemporaryDirectory() as folder:
        for path, page in render_documentation(root).items():
            file = Path(f"{folder}{path}index.html" if path == "/" else f"{folder}{path}")
            file.parent.mkdir(exist_ok=True)
            file.write_text(page, encoding="utf-8")
        with _listen(folder) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            try:
                yield f"http://127.0.0.1:{server.server_address[1]}/"
            finally:
                server.shutdown()


def render_documentation(root: Path) -> dict[str, str]:
    """Return the site's pages by path: README.md is `/`, NAME.md there or in docs/ is `/NAME.html`.

    Raises BadInput if `root` has no documentation.
    """
    sources = [path.relative_to(root).as_posix() for path in sorted((root / "docs").rglob("*.md"))]
    if not sources:
        raise BadInput(f"{root} holds no docs/*.md: give the demo a site with --site URL")
    paths = {"README.md": "/", **{name: f"/{name.removeprefix('docs/')[:-3]}.html" for name in (*sources, *BESIDE)}}
    texts = {name: re.sub(LISTING, "", (root / name).read_text()) for name in paths}
    titles = {name: _title(text, name) for name, text in texts.items()}
    links = " ".join(f'<a href="{path}">{html.escape(titles[name])}</a>' for name, path in paths.items())
    return {path: _render(texts[name], titles[name], links, name, paths) for name, path in paths.items()}


def _title(text: str, name: str) -> str:
    match = re.search(r"^# (.+)$", text, re.MULTILINE)
    return match[1].strip() if match else Path(name).stem


def _render(text: str, title: str, links: str, name: str, paths: Mapping[str, str]) -> str:
    """Render one page; a link to a file outside the site loses its target."""

    def link(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(name), match[1]))
        return f'href="{paths[target]}{match[2] or ""}"' if target in paths else ""

    markdown = MarkdownIt("commonmark").enable("table").use(anchors_plugin, max_level=4)
    body = re.sub(r'href="(?![a-z]+:)([^"#]+)(#[^"]*)?"', link, markdown.render(text))
    return LAYOUT.format(title=html.escape(title), links=links, body=body)


class _Site(SimpleHTTPRequestHandler):
    """Serves the files of a folder, and logs nothing."""

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


class _Server(ThreadingHTTPServer):
    """Ignores disconnected clients: a crawler closes connections at any time."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def _listen(folder: str) -> ThreadingHTTPServer:
    for port in range(PORT, PORT + OTHER_PORTS):
        with contextlib.suppress(OSError):
            return _Server(("127.0.0.1", port), partial(_Site, directory=folder))
    raise BadInput(f"no port from {PORT} to {PORT + OTHER_PORTS - 1} is free for the documentation site")
