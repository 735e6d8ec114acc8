"""Serves Raydex's own documentation as a small HTML site, for the demo to crawl."""

import contextlib
import html
import posixpath
import re
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from mdit_py_plugins.anchors import anchors_plugin

from jobs.cli import BadInput
from pipelines.records import digest

# Page URLs hold the port: with the same one, the next demo finds its pages unchanged.
PORT, OTHER_PORTS = 8765, 20
# The tree of the source and transcripts: their words would answer questions about use.
LISTING = r"(?ms)^## (?:The tree|A transcript)\n.*?^<!-- end.*?-->\n"
LAYOUT = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title} — Raydex</title></head>
<body><nav>{links}</nav><main>{body}</main><footer>Raydex documentation</footer></body></html>
"""


@dataclass(frozen=True, slots=True)
class HtmlPage:
    """A rendered page and its validator."""

    html: bytes
    etag: str


@contextlib.contextmanager
def serve_documentation(root: Path) -> Iterator[str]:
    """Serve the documentation at `root` (README.md and docs/) on loopback; yield the site's URL. Raises BadInput."""
    server = _listen(render_documentation(root))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()


def render_documentation(root: Path) -> dict[str, HtmlPage]:
    """Return the site's pages by path: README.md is `/`, docs/NAME.md is `/NAME.html`.

    Raises BadInput if `root` holds no documentation.
    """
    sources = {path.relative_to(root).as_posix(): path for path in sorted((root / "docs").rglob("*.md"))}
    if not sources:
        raise BadInput(f"{root} holds no docs/*.md: give the demo a site with --site URL")
    paths = {"README.md": "/", **{name: f"/{name[5:-3]}.html" for name in sources}}
    texts = {name: re.sub(LISTING, "", (root / name).read_text()) for name in paths}
    titles = {name: _title(text, name) for name, text in texts.items()}
    links = " ".join(f'<a href="{path}">{html.escape(titles[name])}</a>' for name, path in paths.items())
    return {path: _render(texts[name], titles[name], links, name, paths) for name, path in paths.items()}


def _title(text: str, name: str) -> str:
    match = re.search(r"^# (.+)$", text, re.MULTILINE)
    return match[1].strip() if match else Path(name).stem


def _render(text: str, title: str, links: str, name: str, paths: Mapping[str, str]) -> HtmlPage:
    """Render one page; a link to a file that is no page of the site loses its target."""

    def link(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(name), match[1]))
        return f'href="{paths[target]}{match[2] or ""}"' if target in paths else ""

    markdown = MarkdownIt("commonmark").enable("table").use(anchors_plugin, max_level=4)
    body = re.sub(r'href="(?![a-z]+:)([^"#]+)(#[^"]*)?"', link, markdown.render(text))
    data = LAYOUT.format(title=html.escape(title), links=links, body=body).encode()
    return HtmlPage(data, f'"{digest(data)}"')


class _Site(BaseHTTPRequestHandler):
    """Answers with the pages, or 304 for one that the crawler has."""

    def __init__(self, pages: Mapping[str, HtmlPage], *connection: Any) -> None:
        self.pages = pages
        super().__init__(*connection)

    def do_GET(self) -> None:
        page = self.pages.get(self.path.split("?")[0])
        if page is None:
            self.send_error(404)
            return
        known = self.headers.get("If-None-Match") == page.etag
        self.send_response(304 if known else 200)
        if not known:
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(page.html)))
            self.send_header("ETag", page.etag)
        self.end_headers()
        if not known:
            self.wfile.write(page.html)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


class _Server(ThreadingHTTPServer):
    """Says nothing of a client that went away: a crawler ends connections as it likes."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def _listen(pages: Mapping[str, HtmlPage]) -> ThreadingHTTPServer:
    for port in range(PORT, PORT + OTHER_PORTS):
        with contextlib.suppress(OSError):
            return _Server(("127.0.0.1", port), partial(_Site, pages))
    raise BadInput(f"no port from {PORT} to {PORT + OTHER_PORTS - 1} is free for the documentation site")
