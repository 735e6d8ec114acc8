"""The folder of sources that a generator publishes, as its configuration says.

Reads a few keys of files that are written for other programs, and runs nothing: what a key can't be read from has its
default. Knows no generator and no URL.
"""

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fnmatch import translate
from pathlib import PurePosixPath
from posixpath import commonpath, join, normpath
from typing import Any, Literal
from urllib.parse import unquote

import yaml

from pipelines.indexing.reading.formats import MARKDOWN
from pipelines.indexing.reading.locales import Renames, locale_folders, locale_renames

UrlStyle = Literal["keep", "html", "directory", "bare"]
# How the parts of a path are called in URLs: as they are, without capitals, or as GitHub calls the anchor of a heading.
Names = Literal["", "lower", "slugs"]
Read = Callable[[str], str | None]  # a path to its text, None if there is no such file
# A docs folder lies at most so deep below the file that configures its site: src/content/docs/en/guides.
_LEVELS_UP = 6
_INDEXES = ("index.md", "_index.md", "_index.html", "index.mdx", "SUMMARY.md", "layout.tsx", "layout.jsx", "_meta.js")
_INDEX = (r"(^|/)(?:_?index|readme)$", r"\1")
_PAGE = r"\]\(\s*<?([^()<>#]+\.md)\b"
_REWRITE = re.compile(r"""["']([^"'\n]+)["']\s*:\s*["']([^"'\n]*)["']""")


@dataclass(frozen=True, slots=True)
class SourceFolder:
    """How a generator publishes files.

    `config` is the file that says so. `root` is the folder whose files are its pages, with a slash at the end.
    `formats` are pairs of media types: of a file by its suffix, and as the generator reads it. `exclude` are regular
    expressions for paths below the root that become no page. `renames` are regular expressions, and what replaces them
    in the paths of pages without their suffix: an index leaves its folder with a slash. `names` says how the parts of
    these paths are called in URLs. Then `routes` are folders and what they are called in URLs, a template if it has
    words after a colon; files beside them are no pages. The key `whole` of a page's front matter names its path. With
    `titles` templates mean its title by `:title` and `:slug`, else the name of its file. Where there are `pages`, other
    files of Markdown are none.
    """

    generator: str
    config: str
    root: str
    url_style: UrlStyle
    formats: tuple[tuple[str, str], ...] = ()
    exclude: tuple[str, ...] = ()
    renames: Renames = (_INDEX,)
    routes: Renames = ()
    whole: str = ""
    titles: bool = False
    names: Names = ""
    pages: frozenset[str] = frozenset()

    @property
    def named_within(self) -> bool:
        """Whether the front matter of a page may name its URL."""
        return bool(self.whole or self.routes)

    def publishes(self, path: str) -> bool:
        """Return whether the file or folder `path` is, or lies in, the pages; what was built from them is not."""
        inner = path.removeprefix(self.root)
        if not path.startswith(self.root) or any(re.search(pattern, inner) for pattern in self.exclude):
            return False
        if self.pages and inner not in self.pages and inner.rpartition(".")[2] in MARKDOWN.suffixes:
            return False
        return not self.routes or any(inner.startswith(place) for place, _ in self.routes)

    def covers(self, folder: str) -> bool:
        """Return whether `folder` holds the pages, or lies in them."""
        folder = folder.rstrip("/") + "/"
        return self.root.startswith(folder) or self.publishes(folder)


