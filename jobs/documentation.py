"""Raydex's own documentation as a small HTML site: README.md and docs/*.md, rendered on the fly.

What the demo crawls. Knows neither the crawler nor the server that hands the pages out.
"""

import html
import re
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt
from mdit_py_plugins.anchors import anchors_plugin

from pipelines.records import digest

LAYOUT = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title} — Raydex</title></head>
<body><nav>{links}</nav><main>{body}</main><footer>Raydex documentation</footer></body></html>
"""


@dataclass(frozen=True, slots=True)
class HtmlPage:
    """A rendered page and its validator."""

    html: bytes
    etag: str


def pages_of(root: Path) -> dict[str, HtmlPage]:
    """The site by path: README.md is `/`, docs/NAME.md is `/NAME.html`."""
    sources = {"/": root / "README.md"}
    sources |= {f"/{path.stem}.html": path for path in sorted((root / "docs").glob("*.md"))}
    titles = {path: _title(source) for path, source in sources.items()}
    links = " ".join(f'<a href="{path}">{html.escape(title)}</a>' for path, title in titles.items())
    return {path: _page(source, titles[path], links) for path, source in sources.items()}


def _title(source: Path) -> str:
    match = re.search(r"^# (.+)$", source.read_text(), re.MULTILINE)
    return match.group(1).strip() if match else source.stem


def _page(source: Path, title: str, links: str) -> HtmlPage:
    markdown = MarkdownIt("commonmark").enable("table").use(anchors_plugin, max_level=4)
    body = markdown.render(source.read_text())
    body = re.sub(r'href="(?:docs/)?([\w-]+)\.md(#[\w-]+)?"', r'href="/\1.html\2"', body)
    data = LAYOUT.format(title=html.escape(title), links=links, body=body).encode()
    return HtmlPage(data, f'"{digest(data)}"')
