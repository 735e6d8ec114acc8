"""The folder of sources that a generator publishes, as its configuration says.

Reads a few keys of files that are written for other programs, and runs nothing: what a key can't be read from has its
default. Knows no generator and no URL.
"""

import ast
import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from posixpath import dirname, join, normpath
from typing import Any, Literal

import yaml

from pipelines.indexing.reading.formats import DocumentFormat

UrlStyle = Literal["keep", "html", "directory", "bare"]
Read = Callable[[str], str | None]  # a path to its text, None if there is no such file
# A docs folder lies at most so deep below the file that configures its site: website/docs/en, docs/en/docs.
_LEVELS_UP = 3
_INDEXES = ("index.md", "_index.md", "_index.html", "index.mdx", "SUMMARY.md")


@dataclass(frozen=True, slots=True)
class SourceFolder:
    """How a generator publishes files.

    `config` is the file that says so. `root` is the folder whose files are its pages, with a slash at the end. `routes`
    are folders below it and what they are called in URLs; files beside them are no pages. `formats` are pairs of media
    types: of a file by its suffix, and as the generator reads it. `exclude` are regular expressions for paths below the
    root that become no page. With `lower` URLs have no capitals.
    """

    generator: str
    config: str
    root: str
    url_style: UrlStyle
    indexes: tuple[str, ...] = ("index", "readme")
    formats: tuple[tuple[str, str], ...] = ()
    exclude: tuple[str, ...] = ()
    routes: tuple[tuple[str, str], ...] = ()
    lower: bool = False

    def publishes(self, path: str) -> bool:
        """Return whether the file or folder `path` is, or lies in, the pages; what was built from them is not."""
        inner = path.removeprefix(self.root)
        if not path.startswith(self.root) or any(re.search(pattern, inner) for pattern in self.exclude):
            return False
        return not self.routes or any(inner.startswith(place) for place, _ in self.routes)

    def covers(self, folder: str) -> bool:
        """Return whether `folder` holds the pages, or lies in them."""
        folder = folder.rstrip("/") + "/"
        return self.root.startswith(folder) or self.publishes(folder)


@dataclass(frozen=True, slots=True)
class Publishing:
    """How a generator publishes whose configuration need not be read for it: the keys of `publishes` in its table.

    `configs` are files of which one configures a site. Its pages lie in the first of `folders` below that has an index,
    else in the last one; both are names separated by spaces. Only a file that has the regular expression `sign`
    configures it. Their URLs end by `url_style`, bare where the configuration has the regular expression `bare_if`,
    without capitals if `case` is "lower". `exclude` is as in SourceFolder.
    """

    configs: str
    folders: str
    url_style: UrlStyle
    sign: str = ""
    bare_if: str = ""
    exclude: Sequence[str] = ()
    case: str = ""

    def sources(self, name: str, read: Read, place: str) -> SourceFolder | None:
        """Return the folder that a configuration in `place` of the generator `name` publishes, None without one."""
        config = first_file(read, place, *self.configs.split())
        if config is None or not re.search(self.sign, config[1]):
            return None
        folders = [folder_below(place, folder, "") for folder in self.folders.split()]
        root = next((folder for folder in folders if first_file(read, folder, *_INDEXES)), folders[-1])
        style: UrlStyle = "bare" if self.bare_if and re.search(self.bare_if, config[1]) else self.url_style
        indexes, exclude = ("index", "_index", "readme"), tuple(self.exclude)
        return SourceFolder(name, config[0], root, style, indexes, exclude=exclude, lower=self.case == "lower")


def upwards(folder: str) -> Iterator[str]:
    """Yield `folder` and those above it in which its site may be configured, each with a slash at the end."""
    place = folder.rstrip("/") + "/"
    for _ in range(_LEVELS_UP + 1):
        yield place
        above = dirname(place.rstrip("/"))
        if above in ("", "/", place.rstrip("/")):
            return
        place = above + "/"


def first_file(read: Read, place: str, *names: str) -> tuple[str, str] | None:
    """Return the path and the text of the first file of `place` with one of these names, if there is one."""
    texts = ((place + name, read(place + name)) for name in names)
    return next(((path, text) for path, text in texts if text is not None), None)


def folder_below(place: str, name: object, default: str) -> str:
    """Return the folder `name` below `place`, with a slash at the end."""
    return normpath(join(place, name if isinstance(name, str) and name else default)).rstrip("/") + "/"


def types(*pairs: tuple[DocumentFormat, DocumentFormat]) -> tuple[tuple[str, str], ...]:
    """Return pairs of a format by suffix and as it is read as pairs of media types."""
    return tuple((by_suffix.media_type, as_read.media_type) for by_suffix, as_read in pairs)


class _AnyTag(yaml.SafeLoader):
    """Loads YAML whose tags name functions of the program that it is for, as nothing."""


_AnyTag.add_multi_constructor("", lambda loader, suffix, node: None)


def yaml_keys(text: str) -> dict[str, Any]:
    """Return the keys of a file of YAML, none if it can't be read."""
    try:
        keys = yaml.load(text, _AnyTag)
    except yaml.YAMLError:
        return {}
    return keys if isinstance(keys, dict) else {}


def toml_keys(text: str) -> dict[str, Any]:
    """Return the keys of a file of TOML, none if it can't be read."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return {}


def python_keys(text: str) -> dict[str, Any]:
    """Return the names that a file of Python sets to literal values, without running it."""
    keys: dict[str, Any] = {}
    try:
        statements = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError):
        return keys
    for statement in statements:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            try:
                keys[statement.targets[0].id] = ast.literal_eval(statement.value)
            except (ValueError, TypeError, RecursionError):
                continue
    return keys
