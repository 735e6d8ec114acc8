"""Fumadocs: a `source.config`, and loaders that define the path under which each folder is published."""

import re
from posixpath import basename, join, normpath

from pipelines.indexing.reading.formats import MARKDOWN, MDX
from pipelines.indexing.reading.sources import Read, SourceFolder, first_file

_CONFIGS = ("source.config.ts", "source.config.mts", "source.config.js", "source.config.mjs")
_LOADERS = ("lib/source.ts", "lib/source/index.ts", "lib/source.tsx", "app/source.ts")
_FOLDER, _BASE = r"\bdir\s*:\s*['\"`]([^'\"`]+)", r"\bbaseUrl\s*:\s*['\"`]([^'\"`]*)"
_DEFAULT = "content/docs"
# Folders in parentheses are not part of URLs.
_RENAMES = ((r"\([^()/]*\)/", ""), (r"(^|/)index$", r"\1"))


def sources(read: Read, place: str) -> SourceFolder | None:
    """Return the folders published by a configuration in `place`, or None."""
    config = first_file(read, place, *_CONFIGS)
    if config is None:
        return None
    loader = first_file(read, place, *_LOADERS) or first_file(read, f"{place}src/", *_LOADERS)
    bases = [base.strip("/") for base in re.findall(_BASE, loader[1] if loader else "")]
    folders = [normpath(folder) for folder in re.findall(_FOLDER, config[1])] or [_DEFAULT]
    routes = []
    for folder in folders:
        own = [base for base in bases if basename(base) == basename(folder)] or (bases if len(folders) == 1 else [])
        routes.append((f"{folder}/", f"{(own or [basename(folder)])[0]}/".lstrip("/")))
    root = normpath(join(place, ".")) + "/"
    formats = ((MARKDOWN.media_type, MDX.media_type),)
    return SourceFolder(
        "Fumadocs", config[0], root, "bare", formats, renames=_RENAMES, routes=tuple(sorted(routes)[::-1])
    )
