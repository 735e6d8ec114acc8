"""Rewrites the links of a source to the published URLs of the files that they name.

These are Markdown's links to sources, {doc}`guide` and :doc:`guide` of Sphinx, and `xref:guide.adoc[words]` of Antora.
References to labels only keep their words.
"""

import re
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import NamedTuple
from urllib.parse import urlsplit

from markdown_it.common.utils import unescapeAll

from pipelines.indexing.reading.formats import ASCIIDOC, RESTRUCTURED_TEXT, SOURCES, DocumentFormat, format_of_name
from pipelines.indexing.reading.verbatim import replace_outside_code
from pipelines.page.urls import absolute_url

# The arguments of a role that names a page without its suffix.
_ROLE = r"`(?P<words>[^`<>\n]{1,500}?)[ \t]*(?:<(?P<page>[^`<>\n]{1,500})>)?`"
_PAGES = "/pages/"  # the folder of pages in a module of Antora, to which their names are relative


class _Syntax(NamedTuple):
    """How a format writes links: a pattern, and the form of a link with words to a URL.

    The pattern matches a `target`, after the text `before` it, or the `words` for a named `page`.
    """

    pattern: re.Pattern[str]
    form: str


_MARKDOWN = _Syntax(
    re.compile(
        rf"(?P<before>\]\(<?|^[ ]{{0,3}}\[[^\]\n]{{1,999}}\]:[ \t]*<?)(?P<target>[^\s<>()#]+)|\{{doc\}}{_ROLE}",
        re.MULTILINE,
    ),
    "[{words}]({url})",
)
_SYNTAXES: dict[DocumentFormat, _Syntax] = {
    RESTRUCTURED_TEXT: _Syntax(re.compile(f":doc:{_ROLE}"), "`{words} <{url}>`__"),
    ASCIIDOC: _Syntax(
        re.compile(
            r"\bxref:(?:(?P<module>[\w.-]*):)?(?P<page>[^\[\s#:@{}]{1,500}\.adoc)(?P<part>#[^\[\s]{0,200})?"
            r"\[(?P<words>[^\]]{1,500})\]"
        ),
        "link:{url}[{words}]",
    ),
}


def lead_links(body: bytes, place: str, root: str, publish: Callable[[str], str], entry: DocumentFormat) -> bytes:
    """Return a source with its links to other sources replaced by the result of `publish` for their file URLs.

    `place` is the URL of the source's own file, `root` the URL of the folder for paths that begin with a slash. A link
    stays unchanged if `publish` returns "".
    """
    links = _Links(place, root, publish, entry)
    text = body.decode("utf-8", "surrogateescape")
    return replace_outside_code(links.syntax.pattern, links.lead, text, entry).encode("utf-8", "surrogateescape")


class _Links(NamedTuple):
    """The links of one source."""

    place: str
    root: str
    publish: Callable[[str], str]
    entry: DocumentFormat

    @property
    def syntax(self) -> _Syntax:
        return _SYNTAXES.get(self.entry, _MARKDOWN)

    def lead(self, link: re.Match[str]) -> str:
        """Return a link with the published URL, or as it is."""
        said = {name: value for name, value in link.groupdict().items() if value}
        if "words" in said:
            url = self._url_in_module(said) if self.entry is ASCIIDOC else self._url_of_role(said)
            return self.syntax.form.format(words=said["words"], url=url + said.get("part", "")) if url else link[0]
        target = unescapeAll(said["target"])
        url = self._url(target) if format_of_name(target) in SOURCES else ""
        return f"{said['before']}{url}" if url else link[0]

    def _url_of_role(self, said: dict[str, str]) -> str:
        """Return the URL of a page that a role of Sphinx names."""
        name = said.get("page", said["words"]).strip()
        return "" if "://" in name else self._url(name + PurePosixPath(urlsplit(self.place).path).suffix)

    def _url_in_module(self, said: dict[str, str]) -> str:
        """Return the URL of a page of Antora, which is in the same module or in a named one."""
        name, (folder, in_module, _) = said["page"], self.place.rpartition(_PAGES)
        if not in_module:
            return "" if "module" in said else self._url(name)
        if name.startswith("."):
            return self._url(name)
        modules, _, own = folder.rpartition("/")
        return self._replace(place=f"{modules}/{said.get('module', own)}{_PAGES}")._url(name)

    def _url(self, target: str) -> str:
        url = absolute_url(self.root, target[1:]) if target[0] == "/" else absolute_url(self.place, target)
        return self.publish(url) if url else ""
