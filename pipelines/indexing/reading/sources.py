"""Finds the folder of sources that a documentation generator publishes, from its configuration.

It reads a few keys from files written for other programs, and executes nothing. A key that cannot be read has its
default. Independent of specific generators and URLs.
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

from pipelines.indexing.reading.formats import ASCIIDOC, HTML, MARKDOWN, SOURCES, format_of_name
from pipelines.indexing.reading.locales import Renames, locale_folders, locale_renames
from pipelines.text.parsing import NotParsed, parse_yaml

UrlStyle = Literal["keep", "html", "directory", "bare"]
# How parts of a path are written in URLs: unchanged, in lower case, or as slugs like GitHub's heading anchors.
Names = Literal["", "lower", "slugs"]
Read = Callable[[str], str | None]  # returns the text of a path, None if there is no such file
# Greatest depth of a docs folder below the configuration of its site: src/content/docs/en/guides.
_LEVELS_UP = 6
_INDEXES = ("index.md", "_index.md", "_index.html", "index.mdx", "SUMMARY.md", "layout.tsx", "layout.jsx", "_meta.js")
_INDEX = (r"(^|/)(?:_?(?-i:index)|readme)$", r"\1")  # most generators make an ordinary page of Index
_PAGE = r"\]\(\s*+<?([^()<>#]+\.md)\b"
ALL = "*"
_REWRITE = re.compile(r"""["']([^"'\n]+)["']\s*:\s*["']([^"'\n]*)["']""")


@dataclass(frozen=True, slots=True)
class SourceFolder:
    """A folder of source files, and how a generator publishes them.

    `config` is the file that declares this. `root` is the folder that contains the pages, with a trailing slash.
    `formats` are pairs of media types: the type by suffix, and the type as which the generator reads the file.
    `exclude` are regular expressions for paths below the root that are not published. `renames` are regular expressions
    and their replacements, applied to the paths of pages without suffix; an index page leaves its folder's path with a
    trailing slash. `names` is how the parts of these paths are written in URLs.

    `routes` map folders to their path in URLs, or to a template if it has words after a colon; if there are any, files
    outside these folders are not pages. `whole` is the front matter key that sets a page's full path. With `titles`,
    `:title` and `:slug` in templates mean the page's title, else its file name. If `pages` is not empty, other sources
    are not pages. `around` are media types, each with the source text that the generator reads before and after
    every page of this type. With `liquid`, pages with front matter are Liquid templates, as Jekyll reads them. `moves`
    are renames of paths in URLs, after the routes.
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
    around: tuple[tuple[str, str, str], ...] = ()
    liquid: bool = False
    moves: Renames = ()

    @property
    def renders_html(self) -> bool:
        """Whether the generator makes pages from HTML, which it publishes like other sources."""
        return HTML.media_type in dict(self.formats)

    @property
    def named_within(self) -> bool:
        """Whether the front matter of a page may set its URL."""
        return bool(self.whole or self.routes)

    def whole_source(self, media_type: str, body: bytes) -> bytes:
        """Return a page's source with the text that the generator reads before and after it."""
        texts = next(((before, after) for kind, before, after in self.around if kind == media_type), None)
        return f"{texts[0]}\n".encode() + body + f"\n\n{texts[1]}\n".encode() if texts else body

    def publishes(self, path: str) -> bool:
        """Return whether the file or folder `path` is within the published pages; build output is not."""
        inner = path.removeprefix(self.root)
        if not path.startswith(self.root) or any(re.search(pattern, inner) for pattern in self.exclude):
            return False
        if self.pages and inner not in self.pages and format_of_name(inner) in SOURCES:
            return False
        return not self.routes or any(inner.startswith(place) for place, _ in self.routes)

    def covers(self, folder: str) -> bool:
        """Return whether `folder` contains the published pages or is within them."""
        folder = folder.rstrip("/") + "/"
        return self.root.startswith(folder) or self.publishes(folder)


