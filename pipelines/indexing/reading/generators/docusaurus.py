"""Docusaurus: code without line breaks, its configuration, URLs by routes, versions and translations."""

import re
from collections.abc import Iterator, Sequence
from os.path import commonpath
from posixpath import join, normpath

from pipelines.indexing.reading.formats import DOCUSAURUS, MARKDOWN, MDX
from pipelines.indexing.reading.formats.mdx import end_of_braces
from pipelines.indexing.reading.sources import Read, SourceFolder, UrlStyle, first_file

_CONFIGS = tuple(f"docusaurus.config.{suffix}" for suffix in ("js", "ts", "mjs", "cjs", "mts", "cts"))
_COMMENTS = r"^\s*//[^\n]*|/\*.*?\*/"
_PLUGIN = r"(?:\b|-content-)(docs|blog|pages)(?:\s*:|['\"]\s*,)\s*\(?\{"
# The date of a blog post becomes its folder. Number prefixes only order the pages and are dropped, unless they are
# dates or versions. A page named like its folder is the folder's index.
_RENAMES = (
    (r"(^|[/-])blog/(.*/)?(\d{4})[-/](\d\d?)[-/](\d\d?)[-/]([^/]+?)(?:/index)?$", r"\1blog/\2\3/\4/\5/\6"),
    (r"(?:^|(?<=/))(?!\d+[-_.]\d)\d+\s*[-_.]+\s*(?=[^-_.\s/])", ""),
    (r"(^|/)(?:index|readme)$", r"\1"),
    (r"/([^/]+)/\1$", r"/\1/"),
)
_PLACES = {"docs": ("docs", "docs"), "blog": ("blog", "blog"), "pages": ("src/pages", "")}


def sources(read: Read, place: str) -> SourceFolder | None:
    """Return the folder published by a configuration in `place`, or None."""
    config = first_file(read, place, *_CONFIGS)
    if config is None:
        return None
    text = re.sub(_COMMENTS, "", config[1], flags=re.MULTILINE | re.DOTALL)
    locales = _locales(text)
    defaults = [(f"{place}{folder}/", f"{route}/".lstrip("/")) for folder, route in _PLACES.values()]
    defaults += [
        (f"{place}i18n/{locale}/docusaurus-plugin-content-{plugin}/{'current/' * (plugin == 'docs')}",
         f"{locale}/{route}/".replace("//", "/"))
        for locale in locales for plugin, (_, route) in _PLACES.items()
    ]  # fmt: skip
    found = [route for plugin in re.finditer(_PLUGIN, text) for route in _routes(read, place, plugin, locales)]
    root = commonpath([place, *(folder for folder, _ in found)]) + "/"
    routes = dict(sorted([*defaults, *found], key=lambda route: route not in defaults))
    places = tuple(sorted((folder.removeprefix(root), route) for folder, route in routes.items())[::-1])
    style: UrlStyle = "directory" if re.search(r"\btrailingSlash\s*:\s*true\b", text) else "bare"
    formats = tuple((each.media_type, DOCUSAURUS.media_type) for each in (MARKDOWN, MDX))
    exclude = (r"(^|/)_",)
    return SourceFolder("Docusaurus", config[0], root, style, formats, exclude, _RENAMES, places)


def _locales(text: str) -> list[str]:
    """Return the locales with translations in separate folders: all but the default locale."""
    found = re.search(r"\bi18n['\"]?\s*:\s*\{", text)
    own = text[found.end() : end_of_braces(text, found.end() - 1)] if found else ""
    names = re.search(r"\blocales['\"]?\s*:\s*\[([^\]]*)\]", own)
    locales = re.findall(r"['\"`]([\w-]+)['\"`]", names[1]) if names else []
    return [locale for locale in locales if locale != _text_key("defaultLocale", own, "en")]


def _routes(read: Read, place: str, plugin: re.Match[str], locales: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the folder of a plugin and of each of its versions and translations, with their paths in URLs."""
    text = plugin.string[plugin.end() : end_of_braces(plugin.string, plugin.end() - 1)]
    if re.search(r"\bsidebar\s*:", text):  # theme options, not a plugin's
        return
    own = re.sub(r"[{\[][^{}\[\]]*[}\]]", "", re.sub(r"\{[^{}]*\}", "", text))
    folder, route = _PLACES[plugin[1]]
    folder, route = _text_key("path", own, folder), _text_key("routeBasePath", own, route)
    name = "" if (name := _text_key("id", own, "")) == "default" else name
    prefix = f"{name}_" if name else ""
    translated = f"docusaurus-plugin-content-{plugin[1]}{f'-{name}' if name else ''}"
    versions = re.findall(r'"([^"]+)"', (plugin[1] == "docs" and read(f"{place}{prefix}versions.json")) or "")
    last = _text_key("lastVersion", own, (*versions, "current")[0])
    for version in ("current", *versions):
        called = "" if version == last else "next" if version == "current" else version
        named = re.search(rf"\b{re.escape(version)}['\"]?\s*:\s*(\{{[^{{}}]*\}})", text)
        called = _text_key("path", named[1], called).lstrip("/") if named else called
        of_version = "current" if version == "current" else f"version-{version}"
        below = folder if version == "current" else f"{prefix}versioned_docs/{of_version}"
        path = f"{normpath(join(route, called))}/".lstrip("/.")
        yield normpath(join(place, below.strip("/"))) + "/", path
        for locale in locales:
            inner = f"{translated}/{of_version}" if plugin[1] == "docs" else translated
            yield f"{place}i18n/{locale}/{inner}/", f"{locale}/{path}"


def _text_key(name: str, text: str, default: str) -> str:
    found = re.search(rf"\b{name}\s*:\s*(['\"`])(.*?)\1", text)
    return found[2] if found else default
