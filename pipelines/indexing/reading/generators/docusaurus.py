"""Docusaurus: lines of code without breaks, a `docusaurus.config`, URLs by routes."""

import re

from pipelines.indexing.reading.formats import MARKDOWN, MDX
from pipelines.indexing.reading.sources import Read, SourceFolder, first_file, types

_CONFIGS = tuple(f"docusaurus.config.{suffix}" for suffix in ("js", "ts", "mjs", "cjs", "mts", "cts"))
_COMMENTS, _DOCS = r"^\s*//[^\n]*|/\*.*?\*/", r"\bdocs\s*:\s*\{(.*?)^\s*\}"


def sources(read: Read, place: str) -> SourceFolder | None:
    """Return the folder that a configuration in `place` publishes, None without one."""
    config = first_file(read, place, *_CONFIGS)
    if config is None:
        return None
    text = re.sub(_COMMENTS, "", config[1], flags=re.MULTILINE | re.DOTALL)
    docs = re.search(_DOCS, text, re.MULTILINE | re.DOTALL)
    options = docs[1] if docs else ""
    path = _text_key("path", options, "docs").strip("/") + "/"
    route = _text_key("routeBasePath", options, "docs").strip("/") + "/"
    return SourceFolder(
        "Docusaurus",
        config[0],
        root=place,
        url_style="directory" if re.search(r"\btrailingSlash\s*:\s*true\b", text) else "bare",
        formats=types((MARKDOWN, MDX)),
        exclude=(r"(^|/)_",),
        routes=((path, route.lstrip("/")), ("blog/", "blog/"), ("src/pages/", "")),
    )


def _text_key(name: str, text: str, default: str) -> str:
    found = re.search(rf"\b{name}\s*:\s*(['\"`])(.*?)\1", text)
    return found[2] if found else default