@dataclass(frozen=True, slots=True)
class Publishing:
    """The publishing rules of a generator whose configuration is searched with regular expressions.

    Each field is a key of `publishes` in the generator's table. Fields not described here are as in SourceFolder.

    `configs` are file names; one of them configures a site if it matches `sign`. The pages are in the folder captured
    by `folder`, else in the first of `folders` that has an index, else in the last of them. `configs` and `folders` are
    names separated by spaces. Files in the folder captured by `output` are made of the pages. URLs end as `url_style`
    says, or in the first style of `styles` whose regular expression matches the configuration. Parts of paths are
    written as `names` says, unless the configuration matches `keeps_names`. Markdown is read as the media type `reads`,
    or the first of `reads_as` whose regular expression matches the configuration.

    `routes` captures folders and their templates, in addition to those in `places`; a template without a folder applies
    to the only entry of `places`. If the file `contents` exists, the pages are the files that it links to. `rewrites`
    captures the configured path rewrites (`'en/:rest*': ':rest*'`), and `leaves_out` a list of unpublished paths. With
    `locales`, a file `page.fr.md` is a translation if the configuration declares the locale, and a locale may have its
    own folder. `attributes` are AsciiDoc attributes with the paths of their values in a YAML configuration: the path of
    ALL leads to several attributes, and an attribute without a path is always set. With `html`, HTML is a source, too.
    """

    configs: str
    folders: str
    url_style: UrlStyle
    sign: str = ""
    folder: str = ""
    output: str = ""
    styles: Mapping[UrlStyle, str] = field(default_factory=dict)
    reads: str = MARKDOWN.media_type
    reads_as: Mapping[str, str] = field(default_factory=dict)
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
    attributes: Mapping[str, str] = field(default_factory=dict)
    html: str = ""
    liquid: bool = False

    def sources(self, name: str, read: Read, place: str) -> SourceFolder | None:
        """Return the folder published by a configuration in `place` for the generator `name`, or None."""
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
        exclude = (*self.exclude, *others, *_left_out(listed[1] if listed else ""), *self._output(text, place, root))
        found = SourceFolder(name, path, root, style, exclude=exclude, renames=renames, whole=self.whole)
        places = (*((f"{folder}/", route) for folder, route in routes.items()), ("", "")) if routes else ()
        contents = read(root + self.contents) if self.contents else None
        pages = frozenset(normpath(unquote(link)) for link in re.findall(_PAGE, contents or ""))
        reads = next((kind for kind, sign in self.reads_as.items() if re.search(sign, text)), self.reads)
        formats = ((MARKDOWN.media_type, reads), *([(HTML.media_type, HTML.media_type)] if self.html else ()))
        around = _asciidoc_attributes(text, self.attributes) if self.attributes else ()
        return replace(
            found, formats=formats, routes=places, titles=bool(self.titles), names=self._names(text), pages=pages,
            around=around, liquid=bool(self.liquid),
        )  # fmt: skip

    def _output(self, text: str, place: str, root: str) -> Iterator[str]:
        """Yield the output folder as a regular expression, if it is within `root`."""
        named = re.search(self.output, text, re.MULTILINE) if self.output else None
        folder = f"{normpath(join(place, named[1]))}/" if named else ""
        if folder.startswith(root) and folder != root:
            yield f"^{re.escape(folder.removeprefix(root))}"

    def _names(self, text: str) -> Names:
        return "" if self.keeps_names and re.search(self.keeps_names, text) else self.names


def _joined(place: str, by_locale: Mapping[str, str]) -> tuple[str, Renames, tuple[str, ...]]:
    """Return the common folder of all locales, renames from their folders to URLs, and patterns of other folders."""
    root = f"{normpath(join(place, commonpath(by_locale.values())))}/"
    paths = [(f"{normpath(join(place, folder))}/", to) for to, folder in by_locale.items()]
    names = [(re.escape(path.removeprefix(root)), to) for path, to in paths if path != root]
    others = (rf"\A(?!{'|'.join(name for name, _ in names)})",) if len(names) == len(paths) else ()
    return root, tuple((rf"\A{name}", to) for name, to in names), others


