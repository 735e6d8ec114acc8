"""Rewrites the links of a Markdown source to the published URLs of the files that they name."""

import re
from collections.abc import Callable
from functools import partial

from markdown_it.common.utils import unescapeAll

from pipelines.indexing.reading.formats import SOURCES, format_of_name
from pipelines.indexing.reading.verbatim import replace_outside_code
from pipelines.page.urls import absolute_url

_LINK = re.compile(r"(?P<before>\]\(<?|^[ ]{0,3}\[[^\]\n]{1,999}\]:[ \t]*<?)(?P<target>[^\s<>()#]+)", re.MULTILINE)


def lead_links(body: bytes, place: str, root: str, publish: Callable[[str], str]) -> bytes:
    """Return a source with its links to other sources replaced by the result of `publish` for their file URLs.

    `place` is the URL of the source's own file, `root` the URL of the folder for paths that begin with a slash. A link
    stays unchanged if `publish` returns "".
    """
    text = body.decode("utf-8", "surrogateescape")
    return replace_outside_code(_LINK, partial(_lead, place, root, publish), text).encode("utf-8", "surrogateescape")


def _lead(place: str, root: str, publish: Callable[[str], str], match: re.Match[str]) -> str:
    target = unescapeAll(match["target"])
    if format_of_name(target) not in SOURCES:
        return match[0]
    url = absolute_url(root, target[1:]) if target[0] == "/" else absolute_url(place, target)
    published = publish(url) if url else ""
    return f"{match['before']}{published}" if published else match[0]
