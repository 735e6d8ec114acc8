"""Rewrites the links of a source to the published URLs of the files that they name.

These are Markdown's links to sources, :doc:`guide` of Sphinx and `xref:guide.adoc[]` of Antora. References to labels
keep their words alone.
"""

import re
from collections.abc import Callable
from functools import partial
from pathlib import PurePosixPath
from urllib.parse import urlsplit

from markdown_it.common.utils import unescapeAll

from pipelines.indexing.reading.formats import (
    ASCIIDOC,
    MARKDOWN,
    RESTRUCTURED_TEXT,
    SOURCES,
    DocumentFormat,
    format_of_name,
)
from pipelines.indexing.reading.verbatim import replace_outside_code
from pipelines.page.urls import absolute_url

_ROLE = r"(?P<words>[^`<>\n]{1,500}?)[ \t]*(?:<(?P<page>[^`<>\n]{1,500})>)?`"
_LINKS: dict[DocumentFormat | None, re.Pattern[str]] = {
    RESTRUCTURED_TEXT: re.compile(rf":doc:`{_ROLE}"),
    ASCIIDOC: re.compile(
        r"\bxref:(?:(?P<module>[\w.-]*):)?(?P<page>[^\[\s#:]{1,500}\.adoc)(?P<part>#[^\[\s]{0,200})?"
        r"\[(?P<words>[^\]]{1,500})\]"
    ),
}
_LINK = re.compile(
    r"(?P<before>\]\(<?|^[ ]{0,3}\[[^\]\n]{1,999}\]:[ \t]*<?)(?P<target>[^\s<>()#]+)|\{doc\}`" + _ROLE,
    re.MULTILINE,
)
_MODULE = re.compile(r"[^/]+/pages/(?!.*/pages/)")  # of Antora: names are relative to the folder of a module's pages


def lead_links(
    body: bytes, place: str, root: str, publish: Callable[[str], str], entry: DocumentFormat = MARKDOWN
) -> bytes:
    """Return a source with its links to other sources replaced by the result of `publish` for their file URLs.

    `place` is the URL of the source's own file, `root` the URL of the folder for paths that begin with a slash. A link
    stays unchanged if `publish` returns "".
    """
    text = body.decode("utf-8", "surrogateescape")
    lead = partial(_lead, place, root, publish, entry)
    return replace_outside_code(_LINKS.get(entry, _LINK), lead, text, entry).encode("utf-8", "surrogateescape")


def _lead(place: str, root: str, publish: Callable[[str], str], entry: DocumentFormat, match: re.Match[str]) -> str:
    said = match.groupdict()
    if said.get("words"):
        published = _published_page(place, root, publish, entry, said)
        return _WRITTEN[entry].format(said["words"], published + (said.get("part") or "")) if published else match[0]
    target = unescapeAll(match["target"])
    if format_of_name(target) not in SOURCES:
        return match[0]
    published = _published(place, root, publish, target)
    return f"{match['before']}{published}" if published else match[0]


_WRITTEN = {ASCIIDOC: "link:{1}[{0}]", RESTRUCTURED_TEXT: "`{0} <{1}>`__", MARKDOWN: "[{0}]({1})"}


def _published_page(
    place: str, root: str, publish: Callable[[str], str], entry: DocumentFormat, said: dict[str, str | None]
) -> str:
    """Return the URL of a page that Sphinx or Antora names."""
    name = said["page"] or said["words"] or ""
    if entry is not ASCIIDOC:
        return (
            ""
            if "://" in name
            else _published(place, root, publish, name.strip() + PurePosixPath(urlsplit(place).path).suffix)
        )
    module = _MODULE.search(place)
    if module and not name.startswith("."):
        place = f"{place[: module.start()]}{said['module'] or module[0].partition('/')[0]}/pages/"
    return _published(place, root, publish, name) if module or not said["module"] else ""


def _published(place: str, root: str, publish: Callable[[str], str], target: str) -> str:
    url = absolute_url(root, target[1:]) if target[0] == "/" else absolute_url(place, target)
    return publish(url) if url else ""