def _asciidoc_attributes(text: str, paths: Mapping[str, str]) -> tuple[tuple[str, str, str], ...]:
    """Return the lines that set the attributes of a YAML text, as `around` of SourceFolder."""
    try:
        parsed: object = parse_yaml(text)
    except NotParsed:
        return ()
    found = {name: _value_at(parsed, path) if path else True for name, path in paths.items()}
    given = found.pop(ALL, None)
    values = {**found, **(given if isinstance(given, dict) else {})}
    lines = [f":{name}: {_attribute(value)}\n" for name, value in values.items() if value not in (None, False)]
    return ((ASCIIDOC.media_type, "".join(lines), ""),)


def _value_at(values: object, path: str) -> object:
    for key in path.split("."):
        values = values.get(key) if isinstance(values, dict) else None
    return values


def _attribute(value: object) -> str:
    """Return the text of an attribute's value. A value that pages may change ends with "@"."""
    return "" if value is True else str(value).removesuffix("@")


def _left_out(listed: str) -> Iterator[str]:
    """Yield the names of excluded files and folders as regular expressions. A name may contain wildcards.

    A YAML list names paths below the root, and `*` crosses folders (Jekyll). A block of lines is a `.gitignore`
    (MkDocs): a name without a slash before its end matches in every folder.
    """
    try:
        names = parse_yaml(listed)
    except NotParsed:
        return
    ignored = not isinstance(names, list)
    for name in str(names or "").splitlines() if ignored else names:
        if not isinstance(name, str) or not name.strip(" /") or name[0] in "!#":
            continue
        bare = name.strip(" /")
        anywhere = ignored and "/" not in name.strip().rstrip("/")
        glob = glob_in_folders(bare) if ignored else _glob(bare)
        yield f"{'(?:^|/)' if anywhere else '^'}{glob}(?:/|$)"


def glob_in_folders(glob: str) -> str:
    """Return a regular expression for a glob in which `*` and `?` stay within one folder, and `**` does not."""
    wild = {"**": ".*", "*": "[^/]*", "?": "[^/]"}
    parts = re.findall(r"\*\*|\[!?[^]]{1,100}\]|.", glob.rstrip("/"))
    return "".join(wild.get(part) or _glob(part) for part in parts)


def _glob(glob: str) -> str:
    return translate(glob).removesuffix(r"\Z").removesuffix(r"\z")


def _rename(path: str, by: str) -> tuple[str, str]:
    """Return a path rewrite (`packages/:name/docs/:rest*` to `:name/:rest*`) as a rename of pages."""
    path, by = (re.sub(r"\.\w+$", "", each).lstrip("/") for each in (path, by))
    pattern = ""
    for name, several, rest in re.findall(r":(\w+)(?:\([^()]*\))?(\*|\+)?|([^:]+|:)", path):
        pattern += re.escape(rest) if rest else f"(?P<{name}>.*)" if several else f"(?P<{name}>[^/]+)"
    names = re.compile(pattern).groupindex
    return f"^{pattern}$", re.sub(r":(\w+)[*+]?", lambda said: rf"\g<{said[1]}>" if said[1] in names else said[0], by)


def upwards(folder: str) -> Iterator[str]:
    """Yield `folder` and the parents that may contain the site's configuration, each with a trailing slash."""
    path = PurePosixPath(folder)
    for place in (path, *path.parents)[: _LEVELS_UP + 1]:
        if place == path or place.name:
            yield f"{place}/"


def first_file(read: Read, place: str, *names: str) -> tuple[str, str] | None:
    """Return the path and text of the first existing file in `place` with one of these names, or None."""
    texts = ((place + name, read(place + name)) for name in names)
    return next(((path, text) for path, text in texts if text is not None), None)


def python_keys(text: str) -> dict[str, Any]:
    """Return the names that a Python file sets to literal values, without executing it."""
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