@dataclass(frozen=True, slots=True)
class Publishing:
    """How a generator publishes whose configuration is only searched for it: the keys of `publishes` in its table.

    `configs` are files of which one configures a site, if it has the regular expression `sign`. Its pages lie in the
    folder that the group of `folder` finds in it; else in the first of `folders` below that has an index, else in the
    last one. Both lists are names separated by spaces. Their URLs end by `url_style`, or by the style of `styles` whose
    regular expression the configuration has. Parts of paths are called as `names` says, unless the configuration has
    the regular expression `keeps_names`. Markdown is read as the media type `reads`. The groups of `routes` find
    folders and their templates, beside those of `places`: one without a folder is that of the only place. Pages are the
    files that the file `contents` links to, if there is one. The group of `rewrites` finds what the configuration says
    that paths become: `'en/:rest*': ':rest*'`; that of `leaves_out` a list of what is not published. With `locales` a
    file `page.fr.md` is a translation if the configuration has the locale, and a locale may have a folder. The others
    are as in SourceFolder.
    """

    configs: str
    folders: str
    url_style: UrlStyle
    sign: str = ""
    folder: str = ""
    styles: Mapping[UrlStyle, str] = field(default_factory=dict)
    reads: str = MARKDOWN.media_type
    exclude: tuple[str, ...] = ()
    renames: Renames = (_INDEX,)
    places: Mapping[str, str] = field(default_factory=dict)
    routes: str = ""
    whole: str = ""
    titles: str = ""
    names: Names = ""
    keeps_names: str = ""
    contents: str = ""
    rewrites: str = ""
    leaves_out: str = ""
    locales: bool = False

    def sources(self, name: str, read: Read, place: str) -> SourceFolder | None:
        """Return the folder that a configuration in `place` of the generator `name` publishes, None without one."""
        path, text = first_file(read, place, *self.configs.split()) or ("", None)
        if text is None or not re.search(self.sign, text, re.MULTILINE):
            return None
        named = re.search(self.folder, text, re.MULTILINE) if self.folder else None
        folders = [f"{normpath(join(place, each))}/" for each in ([named[1]] if named else self.folders.split())]
        root = next((folder for folder in folders if first_file(read, folder, *_INDEXES)), folders[-1])
        by_locale = locale_folders(text) if self.locales else {}
        moved_folders: Renames = ()
        others: tuple[str, ...] = ()
        if len(by_locale) > 1:
            root, moved_folders, others = _joined(place, by_locale)
        style = next((style for style, sign in self.styles.items() if re.search(sign, text)), self.url_style)
        templates = re.findall(self.routes, text) if self.routes else ()
        routes = {**self.places, **{folder or "".join(self.places): route for folder, route in templates}}
        moved = re.search(self.rewrites, text) if self.rewrites else None
        rewritten = [_rename(*pair) for pair in _REWRITE.findall(moved[1] if moved else "")]
        renames = (*moved_folders, *rewritten, *(locale_renames(text) if self.locales else ()), *self.renames)
        listed = re.search(self.leaves_out, text, re.MULTILINE) if self.leaves_out else None
        exclude = (*self.exclude, *others, *_left_out(listed[1] if listed else ""))
        found = SourceFolder(name, path, root, style, exclude=exclude, renames=renames, whole=self.whole)
        places = (*((f"{folder}/", route) for folder, route in routes.items()), ("", "")) if routes else ()
        contents = read(root + self.contents) if self.contents else None
        pages = frozenset(normpath(unquote(link)) for link in re.findall(_PAGE, contents or ""))
        formats = ((MARKDOWN.media_type, self.reads),)
        return replace(
            found, formats=formats, routes=places, titles=bool(self.titles), names=self._names(text), pages=pages
        )

    def _names(self, text: str) -> Names:
        return "" if self.keeps_names and re.search(self.keeps_names, text) else self.names


def _joined(place: str, by_locale: Mapping[str, str]) -> tuple[str, Renames, tuple[str, ...]]:
    """Return the folder that holds those of all locales, what these are called in URLs, and what else is no page."""
    root = f"{normpath(join(place, commonpath(by_locale.values())))}/"
    paths = [(f"{normpath(join(place, folder))}/", to) for to, folder in by_locale.items()]
    names = [(re.escape(path.removeprefix(root)), to) for path, to in paths if path != root]
    others = (rf"\A(?!{'|'.join(name for name, _ in names)})",) if len(names) == len(paths) else ()
    return root, tuple((rf"\A{name}", to) for name, to in names), others


def _left_out(listed: str) -> Iterator[str]:
    """Yield the names of a list in YAML as patterns; a name is a file or a folder, and may have wildcards."""
    try:
        names = yaml.safe_load(listed)
    except (yaml.YAMLError, ValueError, RecursionError):
        return
    for name in names if isinstance(names, list) else str(names or "").splitlines():
        if isinstance(name, str) and name.strip(" /") and name[0] not in "!#":
            yield "^" + translate(name.strip(" /")).removesuffix(r"\Z").removesuffix(r"\z") + "(?:/|$)"


def _rename(path: str, by: str) -> tuple[str, str]:
    """Return a rewrite of paths (`packages/:name/docs/:rest*` to `:name/:rest*`) as a rename of pages."""
    path, by = (re.sub(r"\.\w+$", "", each).lstrip("/") for each in (path, by))
    pattern = ""
    for name, several, rest in re.findall(r":(\w+)(?:\([^()]*\))?(\*|\+)?|([^:]+|:)", path):
        pattern += re.escape(rest) if rest else f"(?P<{name}>.*)" if several else f"(?P<{name}>[^/]+)"
    names = re.compile(pattern).groupindex
    return f"^{pattern}$", re.sub(r":(\w+)[*+]?", lambda said: rf"\g<{said[1]}>" if said[1] in names else said[0], by)


def upwards(folder: str) -> Iterator[str]:
    """Yield `folder` and those above it in which its site may be configured, each with a slash at the end."""
    path = PurePosixPath(folder)
    for place in (path, *path.parents)[: _LEVELS_UP + 1]:
        if place == path or place.name:
            yield f"{place}/"


def first_file(read: Read, place: str, *names: str) -> tuple[str, str] | None:
    """Return the path and the text of the first file of `place` with one of these names, if there is one."""
    texts = ((place + name, read(place + name)) for name in names)
    return next(((path, text) for path, text in texts if text is not None), None)


def python_keys(text: str) -> dict[str, Any]:
    """Return the names that a file of Python sets to literal values, without running it."""
    keys: dict[str, Any] = {}
    try:
        statements = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError):
        return keys
    for statement in statements:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            with suppress(ValueError, TypeError, RecursionError):
                keys[statement.targets[0].id] = ast.literal_eval(statement.value)
    return keys
