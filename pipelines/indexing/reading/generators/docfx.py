"""DocFX: a `docfx.json`, whose content entries have sources and destinations."""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from os.path import commonpath
from posixpath import join, normpath
from typing import Any

from pipelines.indexing.reading.formats import MARKDOWN
from pipelines.indexing.reading.sources import Read, SourceFolder, UrlStyle, first_file, upwards
from pipelines.text.parsing import parse_json

# This file marks a repository of Microsoft Learn, which publishes URLs without suffixes.
_LEARN = ".openpublishing.publish.config.json"
_EXCLUDE = (r"(^|/)(?:_site|obj|bin|includes)/", r"(^|/)toc\.md$")
_RENAMES = ((r"(^|/)index$", r"\1"),)


def sources(read: Read, place: str) -> SourceFolder | None:
    """Return the folders published by a configuration in `place`, or None."""
    text = read(f"{place}docfx.json")
    if text is None:
        return None
    found = dict(_routes(text)) or {".": ""}
    folders = {f"{normpath(join(place, folder))}/": route for folder, route in found.items()}
    root = commonpath([place, *folders]).rstrip("/") + "/"
    routes = tuple(sorted((folder.removeprefix(root), route) for folder, route in folders.items())[::-1])
    learn = any(first_file(read, above, _LEARN) for above in upwards(place))
    style: UrlStyle = "bare" if learn else "html"
    return SourceFolder("DocFX", f"{place}docfx.json", root, style, exclude=_EXCLUDE, renames=_RENAMES, routes=routes)


def _routes(text: str) -> Iterator[tuple[str, str]]:
    """Yield folders of Markdown files with their paths in URLs."""
    groups: Any = ()
    with suppress(ValueError, KeyError, TypeError):
        groups = parse_json(text)["build"]["content"]
    for group in groups if isinstance(groups, list) else ():
        if not isinstance(group, Mapping):
            continue
        files = group.get("files")
        for pattern in [files] if isinstance(files, str) else files if isinstance(files, list) else ():
            if f".{MARKDOWN.suffixes[0]}" in str(pattern):
                below = re.split(r"[*?{\[]", str(pattern))[0].rpartition("/")[0]
                source, route = str(group.get("src") or group.get("cwd") or "."), str(group.get("dest") or "")
                yield join(source, below), f"{normpath(join(route, below))}/".removeprefix("./").lstrip("/")
