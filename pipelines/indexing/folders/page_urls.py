"""Finds the URL path of a file on the published site, by URL style and the rules of its sources."""

import re
from collections.abc import Mapping
from posixpath import join, normpath
from typing import Any

from pipelines.indexing.reading.formats import HTML, SOURCES, format_of_name
from pipelines.indexing.reading.formats.slugs import slug
from pipelines.indexing.reading.front_matter import front_matter
from pipelines.indexing.reading.sources import SourceFolder, UrlStyle

_BLOG = "blog/"


def published_path(path: str, style: UrlStyle, sources: SourceFolder | None = None, body: bytes = b"") -> str:
    """Return the path below the site's URL at which the file `path`, below the pages' root, is published.

    `body` is needed if the page's front matter may define the path.
    """
    entry = format_of_name(path)
    sources = sources or SourceFolder("", "", "", style)
    types = {each.media_type for each in SOURCES} | dict(sources.formats).keys()
    if style == "keep" or entry is None or entry.media_type not in types:  # no HTML page is made from it
        return path
    stem = path[: -1 - max(len(suffix) for suffix in entry.suffixes if path.lower().endswith("." + suffix))]
    place = _path_of(stem, sources, front_matter(body) if sources.named_within else {})
    for pattern, by in sources.moves:
        place = re.sub(pattern, by, place)
    published = _styled(place, style)
    return published.lower() if sources.names == "lower" else published


def _path_of(stem: str, sources: SourceFolder, fields: Mapping[str, Any]) -> str:
    """Return where a page is published, by renames and routes, or by its front matter."""
    if whole := _text(fields.get(sources.whole)):
        return _joined(stem.rpartition("/")[0], whole) if whole[0] == "." else whole.lstrip("/")
    for pattern, by in sources.renames:
        stem = re.sub(pattern, by, stem, flags=re.IGNORECASE)
    if sources.names == "slugs":
        stem = "/".join(map(slug, stem.split("/")))
    place, route = next((pair for pair in sources.routes if stem.startswith(pair[0])), ("", ""))
    folder, slash, name = stem[len(place) :].rpartition("/")
    called = _text(fields.get("slug"))
    own = "" if sources.whole else _text(fields.get("id"))
    if ":" in route:
        return _filled(route, place, f"{folder}{slash}{name}", fields, sources.titles) if name else stem
    if called:
        at_root = called[0] == "/" or place.endswith(_BLOG)
        return route + called.lstrip("/") if at_root else f"{route}{folder}{slash}{called}"
    return f"{route}{folder}{slash}{name and (own or name)}"


def _joined(folder: str, path: str) -> str:
    """Return `path`, which begins with a dot and is relative to `folder`, as a path below the site's root."""
    joined = normpath(join("/", folder, path)).lstrip("/")
    return f"{joined}/" if path.endswith("/") and joined else joined


def _filled(template: str, place: str, path: str, fields: Mapping[str, Any], titles: bool) -> str:
    """Fill in a URL template, such as Hugo's `/:section/:year/:month/:slug/` or Jekyll's `/:collection/:path`."""
    name = path.rpartition("/")[2]
    year, month, day, *_ = [*re.findall(r"\d+", str(fields.get("date") or path)), "", "", ""]
    own = _text(fields.get("slug"))
    title = re.sub(r"[^\w.+~@ -]", "", _text(fields.get("title")).lower()) if titles else ""
    title = re.sub(r" *[- ] *", "-", title.strip()) or name
    folder = place.strip("/_")
    called, sections = own or name, f"{place}{path}".rpartition("/")[0]
    words = {"section": folder, "sections": sections, "collection": folder, "path": path, "name": name, "year": year,
             "month": month, "day": day, "filename": name, "contentbasename": name, "slugorfilename": called,
             "slugorcontentbasename": called, "title": title if titles else called, "slug": own or title}  # fmt: skip
    return re.sub(r"/{2,}", "/", re.sub(r":(\w+)", lambda word: words.get(word[1], ""), template)).lstrip("/")


def _styled(name: str, style: UrlStyle) -> str:
    if not name or name.endswith(("/", f".{HTML.suffixes[0]}")) or style == "bare":
        return name
    return f"{name}/" if style == "directory" else f"{name}.{HTML.suffixes[0]}"


def _text(value: object) -> str:
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""
