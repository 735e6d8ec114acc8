"""The URL path of a file on the published site, by URL style and the rules of its sources."""

import re
from collections.abc import Mapping
from typing import Any

import yaml

from pipelines.indexing.reading.formats import HTML, MARKDOWN, MDX, NOTEBOOK, RESTRUCTURED_TEXT, format_of_name
from pipelines.indexing.reading.sources import SourceFolder, UrlStyle

# Numbers before names, which order them (numberPrefixParser): dates and versions are not among them.
_NUMBER = re.compile(r"^\d+\s*[-_.]+\s*(?=[^-_.\s])")
_NO_NUMBER = re.compile(r"^(?:\d{2}|\d{4})[-_.]\d{2}(?:[-_.](?:\d{2}|\d{4}))?|^\d+[-_.]\d+")
_POST = re.compile(r"^(.*?)(\d{4})[-/](\d{1,2})[-/](\d{1,2})[-/]([^/]+)$")
_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?)^---[ \t]*$", re.MULTILINE | re.DOTALL)
_INDEXES = ("index", "_index", "readme")  # "_index" in Hugo
_BLOG = "blog/"


def published_path(path: str, style: UrlStyle, sources: SourceFolder | None = None, body: bytes = b"") -> str:
    """Return the path below the site's URL at which the file `path`, below the pages' root, is published.

    `body` is needed where the page's front matter may name it.
    """
    entry = format_of_name(path)
    if style == "keep" or entry is None or entry.media_type not in _source_types(sources):
        return path
    folder, _, name = path.rpartition("/")
    stem = name[: -1 - max(len(suffix) for suffix in entry.suffixes if name.lower().endswith("." + suffix))]
    if sources is not None and sources.routes:
        return _routed_path(folder, stem, style, sources, front_matter(body))
    prefix = folder + "/" if folder else ""
    published = prefix if stem.lower() in (sources.indexes if sources else _INDEXES) else prefix + _styled(stem, style)
    return published.lower() if sources is not None and sources.lower else published


def _routed_path(folder: str, stem: str, style: UrlStyle, sources: SourceFolder, fields: Mapping[str, Any]) -> str:
    """Return a path by routes, without numbers before names, with the dates of posts, or as the page itself says."""
    place, route = next((pair for pair in sources.routes if f"{folder}/".startswith(pair[0])), ("", ""))
    folder, slug = folder[len(place) :], _text(fields.get("slug"))
    if place == _BLOG:
        folder, stem = _dated(folder, stem)
        folder = "" if slug else folder
    folder, stem = "/".join(_unnumbered(part) for part in folder.split("/")), _unnumbered(stem)
    prefix = folder + "/" if folder else ""
    if slug:
        return route + _styled(slug.lstrip("/") if slug.startswith("/") else prefix + slug, style)
    if stem.lower() in (*sources.indexes, folder.rpartition("/")[2].lower()):
        return route + prefix
    return route + prefix + _styled(_text(fields.get("id")) or stem, style)


def front_matter(body: bytes) -> Mapping[str, Any]:
    """Return the fields of a page's front matter, none if it has none that can be read."""
    match = _FRONT_MATTER.match(body[:20_000].decode("utf-8-sig", "replace").replace("\r\n", "\n"))
    try:
        fields = yaml.safe_load(match[1]) if match else None
    except (yaml.YAMLError, ValueError):
        return {}
    return fields if isinstance(fields, dict) else {}


def _source_types(sources: SourceFolder | None) -> frozenset[str]:
    """Return the media types of files that become pages of HTML."""
    always = {entry.media_type for entry in (MARKDOWN, MDX, NOTEBOOK, RESTRUCTURED_TEXT)}
    return frozenset(always | {by_suffix for by_suffix, _ in (sources.formats if sources else ())})


def _styled(name: str, style: UrlStyle) -> str:
    if not name or name.endswith("/") or style == "bare":
        return name
    return f"{name}/" if style == "directory" else f"{name}.{HTML.suffixes[0]}"


def _dated(folder: str, stem: str) -> tuple[str, str]:
    """Return folder and name of a blog post: 2021-08-26-welcome.md and 2021-08-26-welcome/index.md are one place."""
    whole = "/".join(filter(None, (folder, "" if stem.lower() in _INDEXES else stem)))
    post = _POST.match(whole)
    return ("/".join(filter(None, (post[1].strip("/"), *post.group(2, 3, 4)))), post[5]) if post else (folder, stem)


def _unnumbered(name: str) -> str:
    return name if _NO_NUMBER.match(name) else _NUMBER.sub("", name)


def _text(value: object) -> str:
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""
